"""The opset of the model: the first or the last in which a node means its operator version."""

from __future__ import annotations

from collections.abc import Mapping

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import of_values


class _Opset(Axis):
    """Kernels are registered for ranges of opsets, and a range can end too early."""

    name = "opset"
    fields = (Field("opset", str, "first"),)
    part = "model"
    conditions = {"last": (of_values("a later opset", "opset", "last"),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"opset": Domain(("first", "last"))}


OPSET = _Opset()
