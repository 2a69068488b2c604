"""Faults derived from the form of a described operator.

There are faults of each input, output and enumerated attribute, of sessions, and of invalid models. A fault violates
the clause with the name of the tensor or attribute (``bias`` of ``conv.bias``), if the table has one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.clauses import base_of, clauses_of
from ..documents.operators import (
    Document,
    OperatorVersion,
    document_of,
    operator_names,
    operator_version,
    versions_of,
)
from .fault import FAULTS, Compute, Outputs, Wrong, fault, fault_of_run

Array = NDArray[Any]

STATELESS, UNCHANGED = "session.stateless", "session.inputs-unchanged"
"""Topics of the clauses on sessions; an operator whose table lacks one has no derived faults of it."""

_ACCEPTED = {
    "attributes": "attributes that its version does not define, or of another type or value",
    "inputs": "too few inputs, or too many",
    "outputs": "outputs that its version does not define, or that one which it demands is missing",
    "shapes": "inputs of invalid shapes",
    "types": "types that the document does not allow, or several at once",
}
"""For each topic, a description of the invalid models that a runtime accepts."""

_ANOTHER_TYPE = {"float16": np.float32, "bfloat16": np.float32, "float32": np.float16}


def in_ids(name: str) -> str:
    """Return a name in the form of ids of clauses, faults and features."""
    return name.lower().replace("_", "-")


def await_derived(document: Document) -> None:
    """Register the derived faults of an operator as soon as faults are needed."""
    FAULTS.await_tables(partial(_derive, document))


def _derive(document: Document) -> None:
    if document not in map(document_of, operator_names()):
        return  # the operator was unregistered
    for function in (_of_inputs, _of_outputs, _of_attributes, _of_models):
        function(document)


@cache
def _topics(op: str) -> frozenset[str]:
    prefix = document_of(op).prefix
    return frozenset(clause.id.removeprefix(f"{prefix}.") for clause in clauses_of(op))


def topic_of_name(op: str, name: str, otherwise: str) -> str:
    """Return the topic of the clause on an input, output or attribute; `otherwise` where the table has none."""
    topic = in_ids(name)
    return topic if topic in _topics(op) else otherwise


def _newest(document: Document) -> OperatorVersion:
    return operator_version(document.name, versions_of(document.name)[-1])


def _own(document: Document, names: Collection[str]) -> Iterator[str]:
    """Return the names that the extended operator, if any, does not have; it already has the faults of the others."""
    base = base_of(document.name)
    inherited: set[str] = set()
    if base is not None:
        version = operator_version(*base)
        inherited = {*version.inputs, *version.outputs, *version.attributes}
    return (name for name in names if name not in inherited)


def _of_inputs(document: Document) -> None:
    version, op, prefix = _newest(document), document.name, document.prefix
    for name in _own(document, version.inputs):
        row: Any = {"operators": (op,)}
        topic = topic_of_name(op, name, "equations")
        if name not in version.required and name not in version.rules.needed:
            fault(f"{prefix}.{in_ids(name)}.ignored", topic, f"Ignores {name}.", partial(_without, name), **row)
        if version.tensors[name].rows:
            words = f"Uses the first row's {name} for all rows."
            fault(f"{prefix}.{in_ids(name)}.first-row", topic, words, partial(_first_row, name), **row)
        if STATELESS in _topics(op):
            words = f"Computes every run with the {name} of the session's first run of the same shape."
            fault_of_run(f"{prefix}.{in_ids(name)}.kept", STATELESS, words, _keeping(name), **row)
        if UNCHANGED in _topics(op):
            words = f"Uses the memory of {name} for results of its own."
            fault_of_run(f"{prefix}.{in_ids(name)}.overwritten", UNCHANGED, words, _overwriting(name), **row)


def _without(name: str, c: Any) -> Any:
    return replace(c, inputs={other: array for other, array in c.inputs.items() if other != name})


def _first_row(name: str, c: Any) -> Any:
    array, axis = c.inputs.get(name), _row_axis(c.operator, name)
    if array is None or not array.shape[axis]:
        return c
    return replace(c, inputs={**c.inputs, name: np.repeat(array.take([0], axis), array.shape[axis], axis)})


def _row_axis(version: OperatorVersion, name: str) -> int:
    return [extent.size for extent in version.tensors[name].shapes[0]].index("batch_size")


def _keeping(name: str) -> Wrong:
    def wrong(compute: Compute, c: Any) -> Outputs:
        if name not in c.inputs:
            return compute(c)
        array = c.inputs[name]
        first = compute.memory.setdefault(str(array.shape), array.copy())
        return compute(replace(c, inputs={**c.inputs, name: first}))

    return wrong


def _overwriting(name: str) -> Wrong:
    def wrong(compute: Compute, c: Any) -> Outputs:
        outputs = dict(compute(c))
        array = compute.fed.get(name)
        if array is not None and array.flags.writeable:
            array[...] = np.zeros((), array.dtype)
        return outputs

    return wrong


def _of_outputs(document: Document) -> None:
    version, op, prefix = _newest(document), document.name, document.prefix
    rows: dict[str, tuple[str, Any]] = {
        "zero": ("Returns zeros for {}.", np.zeros_like),
        "shifted": ("Returns {} moved on by one along its last axis.", lambda array: np.roll(array, 1, -1)),
    }
    for name in _own(document, version.outputs):
        topic = topic_of_name(op, name, "equations")
        for end, (words, change) in rows.items():
            if end == "shifted" and not version.tensors[name].shapes[0][-1].size:
                continue  # an axis of length 1
            id = f"{prefix}.{in_ids(name)}.{end}"
            fault_of_run(id, topic, words.format(name), _changing(name, change), operators=(op,))
        id, words = f"{prefix}.{in_ids(name)}.of-another-type", f"Returns {name} in another type than its own."
        fault_of_run(id, topic_of_name(op, "types", topic), words, _typing(name), operators=(op,))


def _changing(name: str, change: Any) -> Wrong:
    def wrong(compute: Compute, c: Any) -> Outputs:
        outputs = dict(compute(c))
        return {**outputs, name: change(outputs[name])} if name in outputs else outputs

    return wrong


def _typing(name: str) -> Wrong:
    def wrong(compute: Compute, c: Any) -> Outputs:
        outputs = dict(compute(c))
        type = c.format_of(name).name
        return {**outputs, name: outputs[name].astype(_ANOTHER_TYPE.get(type, np.float32))}

    return wrong


def _of_attributes(document: Document) -> None:
    version, op, prefix = _newest(document), document.name, document.prefix
    for name in _own(document, version.rules.choices):
        values, usual = version.rules.choices[name], version.defaults.get(name)
        if not isinstance(usual, (str, int)):
            continue
        others = [value for value in values if value != usual]
        for value, taken in [*((value, usual) for value in others), *((usual, value) for value in others[:1])]:
            id = f"{prefix}.{in_ids(name)}.{in_ids(str(value))}-as-{in_ids(str(taken))}"
            words = f"Takes {name} {value} for {taken}."
            if not _can_be_taken(version, name, value, taken):
                continue
            change = partial(_taking, name, value, taken)
            fault(id, topic_of_name(op, name, "equations"), words, change, operators=(op,))


def _can_be_taken(version: OperatorVersion, name: str, value: str | int, taken: str | int) -> bool:
    """Return whether a node with one value of an attribute has all inputs that another value needs."""
    needed = (rule for rule in version.rules.needed.values() if rule.attribute == name)
    return all(value in rule.values or taken not in rule.values for rule in needed)


def _taking(name: str, value: str | int, taken: str | int, c: Any) -> Any:
    return replace(c, attributes={**c.attributes, name: taken}) if c.attributes.get(name) == value else c


def _of_models(document: Document) -> None:
    if base_of(document.name) is not None:
        return
    op, prefix = document.name, document.prefix
    choices = {in_ids(name): f"values of {name} that there are not" for name in _newest(document).rules.choices}
    for topic, words in {**_ACCEPTED, **choices}.items():
        if topic in _topics(op):
            id = f"{prefix}.accepts.{topic}"
            fault(id, topic, f"Silently accepts {words}.", lambda c: c, operators=(op,), kind="accepts")
