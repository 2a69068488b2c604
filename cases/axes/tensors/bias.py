"""The bias, there or not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..observed import Observed
from ..violation import Violation, sized
from .draft import TensorDraft


class BiasAxis(Axis):
    """The input B."""

    name = "bias"
    fields = (Field("bias", bool, False),)
    part = "model"
    forbidden: tuple[Violation, ...] = (
        Violation(
            "shapes.B-length",
            "load",
            "B is half as long as it must be: it lacks the recurrent biases",
            sized("B", 1, lambda n: n // 2),
            {"bias": True},
        ),
    )
    required = {"basic": ("bias",)}
    words = {"bias": "bias"}
    columns = ("bias",)
    marked = "bias"
    conditions = {True: (of_values(words["bias"], "bias", True),)}
    absences = {False: of_values("no bias", "bias", False)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"bias": Domain((False, True), often=(True, True, False))}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        if spec.bias:
            draft.hold("B", (draft.D, 2 * draft.G * draft.H), -1)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"bias": "B" in observed.inputs}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"bias": True}


BIAS = BiasAxis()
