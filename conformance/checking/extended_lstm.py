"""The rules of ExtendedLSTM: what of its document can be seen in a model."""

from __future__ import annotations

import math
from collections.abc import Iterator

from .general import attributes, inputs, outputs, types
from .sizes import Extent, Known, agreement
from .subject import Attribute, Broken, Outcome, Subject

__all__ = ["open_features", "outcomes", "shapes_of"]

_HIGHEST = 65535
_REQUIRED = tuple(f"{name}_{part}" for name in "xwrb" for part in ("scale", "zero_point"))


def outcomes(subject: Subject) -> Iterator[Outcome]:
    """Everything that is wrong with a node, and everything that is not known of it."""
    yield from attributes(subject, _of_kind)
    for name in _REQUIRED:
        if name not in subject.attributes:
            yield Broken("scales.required", f"attribute {name} is missing, and there is no default for it")
    yield from inputs(subject)
    yield from outputs(subject)
    yield from types(subject)
    yield from _fixed(subject)
    yield from _quantization(subject)
    yield from _shapes(subject)


def _of_kind(name: str, attribute: Attribute) -> str:
    """A scale that is a list has a clause of its own."""
    return (
        "scales" if name in _REQUIRED and name.endswith("_scale") and attribute.kind == "FLOATS" else "attributes.types"
    )


def _fixed(subject: Subject) -> Iterator[Outcome]:
    """Attributes of which one value only is supported."""
    if "direction" not in subject.attributes:
        yield Broken(
            "directions.default", "there is no direction, so it would be forward: only bidirectional is supported"
        )
    elif (direction := subject.given("direction")) not in ("bidirectional", None):
        yield Broken("directions.supported", f"direction is {direction!r}: only bidirectional is supported")
    for name, topic in (("input_forget", "input-forget"), ("layout", "layout")):
        value = subject.given(name)
        if value not in (0, None):
            yield Broken(topic, f"{name} is {value}: only 0 is supported")


def _quantization(subject: Subject) -> Iterator[Outcome]:
    for name in "xwrby":
        scale, zero_point = subject.given(f"{name}_scale"), subject.given(f"{name}_zero_point")
        if scale is not None and not 0 < scale < math.inf:
            yield Broken("scales.range", f"{name}_scale is {scale:g}: a scale is positive and finite")
        if zero_point is not None and not 0 <= zero_point <= _HIGHEST:
            yield Broken("zero-points.range", f"{name}_zero_point is {zero_point}: it lies between 0 and {_HIGHEST}")


def shapes_of(subject: Subject) -> dict[str, tuple[Extent, ...]]:
    """By input, the shape that the document prints for it."""
    D, I, H = (Extent(name) for name in ("num_directions", "input_size", "hidden_size"))
    return {
        "X": (Extent("seq_length"), Extent("batch_size"), I),
        "W": (D, Extent("hidden_size", 4), I),
        "R": (D, Extent("hidden_size", 4), H),
        "B": (D, Extent("hidden_size", 8)),
    }


def _shapes(subject: Subject) -> Iterator[Outcome]:
    known = {"num_directions": Known(2, "both directions are computed")}
    yield from agreement(subject, shapes_of(subject), known)


def open_features(subject: Subject) -> frozenset[str]:
    """The features by which the document's open clauses know their cases."""
    present = {
        "bidirectional": True,
        "bias": "B" in subject.inputs,
        "bias-absent": "B" not in subject.inputs,
        "hidden-size-absent": "hidden_size" not in subject.attributes,
    }
    return frozenset(name for name, there in present.items() if there)
