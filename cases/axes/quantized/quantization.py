"""The type in which X, states and outputs are held: numbers, or integers with DequantizeLinear before and
QuantizeLinear behind the node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..session.eventful import EVENTFUL

INTEGERS = ("u8", "s8", "u16", "s16")
"""Types of integers by sign and bits."""

BLOCK = "quantized"
"""The profile that has cases of these axes."""

_FIRST_OPSET = 7
"""The oldest opset whose models runtimes of quantized nodes take; what it lacks itself, com.microsoft's domain has."""

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
    """Features of a node whose levels have so many bits; none without levels."""
    return frozenset({"quantized", f"quantized-{bits}-bits"} if bits else ())


def depends(field: str, usual: Any, values: tuple[Any, ...]) -> Rule:
    """The rule that a field says something of quantized cases alone."""
    return Rule(field, usual, ("quantization",), lambda row: row["quantization"] == "none", values)


class _Quantization(Axis):
    """``none``; ``u8``, ``s8``, ``u16``, ``s16``: the type of all levels, but for what :mod:`.weight_type` and
    :mod:`.bias_type` say of constants. Where the opset has no QuantizeLinear of the type, it is com.microsoft's."""

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
