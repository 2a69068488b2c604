"""The opset of the model: the first or the last in which a node means its operator version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..context import Context, values_of


class _Opset(Axis):
    """Kernels are registered for ranges of opsets, and a range can end too early."""

    name = "opset"
    fields = (Field("opset", str, "first"),)
    part = "model"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"opset": Domain(("first", "last"))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("opset", ("first", "last"))


OPSET = _Opset()
