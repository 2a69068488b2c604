"""The tensors that are quantized: each, or some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from .quantization import BLOCK, can_be_quantized, depends

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
