"""The element type of all tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..context import Context, values_of
from ..observed import Observed

__all__ = ["ELEMENT_TYPE"]

_TYPES = ("float32", "float64", "float16", "bfloat16")


class _ElementType(Axis):
    """float32 first, since that is what runtimes have first."""

    name = "type"
    fields = (Field("type", str, "float32"),)
    part = "model"
    order = _TYPES

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"type": Domain(tuple(t for t in _TYPES if t in operator.types))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        known = {value: None for operator in operators for value in self.domains(operator)["type"].values}
        yield from values_of("type", tuple(known))

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        own = observed.configuration.format.name
        return {name: name == own for name in observed.node.operator.types}


ELEMENT_TYPE = _ElementType()
