"""Axes of quantized nodes: types, scales and zero points of their levels."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ...reference import OperatorVersion
from .axis import Axis, Domain, Field, Rule
from .session import EVENTFUL

BLOCK = "quantized"
"""The profile that has cases of these axes."""


class Detail(Axis):
    """Axis with one field, given as data.

    name
        Of the axis and of its only field.
    order
        Its values, the usual one first, which every unquantized case has.
    tensors
        The values of ``quantized_tensors`` beside which its own matter; all but the usual one, or ``bound``.
    marked
        Prefix of a value in the id of a case.
    features
        By feature its words, and the values that have it.
    rules
        Further restrictions of its values.
    """

    part = "model"
    block = BLOCK

    def __init__(
        self,
        name: str,
        order: tuple[str, ...],
        *,
        tensors: Collection[str],
        marked: str,
        features: Mapping[str, tuple[str, Collection[str]]],
        bound: tuple[str, ...] = (),
        rules: tuple[Rule, ...] = (),
    ) -> None:
        usual, *others = order
        bound = bound or tuple(others)
        self.name, self.order, self.marked = name, order, f"{marked}-{{}}"
        self.fields = (Field(name, str, usual),)
        self.rules = (
            depends(name, usual, tuple(others)),
            *rules,
            Rule(name, usual, ("quantized_tensors",), lambda row: row["quantized_tensors"] not in tensors, bound),
        )
        self.words = {feature: words for feature, (words, _) in features.items()}
        self._values = {feature: values for feature, (_, values) in features.items()}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        usual, *others = self.order
        return {self.name: Domain((usual,), rare=tuple(others), often=(usual, *self.order), share=0.5)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        value = getattr(spec, self.name)
        return {feature: value in values for feature, values in self._values.items()}


INTEGERS = ("u8", "s8", "u16", "s16")
"""Types of integers by sign and bits."""


_FIRST_OPSET = 7
"""Oldest opset whose models runtimes of quantized nodes accept; operators that it lacks are in com.microsoft's
domain."""

_FINITE = ("dense", "small", "large", "heavy", "one-sign", "exact")
_USUAL: Mapping[str, tuple[Any, ...]] = {
    "type": ("float32",),
    "data": _FINITE,
    "extremes": ("none",),
    "held": ("fixed",),
    # Sessions do no more than run: all else is tried with float models.
    **{field.name: (field.default,) for axis in EVENTFUL for field in axis.fields},
}
"""Values that quantized cases may have, by field."""


def can_be_quantized(operator: OperatorVersion) -> bool:
    """Tell whether there are quantized cases of an operator version."""
    return not operator.domain and "float32" in operator.types and operator.last_opset >= _FIRST_OPSET


def features_of_levels(bits: int) -> frozenset[str]:
    """Return the features of a node whose levels have so many bits; none without levels."""
    return frozenset({"quantized", f"quantized-{bits}-bits"} if bits else ())


def depends(field: str, usual: Any, values: tuple[Any, ...]) -> Rule:
    """Return the rule that a field matters for quantized cases only."""
    return Rule(field, usual, ("quantization",), lambda row: row["quantization"] == "none", values)


class _Quantization(Axis):
    """``none``; ``u8``, ``s8``, ``u16``, ``s16``: the type of all levels, except for constants with a ``weight_type``
    or ``bias_type``. If the opset has no QuantizeLinear of the type, it is com.microsoft's."""

    name = "quantization"
    fields = (Field("quantization", str, "none"),)
    part = "model"
    block = BLOCK
    order = ("none", *INTEGERS)
    rules = (
        *(
            Rule("quantization", "none", (field,), lambda row, f=field, v=values: row[f] not in v, INTEGERS)  # type: ignore[misc]
            for field, values in _USUAL.items()
        ),
        # A calibration has nothing to say of no numbers.
        Rule("quantization", "none", ("T", "N"), lambda row: not (row["T"] and row["N"]), INTEGERS),
    )
    # Who cannot take levels is not denied a certificate of float nodes.
    levels = {"basic": ("none",), "sequence": ("none",), "complete": ("none",)}
    words = {
        "quantized": "quantized tensors",
        "quantized-8-bits": "levels of 8 bits",
        "quantized-16-bits": "levels of 16 bits",
    }
    columns = ("quantized-8-bits", "quantized-16-bits")
    marked = "{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        return {"quantization": Domain(("none",), rare=INTEGERS, often=("none",) * 60 + INTEGERS, share=0.1)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.quantization == "none":
            return None
        if spec.illegal:
            return "quantization", "'none' in a forbidden model"
        broken = next((rule for rule in self.rules if rule.hit(vars(spec))), None)
        if broken is None:
            return None
        fields = " and ".join(f"{name} {getattr(spec, name)!r}" for name in broken.reads)
        return "quantization", f"'none' with {fields}"

    def used(self, spec: Any) -> Mapping[str, bool]:
        features = features_of_levels(0 if spec.quantization == "none" else int(spec.quantization[1:]))
        return {name: name in features for name in self.words}


QUANTIZATION = _Quantization()


WEIGHT_TYPE = Detail(
    "weight_type",
    ("same", *INTEGERS),
    tensors=("all", "inputs", "weights", "W", "R", "P"),
    marked="weights",
    features={"other-weight-type": ("weights of another integer type than X", INTEGERS)},
    rules=(
        Rule(
            "weight_type",
            "same",
            ("quantization",),
            lambda row: row["weight_type"] == row["quantization"],
            INTEGERS,
            kind="same",
        ),
    ),
)
"""``same`` as X; ``u8``, ``s8``, ``u16``, ``s16``: type of W, R, P, and of B if ``bias_type`` is ``same``. NPUs have X
and states in 16 bits beside weights in 8."""


CHANNELS = Detail(
    "channels",
    ("tensor", "directions", "rows"),
    tensors=("all", "inputs", "weights", "W", "R"),
    marked="by",
    features={"per-channel": ("scales per channel", ("directions", "rows"))},
)
"""``tensor``: one of each for a tensor; ``directions``: along axis 0 of W, R and P; ``rows``: along axis 1 of W and R,
shared by both directions."""


_ORDER = ("same", "float", "product", "int32")
_ALONE = ("float", "product")
# Beside what B may be a number, or have the scale of a product: X and W have levels there.
_LEVELS_OF_X_AND_W = ("all", "inputs")

BIAS_TYPE = Detail(
    "bias_type",
    _ORDER,
    tensors=("all", "inputs", "weights", "B"),
    marked="bias",
    features={
        "integer-bias": ("a bias in int32", ("product", "int32")),
        "product-bias": ("a bias of the scale of products", ("product",)),
    },
    rules=(
        Rule("bias_type", "same", ("bias",), lambda row: not row["bias"], _ORDER[1:]),
        Rule(
            "bias_type",
            "same",
            ("quantized_tensors",),
            lambda row: row["quantized_tensors"] not in _LEVELS_OF_X_AND_W,
            _ALONE,
        ),
    ),
)
"""``same`` as the weights; ``float``; ``product``: int32 with the scale of products of X and W, as integer kernels add
it; ``int32`` with another scale."""


_SEVERAL = ("inputs", "outputs", "weights", "data")
_OUTPUTS = ("Y", "Y_h", "Y_c")
# By tensor the field of a case by which it is there; nothing where it always is.
_NEEDS = {"X": "", "W": "", "R": "", "B": "bias", "P": "peepholes", "states": "initial", **dict.fromkeys(_OUTPUTS, "")}
_ABSENT = (False, "none")


# Values that designs have in the place of names.
_ASKED = {"all": _OUTPUTS, "Y": ("Y",), "Y_h": ("Y_h",), "no-Y_h": ("Y", "Y_c"), "states": ("Y_h", "Y_c")}


def _asked(outputs: Any, name: str) -> bool:
    """Tell whether an output is asked for: by a case's tuple of names, or by a design's word."""
    return name in (_ASKED.get(outputs, ()) if isinstance(outputs, str) else outputs)


class _QuantizedTensors(Axis):
    """``all``; ``inputs``, ``outputs``; ``weights`` (W, R, B, P), ``data`` (X, states and outputs); or one alone."""

    name = "quantized_tensors"
    fields = (Field("quantized_tensors", str, "all"),)
    part = "model"
    block = BLOCK
    order = ("all", *_SEVERAL, *_NEEDS)
    rules = (
        depends("quantized_tensors", "all", order[1:]),
        *(
            Rule("quantized_tensors", "all", (field,), lambda row, f=field: row[f] in _ABSENT, (value,))  # type: ignore[misc]
            for value, field in _NEEDS.items()
            if field
        ),
        *(
            Rule("quantized_tensors", "all", ("outputs",), lambda row, v=value: not _asked(row["outputs"], v), (value,))  # type: ignore[misc]
            for value in _OUTPUTS
        ),
    )
    words = {"partly-quantized": "tensors of which some are quantized"}
    marked = "only-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if not can_be_quantized(operator):
            return {}
        there = {*operator.inputs, *operator.outputs}
        values = tuple(v for v in self.order[1:] if v not in ("P", *_OUTPUTS) or v in there)
        return {"quantized_tensors": Domain(("all",), rare=values, often=("all",) * 4 + values, share=0.3)}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"partly-quantized": spec.quantized_tensors != "all"}


QUANTIZED_TENSORS = _QuantizedTensors()


_SCALES_ORDER = ("calibrated", "power", "saturating", "zeroing")

SCALES = Detail(
    "scales",
    _SCALES_ORDER,
    tensors=("all", "inputs", "data", "X"),
    bound=_SCALES_ORDER[2:],
    marked="scales",
    features={
        "scales-of-2": ("scales that are powers of 2", ("power",)),
        "levels-saturate": ("levels at the ends of their type", ("saturating",)),
        "scale-to-zero": ("a scale that makes all 0", ("zeroing",)),
    },
)
"""``calibrated``: with so few digits that they are the same everywhere, and no powers of 2; ``power``: powers of 2;
``saturating``: half of the necessary scale of X and outputs, so that their ends saturate; ``zeroing``: a scale of X so
large that all of it becomes 0."""


ZERO_POINTS = Detail(
    "zero_points",
    ("calibrated", "lowest", "highest", "middle"),
    tensors=("all", "inputs", "outputs", "data", "X", "states", "Y", "Y_h", "Y_c"),
    marked="zero",
    features={"zero-point-at-an-end": ("a zero point at an end of its type", ("lowest", "highest"))},
)
"""``calibrated``; ``lowest``, ``highest``: at an end of their type, so that only numbers of one sign are possible;
``middle``."""
