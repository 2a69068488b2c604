"""The check of one model: every recurrent node against its document, and nothing run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from ...reference import OperatorVersion
from ...reference.operators.mishap import told_mishap
from ...reference.operators.tables import UNJUDGED
from ..models.content import ModelError, read_content
from ..models.inference import main_scope
from ..models.scope import Scope, domain_of, shown_name
from ..models.walk import Located, nodes_of
from .fixed_sizes import fixed_sizes
from .general import outcomes
from .measured import Measured
from .operators import CheckedOperator, judged_operators
from .padding import padding_is_read
from .problem import Checked, Level, Problem, Unchecked
from .quantization import quantization
from .rule import MEASURED, SIZES_CLAIMED, Rule, rule_broken, rules, rules_open
from .sample_node import sample_node
from .subject import Missing, NodeSubject, Outcome, subject_of


class UnreadableModel(ValueError):
    """Something that was given is no model that can be read; the text says why, in one line."""


def check(model: str | Path | ModelProto | bytes, folder: str | Path | None = None) -> list[Problem]:
    """Return the problems of the recurrent nodes of a model, without running anything.

    model
        A file, a model in memory, or a serialized one.
    folder
        Folder of the external data of a model in memory. No file outside it is opened, nor outside the folder of a
        model that is a file.

    Facts that the model alone does not show are no problems; :func:`check_model` returns them.

    Raise UnreadableModel.
    """
    checked = check_model(
        Path(model) if isinstance(model, str) else model, Path(folder) if folder is not None else None
    )
    if checked.unreadable:
        raise UnreadableModel(f"{checked.file or 'the model'} {checked.unreadable}")
    return list(checked.problems)


def check_model(
    model: Path | ModelProto | bytes, folder: Path | None = None, measured: Measured | None = None
) -> Checked:
    """Check a model; of one that cannot be read the result says why.

    measured
        Recorded results: legal nodes get notes of what targets made of others like them.
    """
    file = shown_name(str(model)) if isinstance(model, Path) else ""
    try:
        return _checked(model, file, folder, measured)
    except ModelError as error:
        return Checked(file, unreadable=str(error))
    except RecursionError:
        return Checked(file, unreadable="holds graphs or names that lead in a circle, or too deep into one another")


def _checked(model: Path | ModelProto | bytes, file: str, folder: Path | None, measured: Measured | None) -> Checked:
    scope = main_scope(read_content(model, folder))
    judged_by = judged_operators()
    nodes: list[tuple[str, str]] = []
    inconclusive: list[tuple[str, str]] = []
    problems: list[Problem] = []
    unchecked: list[Unchecked] = []
    for located in recurrent_nodes(scope):
        key = domain_of(located.node.domain), located.node.op_type
        if key in UNJUDGED:
            inconclusive.append((located.path, "::".join(filter(None, key))))
            continue
        try:
            seen = check_node(located, judged_by[key], file, measured)
        except (ModelError, RecursionError):
            raise
        except Exception as error:  # whatever it is, it is ours or the operator's, and costs this node alone
            name = judged_by[key].operator.document.title
            broke = f"the suite's fault or the operator's: {told_mishap(error)}"
            seen = CheckedNode(name, unchecked=(Unchecked("", file, located.path, name, broke, mishap=True),))
        nodes.append((located.path, seen.operator))
        problems += seen.problems
        unchecked += seen.unchecked
    return Checked(file, tuple(nodes), tuple(inconclusive), tuple(problems), tuple(unchecked))


def recurrent_nodes(scope: Scope) -> Iterator[Located]:
    """Yield the recurrent nodes of a model, those without a document here among them.

    Raises ModelError.
    """
    judged_by = judged_operators()
    return nodes_of(scope, lambda domain, op: (domain, op) in judged_by or (domain, op) in UNJUDGED)


@dataclass(frozen=True)
class CheckedNode:
    """One node, checked.

    subject
        The node as rules looked at it; None where it is not known which version it means.
    """

    operator: str
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    subject: NodeSubject | None = None


def check_node(
    located: Located, judged: CheckedOperator, file: str = "", measured: Measured | None = None
) -> CheckedNode:
    """Check a node of an operator that has a document here; arguments are those of :func:`check_model`."""
    operator = _version_meant(located, judged)
    if isinstance(operator, str):
        name = judged.operator.document.title
        return CheckedNode(name, unchecked=(Unchecked("", file, located.path, name, operator),))
    subject = subject_of(located.scope, located.number, operator)
    notes = _Notes(file, located.path, operator.name)
    for outcome in outcomes(subject, judged.operator):
        notes.take(rule_broken(judged, outcome.topic), outcome)
    for outcome in quantization(subject):
        notes.take(rules()[f"model.{outcome.topic}"], outcome)
    if notes.illegal:
        located.scope.distrust(located.number)
    else:
        _of_legal(located, judged, subject, measured, notes)
    return CheckedNode(operator.name, tuple(notes.problems.values()), tuple(notes.unchecked.values()), subject)


def _version_meant(located: Located, judged: CheckedOperator) -> OperatorVersion | str:
    """Return the operator version that a node means; where that is not known, a message."""
    name, domain = judged.operator.document.title, domain_of(located.node.domain)
    opset = located.scope.opsets.get(domain)
    if opset is None:
        return f"which version the node means: no opset of domain {domain or 'ai.onnx'!r} is imported where it stands"
    if opset > judged.newest:
        return f"what {name} is in opset {opset}: the newest that is known here is {judged.newest}"
    return judged.version(opset) or f"which version the node means: opset {opset} has no {name}"


class _Notes:
    """Problems of one node and what is not checked of it, each once."""

    def __init__(self, file: str, path: str, operator: str) -> None:
        self._place = file, path, operator
        self.problems: dict[tuple[str, str], Problem] = {}
        self.unchecked: dict[tuple[str, str], Unchecked] = {}

    @property
    def illegal(self) -> bool:
        return any(problem.level is Level.ERROR for problem in self.problems.values())

    def take(self, rule: Rule, outcome: Outcome) -> None:
        """Note what a rule came to."""
        if isinstance(outcome, Missing):
            self.miss(rule, outcome.what)
        elif outcome.certain:
            self.report(rule, outcome.message)
        else:
            self.report(rules()[f"model.{SIZES_CLAIMED}"], f"by what the file declares, {outcome.message}")

    def report(self, rule: Rule, message: str, helps: str = "", advice: str = "") -> None:
        """Note a broken rule: `advice` stands in the place of the rule's own, `helps` in front of it."""
        text = "" if rule.clause is None else rule.clause.text
        advice = advice or f"{helps} {_advice(rule)}".strip()
        self.problems[rule.id, message] = Problem(rule.id, rule.level, *self._place, message, text, advice)

    def miss(self, rule: Rule, what: str) -> None:
        self.unchecked[rule.id, what] = Unchecked(rule.id, *self._place, what)


def _of_legal(
    located: Located, judged: CheckedOperator, subject: NodeSubject, measured: Measured | None, notes: _Notes
) -> None:
    """Note what exporters froze in a legal node, what no document settles of it, and what targets made of its like."""
    for fixed in fixed_sizes(subject):
        notes.report(rules()[f"model.{fixed.topic}"], fixed.message, advice=fixed.advice)
    sample = sample_node(subject, judged.operator)
    features = sample.features - subject.unread if sample is not None else frozenset()
    if not padding_is_read(subject):
        features -= {"Y"}  # what is open of Y is its padding
    if domain_of(located.node.domain) != judged.domain:
        features |= {"old-domain"}
    for rule in rules_open(judged, subject.operator.since_version, features):
        notes.report(rule, f"the specification does not settle this, and the model relies on it: {rule.text}")
    if measured is not None and sample is not None and sample.element:
        rule = rules()[f"model.{MEASURED}"]
        for note in measured.notes(sample):
            notes.report(rule, note.text, note.helps)
        for what in measured.untried(sample):
            notes.miss(rule, what)


def _advice(rule: Rule) -> str:
    return f"{rule.advice} Known runtimes: {rule.runtimes}" if rule.runtimes else rule.advice
