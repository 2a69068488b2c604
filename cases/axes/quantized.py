"""Axes of quantized nodes: types, scales and zero points of their levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from operator import eq
from typing import Any

from ...reference import OperatorVersion
from .axis import Axis, Feature, Kind, Rule, choice, needs, needs_numbers
from .session import EVENTFUL

INTEGERS = ("u8", "s8", "u16", "s16")
"""Types of integers by sign and bits."""

_FIRST_OPSET = 7
"""Oldest opset whose models runtimes of quantized nodes accept.

Operators that it lacks are in com.microsoft's domain.
"""

_OUTPUTS = ("Y", "Y_h", "Y_c")


def can_be_quantized(operator: OperatorVersion, value: Any = None) -> bool:
    """Return whether an operator version has quantized cases."""
    return not operator.domain and "float32" in operator.types and operator.last_opset >= _FIRST_OPSET


def features_of_levels(bits: int) -> frozenset[str]:
    """Return the features of a node whose levels have `bits` bits; none without levels."""
    return frozenset({"quantized", f"quantized-{bits}-bits"} if bits else ())


def _levels(bits: int) -> Feature:
    def has(spec: Any) -> bool:
        return bool(spec.quantization[1:] == str(bits))

    return Feature(f"quantized-{bits}-bits", f"levels of {bits} bits", case=has, column=True)


_USUAL: Mapping[str, tuple[Any, ...]] = {
    "type": ("float32",),
    "data": ("dense", "small", "large", "heavy", "one-sign", "exact"),
    "extremes": ("none",),
    "held": ("fixed",),
    "illegal": ("",),
    # Sessions only run: all other actions are tested with float models.
    **{axis.name: axis.values[:1] for axis in EVENTFUL},
}
"""Values that quantized cases may have, by field."""


def _unless(field: str, values: Collection[Any], of: tuple[Any, ...] | None = None, kind: Kind = "same") -> Rule:
    """Return the rule that a field must have one of some values."""
    return Rule((field,), lambda value: value not in values, of, kind=kind)


# none; the type of all levels, except for constants with a weight_type or bias_type. If the opset has no QuantizeLinear
# of the type, it is com.microsoft's.
QUANTIZATION = choice(
    "quantization",
    "none",
    INTEGERS,
    60,
    there=can_be_quantized,
    rules=(
        *(_unless(field, values, kind="illegal") for field, values in _USUAL.items()),
        # Without numbers there is nothing to calibrate.
        needs_numbers(kind="illegal"),
    ),
    level="none",  # a runtime without quantized nodes can still get a certificate for float nodes
    features=(
        Feature("quantized", "quantized tensors", case=lambda spec: spec.quantization != "none"),
        *map(_levels, (8, 16)),
    ),
    marked="{}",
)


_FOR_QUANTIZED = _unless("quantization", INTEGERS)


def _detail(
    name: str,
    values: tuple[str, ...],
    tensors: Collection[str],
    marked: str,
    features: Mapping[str, tuple[str, Collection[str]]],
    *,
    bound: tuple[str, ...] | None = None,
    rules: tuple[Rule, ...] = (),
) -> Axis:
    """Return the axis of a detail of quantized cases.

    values
        The usual one first, which every other case has.
    tensors
        The values of ``quantized_tensors`` for which its values matter; all but the usual one, or `bound`.
    features
        By feature its description, and the values that have it.
    """
    usual, *others = values

    def has(own: Collection[str]) -> Any:
        return lambda spec: getattr(spec, name) in own

    return choice(
        name,
        usual,
        tuple(others),
        2,
        there=can_be_quantized,
        rules=(
            _FOR_QUANTIZED,
            *rules,
            _unless("quantized_tensors", tensors, bound),
        ),
        features=tuple(Feature(feature, words, case=has(own)) for feature, (words, own) in features.items()),
        marked=f"{marked}-{{}}",
    )


# same as X; or the type of W, R, P, and of B if bias_type is same. NPUs have X and states in 16 bits, weights in 8.
WEIGHT_TYPE = _detail(
    "weight_type",
    ("same", *INTEGERS),
    ("all", "inputs", "weights", "W", "R", "P"),
    "weights",
    {"other-weight-type": ("weights of another integer type than X", INTEGERS)},
    rules=tuple(Rule(("quantization",), partial(eq, integers), (integers,)) for integers in INTEGERS),
)

# tensor: one of each for a tensor; directions: along axis 0 of W, R and P; rows: along axis 1 of W and R, shared by
# both directions
CHANNELS = _detail(
    "channels",
    ("tensor", "directions", "rows"),
    ("all", "inputs", "weights", "W", "R"),
    "by",
    {"per-channel": ("scales per channel", ("directions", "rows"))},
)

# same as the weights; float; product: int32 with the scale of products of X and W, as integer kernels add it; int32
# with another scale
BIAS_TYPE = _detail(
    "bias_type",
    ("same", "float", "product", "int32"),
    ("all", "inputs", "weights", "B"),
    "bias",
    {
        "integer-bias": ("a bias in int32", ("product", "int32")),
        "product-bias": ("a bias of the scale of products", ("product",)),
    },
    rules=(
        _unless("bias", (True,)),
        # For B to be a plain number, or to have the scale of a product, X and W must have levels.
        _unless("quantized_tensors", ("all", "inputs"), ("float", "product")),
    ),
)


_TENSORS = ("inputs", "outputs", "weights", "data", "X", "W", "R", "B", "P", "states", *_OUTPUTS)

# all; inputs, outputs; weights (W, R, B, P), data (X, states and outputs); or one alone
QUANTIZED_TENSORS = choice(
    "quantized_tensors",
    "all",
    _TENSORS,
    4,
    there=lambda operator, value: (
        can_be_quantized(operator) and (value not in ("P", *_OUTPUTS) or value in (*operator.inputs, *operator.outputs))
    ),
    rules=(
        _FOR_QUANTIZED,
        *needs({"B": "bias", "P": "peepholes", "states": "initial"}),
        *(Rule(("outputs",), lambda outputs, name=name: name not in outputs, (name,)) for name in _OUTPUTS),
    ),
    features=(
        Feature(
            "partly-quantized", "tensors of which some are quantized", case=lambda spec: spec.quantized_tensors != "all"
        ),
    ),
    marked="only-{}",
)

# calibrated: with so few digits that they are the same everywhere, and no powers of 2; power: powers of 2; saturating:
# half of the necessary scale of X and outputs, so that their ends saturate; zeroing: a scale of X so large that all of
# it becomes 0
SCALES = _detail(
    "scales",
    ("calibrated", "power", "saturating", "zeroing"),
    ("all", "inputs", "data", "X"),
    "scales",
    {
        "scales-of-2": ("scales that are powers of 2", ("power",)),
        "levels-saturate": ("levels at the ends of their type", ("saturating",)),
        "scale-to-zero": ("a scale that makes all 0", ("zeroing",)),
    },
    bound=("saturating", "zeroing"),
)

# calibrated; lowest, highest: at an end of their type, so that only numbers of one sign are possible; middle
ZERO_POINTS = _detail(
    "zero_points",
    ("calibrated", "lowest", "highest", "middle"),
    ("all", "inputs", "outputs", "data", "X", "states", *_OUTPUTS),
    "zero",
    {"zero-point-at-an-end": ("a zero point at an end of its type", ("lowest", "highest"))},
)

QUANTIZED: tuple[Axis, ...] = (QUANTIZATION, WEIGHT_TYPE, CHANNELS, BIAS_TYPE, QUANTIZED_TENSORS, SCALES, ZERO_POINTS)
"""All of these axes; the profile ``quantized`` has their cases."""
