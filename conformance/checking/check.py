"""The check of one model: every recurrent node against its document, and nothing run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from ...reference.operators.mishap import told_mishap
from ...reference.operators.tables import UNJUDGED
from ..models.content import ModelError, read_content
from ..models.inference import main_scope
from ..models.scope import Scope, domain_of, shown_name
from ..models.walk import Located, nodes_of
from .frozen import frozen
from .measured import Measured
from .operators import CheckedOperator, judged_operators
from .problem import Checked, Level, Problem, Unchecked
from .quantization import quantization
from .rule import MEASURED, SIZES_CLAIMED, Rule, rule_broken, rules, rules_open
from .subject import Missing, subject_of


class UnreadableModel(ValueError):
    """Something that was given is no model that can be read; the text says why, in one line."""


def check(model: str | Path | ModelProto | bytes, folder: str | Path | None = None) -> list[Problem]:
    """Problems of the recurrent nodes of a model, found by looking at it: nothing is run.

    model
        A file, a model in memory, or a serialized one.
    folder
        Where the external data of a model in memory may be. No file outside it is opened, nor outside the folder of a
        model that is a file.

    What cannot be known from the model alone is no problem; :func:`check_model` says what that is.

    Raises UnreadableModel.
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
    """Everything that a check of a model comes to; of one that cannot be read, why.

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
            inconclusive.append((located.path, "::".join(key)))
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
    """The nodes of a model that are of recurrent operators, those without a document here among them.

    Raises ModelError.
    """
    judged_by = judged_operators()
    return nodes_of(scope, lambda domain, op: (domain, op) in judged_by or (domain, op) in UNJUDGED)


@dataclass(frozen=True)
class CheckedNode:
    """One node, checked."""

    operator: str
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()


def check_node(
    located: Located, judged: CheckedOperator, file: str = "", measured: Measured | None = None
) -> CheckedNode:
    """One node of an operator that has a document here; the arguments are those of :func:`check_model`."""
    name = judged.operator.document.title
    given = domain_of(located.node.domain)
    opset = located.scope.opsets.get(given)
    missing = ""
    if opset is None:
        missing = f"which version the node means: no opset of domain {given or 'ai.onnx'!r} is imported where it stands"
    elif opset > judged.newest:
        missing = f"what {name} is in opset {opset}: the newest that is known here is {judged.newest}"
    operator = judged.version(opset) if opset is not None and not missing else None
    if not missing and operator is None:
        missing = f"which version the node means: opset {opset} has no {name}"
    if operator is None:
        return CheckedNode(name, unchecked=(Unchecked("", file, located.path, name, missing),))
    subject = subject_of(located.scope, located.number, operator)
    problems: dict[tuple[str, str], Problem] = {}
    unchecked: dict[tuple[str, str], Unchecked] = {}

    def report(rule: Rule, message: str, helps: str = "") -> None:
        advice = f"{helps} {_advice(rule)}".strip()
        problem = Problem(rule.id, rule.level, file, located.path, operator.name, message, _text(rule), advice)
        problems[rule.id, message] = problem

    outcomes = [(rule_broken(judged, outcome.topic), outcome) for outcome in judged.outcomes(subject)]
    outcomes += [(rules()[f"model.{outcome.topic}"], outcome) for outcome in quantization(subject)]
    for rule, outcome in outcomes:
        if isinstance(outcome, Missing):
            unchecked[rule.id, outcome.what] = Unchecked(rule.id, file, located.path, operator.name, outcome.what)
        elif outcome.certain:
            report(rule, outcome.message)
        else:
            report(rules()[f"model.{SIZES_CLAIMED}"], f"by what the file declares, {outcome.message}")
    if not any(problem.level is Level.ERROR for problem in problems.values()):
        for topic, message in frozen(subject):
            report(rules()[f"model.{topic}"], message)
        like = judged.stand_in(subject)
        features = like.features - subject.unread if like is not None else frozenset()
        features |= {"old-domain"} if given != judged.domain else set()
        for rule in rules_open(judged, operator.since_version, features):
            report(rule, f"the specification does not settle this, and the model relies on it: {rule.text}")
        if measured is not None and like is not None and like.element:
            rule = rules()[f"model.{MEASURED}"]
            for note in measured.notes(like):
                report(rule, note.text, note.helps)
            for what in measured.untried(like):
                unchecked[rule.id, what] = Unchecked(rule.id, file, located.path, operator.name, what)
    else:
        located.scope.distrust(located.number)
    return CheckedNode(operator.name, tuple(problems.values()), tuple(unchecked.values()))


def _text(rule: Rule) -> str:
    return "" if rule.clause is None else rule.clause.text


def _advice(rule: Rule) -> str:
    return f"{rule.advice} Known runtimes: {rule.runtimes}" if rule.runtimes else rule.advice
