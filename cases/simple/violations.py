"""Invalid models that follow from the form of an operator: attributes, inputs, outputs, types, shapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ...reference import OperatorVersion
from ...reference.documents.tensors import Extent
from ...reference.faults.derived import in_ids, topic_of_name
from ..axes.violation import Draft, Violation, changed, set_to, sized, unknown_attribute, without_input
from ..specs.model import dtype_named

_OF_ANOTHER_KIND: Mapping[str, Any] = {
    "INT": "1", "FLOAT": "1", "STRING": 1, "INTS": ["1"], "FLOATS": ["1"], "STRINGS": [1],
}  # fmt: skip
"""For the type of an attribute, a value of another type."""

_NO_TYPE = ("float64", "int32")
"""Types that few operators take."""


def form_violations(op: str, version: OperatorVersion) -> tuple[Violation, ...]:
    """Return every violation of the form of an operator version, in a fixed order."""
    return (*_attributes(op, version), *_inputs(version), *_outputs(version), *_types(version), *_shapes(version))


def _attributes(op: str, version: OperatorVersion) -> Iterator[Violation]:
    yield unknown_attribute("unknown", f"{version.name} does not define")
    for name, kind in version.attributes.items():
        description = f"attribute {name} is no {kind}"
        yield Violation(f"attributes.{in_ids(name)}-kind", "check", description, set_to(name, _OF_ANOTHER_KIND[kind]))
    for name, values in version.rules.choices.items():
        topic = topic_of_name(op, name, "attributes")
        for end, value in _unknown_values(values).items():
            if value not in values:
                id = f"{topic}.{in_ids(name)}-{end}"
                yield Violation(id, "load", f"{name} is {value!r}, which it cannot be", set_to(name, value))
    for size, name in version.rules.sizes.items():
        if name not in version.defaults:
            missing = _without_attribute(name)
            yield Violation(f"attributes.{in_ids(name)}-missing", "load", f"there is no {name}", missing)
        description, topic = f"{name} is 0, which says {size}", topic_of_name(op, name, "attributes")
        yield Violation(f"{topic}.{in_ids(name)}-zero", "load", description, set_to(name, 0))


def _unknown_values(values: Sequence[str | int]) -> dict[str, str | int]:
    """Return values that an attribute cannot have, by the end of an id."""
    last = values[-1]
    if isinstance(last, int):
        return {"unknown": 1 + max(int(value) for value in values), "negative": -1}
    return {"unknown": "unknown", "upper-case": last.upper(), "empty": ""}


def _without_attribute(name: str) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.attributes.pop(name, None)

    return change


def _inputs(version: OperatorVersion) -> Iterator[Violation]:
    for name in version.inputs:
        if name in version.required:
            yield Violation(f"inputs.{in_ids(name)}-missing", "check", f"there is no {name}", without_input(name))
    for name, needed in version.rules.needed.items():
        value = needed.values[0]
        description = f"there is no {name}, which {needed.attribute} {value!r} needs"
        base = {needed.attribute: value}
        yield Violation(f"inputs.{in_ids(name)}-needed", "load", description, without_input(name), base)
    yield Violation("inputs.surplus", "check", f"there are {len(version.inputs) + 1} inputs", _one_more_input)


def _one_more_input(draft: Draft) -> None:
    for name in draft.operator.inputs:  # so that the surplus input comes after all of them
        draft.inputs.setdefault(name, np.zeros((), np.float32))
    draft.inputs["surplus"] = draft.inputs[draft.operator.inputs[0]].copy()


def _outputs(version: OperatorVersion) -> Iterator[Violation]:
    for name in version.outputs:
        if name in version.required_outputs:
            description = f"output {name} is missing"
            yield Violation(f"outputs.{in_ids(name)}-missing", "check", description, _without_output(name))
    description = f"there are {len(version.outputs) + 1} outputs"
    yield Violation("outputs.surplus", "check", description, lambda draft: draft.outputs.append("surplus"))


def _without_output(name: str) -> Callable[[Draft], None]:
    return lambda draft: draft.outputs.remove(name)


def _types(version: OperatorVersion) -> Iterator[Violation]:
    for type in _NO_TYPE:
        if type not in version.types:
            description = f"all tensors are {type}"
            yield Violation(f"types.all-{type}", "check", description, _in_type(type, version.inputs))
    for name in version.inputs[1:]:
        alone = [other for other in version.inputs if version.kind_of(other) == version.kind_of(name)] == [name]
        type = "int32" if alone else "float16"
        description = f"{name} is {type} beside tensors of float32"
        yield Violation(f"types.{in_ids(name)}", "check", description, _in_type(type, (name,)))


def _in_type(type: str, names: tuple[str, ...]) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        if names[0] not in draft.inputs:
            raise KeyError(names[0])
        for name in names:
            if name in draft.inputs:
                draft.inputs[name] = draft.inputs[name].astype(dtype_named(type))

    return change


def _shapes(version: OperatorVersion) -> Iterator[Violation]:
    for name in version.inputs:
        ranks = {len(shape) for shape in version.tensors[name].shapes}
        least, most = min(ranks), max(ranks)
        more = changed(name, lambda array: array[np.newaxis])
        yield Violation(f"shapes.{in_ids(name)}-rank-{most + 1}", "load", f"{name} has {most + 1} dimensions", more)
        if least > 1:
            fewer = changed(name, lambda array: array[0])
            yield Violation(
                f"shapes.{in_ids(name)}-rank-{least - 1}", "load", f"{name} has {least - 1} dimensions", fewer
            )
        for axis, extents in enumerate(version.tensors[name].options(most)):
            if all(_said_elsewhere(version, name, extent) for extent in extents):
                sizes = " or ".join(map(str, extents))
                description = f"dimension {axis} of {name} is longer by one than {sizes}"
                longer = sized(name, axis, lambda n: n + 1)
                yield Violation(f"shapes.{in_ids(name)}-axis-{axis}", "load", description, longer)


def _said_elsewhere(version: OperatorVersion, name: str, extent: Extent) -> bool:
    """Return whether another input, always present, or an attribute sets an extent.

    A size that is set first or only here cannot be wrong.
    """
    if not extent.size or extent.size in version.rules.sizes:
        return True
    before = version.inputs[: version.inputs.index(name)]
    return any(extent.size == other.size for earlier in before for other in version.tensors[earlier].shapes[0])
