"""Axes of scales and zero points: the quantization of each tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from ...axes.activations import finite_float32
from ...axes.axis import Axis, Changes, Condition, Feature, of_values
from ...axes.generator import uniform
from ...axes.violation import Draft, Violation, changed, set_to
from ...specs.data import TensorDraft

Change = Callable[[Draft], None]


def broken(id: str, topic: str, feature: str, summary: str, change: Change, spoils: bool = False) -> Violation:
    """Return a violation of the clause of a topic, due when the model is loaded."""
    return Violation(id, "load", summary, change, breaks=topic, feature=feature, spoils=spoils)


def each(*changes: Change) -> Change:
    """Return a change that makes several changes in order."""

    def change(draft: Draft) -> None:
        for one in changes:
            one(draft)

    return change


def without(name: str) -> Change:
    """Return a change that removes an attribute."""
    return lambda draft: draft.attributes.__delitem__(name)


def cast(dtype: Any) -> Change:
    """Return a change that converts all inputs to another type."""
    return each(*(changed(name, lambda array: array.astype(dtype)) for name in ("X", "W", "R", "B")))


one_direction: Change = each(*(changed(name, lambda array: array[:1]) for name in ("W", "R", "B")))
"""Change that keeps only the weights of the first direction."""


HIGHEST, MIDDLE = 65535, 32768
"""The highest and the middle level of uint16."""

Affine = tuple[float, int]

COARSE = 2.0**-9  # a y_scale at which roundings are visible in few digits
IN_RANGE = 0.999
"""Outputs lie between -1 and 1: a range that ends below this saturates."""
_PLAIN: Affine = (2.0**-15, MIDDLE)
"""Levels that reach 1 on both sides."""
_PAIR = f"any pair of a positive float32 scale and a zero point from 0 to {HIGHEST}"


def calibrated(low: float, high: float) -> Affine:
    """Return scale and zero point of a range as the producer's calibration computes them: range/65535 in float32,
    uint16."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / HIGHEST)) or 1.0  # 1 if all numbers are zero
    return scale, int(np.clip(np.rint(-low / scale), 0, HIGHEST))


# Scales that a calibration gives for tensors of usual sizes; no product of two scales is a power of two.
X, W, R, B = calibrated(-3.1, 3.3), calibrated(-0.9, 1.0), calibrated(-0.8, 0.7), calibrated(-0.4, 0.5)
Y = calibrated(-1.05, 1.03)


def _is_affine(value: Any) -> bool:
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    scale, zero_point = value
    whole = type(zero_point) is int and 0 <= zero_point <= HIGHEST
    return whole and type(scale) is float and finite_float32(scale) and float(np.float32(scale)) > 0


def _affines(st: Any) -> Any:
    """Return the strategy of scales and zero points.

    Levels of a tensor reach up to 2**(exponent + 16). In most draws numbers have usual sizes. In the others, products
    of two scales exceed what a mantissa of 16 bits and a shift of 32 can hold.
    """
    mantissas = st.sampled_from((1.0, 1.5)) | st.floats(1.0, 2.0, width=32, exclude_max=True)
    exponents = st.one_of(st.just(-15), st.integers(-17, -13), st.integers(-30, -6))
    scales = st.builds(lambda m, e: float(np.float32(m * 2.0**e)), mantissas, exponents)
    zero_points = st.sampled_from((MIDDLE, 0, 32767, HIGHEST)) | st.integers(0, HIGHEST)
    return st.just(_PLAIN) | st.tuples(scales, zero_points)


def numbers(spec: Any, name: str) -> tuple[float, float]:
    """Return the middle of the interval from which a tensor's numbers are drawn, and half its length."""
    (scale, zero_point), fill = getattr(spec, name.lower()), dict(spec.fill).get(name, 1.0)
    low, high = -zero_point * scale * fill, (HIGHEST - zero_point) * scale * fill
    return (low + high) / 2, (high - low) / 2


def _forbidden(name: str) -> Iterator[Violation]:
    scale, zero = f"{name}_scale", f"{name}_zero_point"
    for attribute in (scale, zero):
        words = attribute.replace("_", "-")
        yield broken(
            f"{words}-absent", "scales.required", "scale-absent", f"there is no {attribute}", without(attribute)
        )
    yield broken(f"{name}-scale-list", "scales", "scale-list", f"{scale} is a list", set_to(scale, [0.5, 0.25]))
    kinds = ((zero, "float", "FLOAT", 32768.0), (scale, "int", "INT", 1))
    for attribute, word, kind, value in kinds:
        id, summary = f"{attribute.replace('_', '-')}-{word}", f"{attribute} is {'an' if kind == 'INT' else 'a'} {kind}"
        yield broken(id, "attributes.types", "attribute-type", summary, set_to(attribute, value))
    for word, level in (("negative", -1), ("beyond", HIGHEST + 1)):
        id, summary = f"{name}-zero-point-{word}", f"{zero} is {level}"
        yield broken(id, "zero-points.range", "zero-point", summary, set_to(zero, level))
    sizes = {"zero": 0.0, "negative": -0.001}
    # Whether a loader detects an infinite or NaN scale does not depend on the tensor, so one tensor is enough.
    for word, size in {**sizes, **({"infinite": math.inf, "nan": math.nan} if name == "x" else {})}.items():
        yield broken(f"{name}-scale-{word}", "scales.range", "scale", f"{scale} is {size}", set_to(scale, size))


def _words(name: str) -> Callable[[Any, Collection[Any]], tuple[Condition, ...]]:
    given = Condition(f"{name}_scale", lambda spec: getattr(spec, name, None) is not None)

    def conditions_for(value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        if {*instead} == {None}:
            return (given,)
        scale, zero_point = value
        return of_values(f"{name}_scale {scale:.6g} at zero point {zero_point}", name, value), given

    return conditions_for


def fill_levels(spec: Any, draft: TensorDraft, name: str) -> None:
    """Replace a tensor by numbers in the range of its levels."""
    middle, half = numbers(spec, name)
    drawn = uniform(draft.key(name), draft.inputs[name].shape, draft.precision, 0)
    draft.inputs[name] = (middle + half * drawn).astype(draft.format.dtype)


def _simpler(spec: Any, name: str, usual: Affine) -> Iterator[Changes]:
    """Yield simpler codecs: a calibrated one, one with the zero point in the middle, one whose scale is no power of
    two."""
    affine: Affine | None = getattr(spec, name)
    if affine is None or affine == usual:
        return
    scale, zero_point = affine
    values = [usual, (scale, MIDDLE), *([(scale * 1.25, zero_point)] if is_power(scale) else [])]
    yield from ({name: value} for value in values if value != affine)


def codec_axis(name: str, usual: Affine) -> Axis:
    """Return the axis of the scale and zero point of an input."""
    return Axis(
        name=name,
        values=(_PLAIN,),
        fits=(_is_affine, _PAIR),
        drawn=_affines,
        forbidden=tuple(_forbidden(name)),
        conditions=_words(name),
        simpler=lambda spec: _simpler(spec, name, usual),
        fill=lambda spec, draft: fill_levels(spec, draft, name.upper()),
    )


def _narrow(spec: Any) -> bool:
    return spec.y is not None and representable(spec.y) < IN_RANGE


def _simpler_output(spec: Any) -> Iterator[Changes]:
    yield from _simpler(spec, "y", Y)
    if spec.y is not None:
        yield {"y": None}


def _narrow_node(o: Any) -> bool:
    y = o.configuration.y
    return y is not None and min(-y.least, y.greatest) < IN_RANGE


# Scale and zero point of Y; None where it is not quantized.
OUTPUT_CODEC = Axis(
    name="y",
    values=(None, _PLAIN),
    fits=(lambda value: value is None or _is_affine(value), f"None, or {_PAIR}"),
    drawn=lambda st: st.none() | _affines(st),
    features=(
        Feature(
            "quantized-output",
            "a quantized Y",
            lambda o: o.configuration.y is not None,  # type: ignore[attr-defined]
            lambda spec: spec.y is not None,
        ),
        Feature(
            "float-output",
            "a Y that is not quantized",
            lambda o: o.configuration.y is None,  # type: ignore[attr-defined]
            lambda spec: spec.y is None,
        ),
        Feature("saturating-output", "", _narrow_node, _narrow),
    ),
    conditions=_words("y"),
    simpler=_simpler_output,
)


def is_power(scale: float) -> bool:
    """Return whether a scale, as a float32 attribute, is a power of two."""
    return math.frexp(float(np.float32(scale)))[0] == 0.5


def reach(affine: Affine) -> float:
    """Return the largest absolute value that a level represents."""
    scale, zero_point = affine
    return scale * max(zero_point, HIGHEST - zero_point)


def representable(affine: Affine) -> float:
    """Return the bound up to which levels represent numbers on both sides of zero."""
    scale, zero_point = affine
    return scale * min(zero_point, HIGHEST - zero_point)
