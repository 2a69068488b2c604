"""The element type of all tensors."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..observed import Observed
from ..violation import Draft, Violation, changed

_TYPES = ("float32", "float64", "float16", "bfloat16")


def _all_integers(draft: Draft) -> None:
    draft.inputs |= {name: np.rint(array).astype(np.int32) for name, array in draft.inputs.items()}


class _ElementType(Axis):
    """Element type; float32 first, because every runtime has it."""

    name = "type"
    fields = (Field("type", str, "float32"),)
    part = "model"
    forbidden = (
        Violation(
            "types.mixed",
            "check",
            "initial_h is float64 while all else is float32",
            changed("initial_h", lambda array: array.astype(np.float64)),
            {"initial": "all"},
        ),
        Violation("types.integer", "check", "all tensors are int32, which T may not be", _all_integers),
    )
    order = _TYPES
    conditions = {name: (of_values(name, "type", name),) for name in _TYPES}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"type": Domain(tuple(t for t in _TYPES if t in operator.types))}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        own = observed.configuration.format.name
        return {name: name == own for name in observed.node.operator.types}


ELEMENT_TYPE = _ElementType()
