"""The check of one model: every recurrent node against its document, without running it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from onnx import ModelProto

from ...reference import Operator, OperatorVersion
from ...reference.documents.operators import version_in_opset
from ...reference.errors import format_internal_error
from ...reference.operators import UNJUDGED
from ..models.content import ModelError, read_content
from ..models.inference import main_scope
from ..models.scope import Located, Scope, domain_of, nodes_of, shown_name
from .fixed_sizes import fixed_sizes
from .general import outcomes
from .measured import MeasuredTarget, measured_outcomes
from .problem import Checked, Level, Problem, Unchecked
from .quantization import quantization
from .rule import rule_broken, rules, rules_open
from .sample_node import sample_node
from .subject import (
    Broken,
    Missing,
    NodeSubject,
    Outcome,
    judged_operators,
    newest_opset,
    operator_judged,
    padding_is_read,
    subject_of,
)


class UnreadableModel(ValueError):
    """Model that cannot be read; the text gives the reason in one line."""


def check(model: str | Path | ModelProto | bytes, folder: str | Path | None = None) -> list[Problem]:
    """Return the problems of the recurrent nodes of a model, without running it.

    model
        A file, a model in memory, or a serialized one.
    folder
        Folder of the external data of a model in memory. No file outside it is opened. For a model that is a file, it
        is the file's folder.

    Questions that the model alone does not answer are not problems; :func:`check_model` returns them.

    Raise UnreadableModel.
    """
    checked = check_model(
        Path(model) if isinstance(model, str) else model, Path(folder) if folder is not None else None
    )
    if checked.unreadable:
        raise UnreadableModel(f"{checked.file or 'the model'} {checked.unreadable}")
    return list(checked.problems)


def check_model(
    model: Path | ModelProto | bytes, folder: Path | None = None, measured: Sequence[MeasuredTarget] = ()
) -> Checked:
    """Check a model. If it cannot be read, the result has the reason.

    measured
        Recorded results: legal nodes get notes of the failures of targets in similar cases.
    """
    file = shown_name(str(model)) if isinstance(model, Path) else ""
    try:
        scope = main_scope(read_content(model, folder))
        nodes = [_check_safely(located, file, measured) for located in recurrent_nodes(scope)]
    except ModelError as error:
        return Checked(file, unreadable=str(error))
    except RecursionError:
        return Checked(file, unreadable="holds graphs or names that lead in a circle, or too deep into one another")
    return Checked(
        file,
        tuple(chain.from_iterable(node.nodes for node in nodes)),
        tuple(chain.from_iterable(node.inconclusive for node in nodes)),
        tuple(chain.from_iterable(node.problems for node in nodes)),
        tuple(chain.from_iterable(node.unchecked for node in nodes)),
    )


def _check_safely(located: Located, file: str, measured: Sequence[MeasuredTarget]) -> Checked:
    """Check a node. A bug of the suite or of the operator costs this node alone."""
    try:
        return check_node(located, file, measured)
    except (ModelError, RecursionError):
        raise
    except Exception as error:
        operator = operator_judged(located.node)
        name = located.node.op_type if operator is None else operator.document.title
        broke = f"the suite's fault or the operator's: {format_internal_error(error)}"
        return _not_judged(file, located.path, name, broke, internal_error=True)


def recurrent_nodes(scope: Scope) -> Iterator[Located]:
    """Yield the recurrent nodes of a model, including those whose operator has no document here.

    Raise ModelError.
    """
    return nodes_of(scope, lambda domain, op: (domain, op) in judged_operators() or (domain, op) in UNJUDGED)


def check_node(located: Located, file: str = "", measured: Sequence[MeasuredTarget] = ()) -> Checked:
    """Check one node; arguments are those of :func:`check_model`."""
    operator, path = operator_judged(located.node), located.path
    if operator is None:
        name = "::".join(filter(None, (domain_of(located.node.domain), located.node.op_type)))
        return Checked(file, inconclusive=((path, name),))
    version = _version_meant(located, operator)
    if isinstance(version, str):
        return _not_judged(file, path, operator.document.title, version)
    subject = subject_of(located, version)
    if unjudged := version.unjudged(subject.chosen):
        return _not_judged(file, path, version.name, unjudged)
    found = [*outcomes(subject, operator), *quantization(subject)]
    errors = (o for o in found if isinstance(o, Broken) and o.certain)
    if any(rule_broken(operator, o.topic).level is Level.ERROR for o in errors):
        located.scope.distrust(located.number)
    else:
        found += _of_legal(subject, operator, measured)
    problems = dict.fromkeys(_problem(operator, o, file, path, version.name) for o in found if isinstance(o, Broken))
    missing = ((rule_broken(operator, o.topic).id, o.what) for o in found if isinstance(o, Missing))
    unchecked = dict.fromkeys(Unchecked(id, path, version.name, what) for id, what in missing)
    return Checked(file, ((path, version.name),), (), tuple(problems), tuple(unchecked))


def _not_judged(file: str, path: str, name: str, why: str, *, internal_error: bool = False) -> Checked:
    return Checked(file, ((path, name),), unchecked=(Unchecked("", path, name, why, internal_error),))


def _version_meant(located: Located, operator: Operator) -> OperatorVersion | str:
    """Return the operator version of a node, or a message if it is unknown."""
    name, domain = operator.document.title, domain_of(located.node.domain)
    opset = located.scope.opsets.get(domain)
    if opset is None:
        return f"which version the node means: no opset of domain {domain or 'ai.onnx'!r} is imported where it stands"
    if opset > newest_opset(operator):
        return f"what {name} is in opset {opset}: the newest that is known here is {newest_opset(operator)}"
    return version_in_opset(operator.document, opset) or f"which version the node means: opset {opset} has no {name}"


def _problem(operator: Operator, broken: Broken, file: str, path: str, name: str) -> Problem:
    rule, message = rule_broken(operator, broken.topic), broken.message
    if not broken.certain:
        rule, message = rules()["model.sizes-claimed"], f"by what the file declares, {message}"
    text = "" if rule.clause is None else rule.clause.text
    advice = f"{rule.advice} Known runtimes: {rule.runtimes}" if rule.runtimes else rule.advice
    return Problem(rule.id, rule.level, file, path, name, message, text, broken.advice or advice)


def _of_legal(subject: NodeSubject, operator: Operator, measured: Sequence[MeasuredTarget]) -> Iterator[Outcome]:
    """Yield fixed sizes of a legal node, its open questions, and failures of targets in similar cases."""
    yield from fixed_sizes(subject)
    sample = sample_node(subject, operator)
    features = sample.features - subject.unread if sample is not None else frozenset()
    if not padding_is_read(subject):
        features -= {"Y"}  # the open question about Y is its padding
    if domain_of(subject.located.node.domain) != operator.document.domain:
        features |= {"old-domain"}
    for rule in rules_open(operator, subject.operator.since_version, features):
        text = f"the specification does not settle this, and the model relies on it: {rule.text}"
        yield Broken(rule.id, text)
    if measured and sample is not None and sample.element:
        yield from measured_outcomes(measured, sample)
