"""Whether the node carries hidden_size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..context import Context, values_of

__all__ = ["HIDDEN_SIZE", "HiddenSizeAxis"]


class HiddenSizeAxis(Axis):
    """The attribute ``hidden_size``, which the shape of R says too."""

    name = "hidden_size"
    fields = (Field("hidden_size", bool, True),)
    part = "model"
    levels = {"basic": (True,)}
    lacked = (8, (True,))

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"hidden_size": Domain((True, False), often=(True, True, True, False))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"hidden_size": spec.H} if spec.hidden_size else {}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("hidden_size", (True, False))


HIDDEN_SIZE = HiddenSizeAxis()
