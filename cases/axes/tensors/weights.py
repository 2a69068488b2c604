"""Which tensors are constants of the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..context import Context, values_of

__all__ = ["CONSTANTS", "WEIGHTS"]

CONSTANTS = ("W", "R", "B", "P")


class _Weights(Axis):
    """``input``: all tensors are graph inputs; ``initializer``: W, R, B and P are constants of the model."""

    name = "weights"
    fields = (Field("weights", str, "input"),)
    part = "model"
    words = {"initializers": "constant weights"}
    lacked = (8, ("initializer",))

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"weights": Domain(("initializer", "input"))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("weights", ("initializer", "input"))

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"initializers": spec.weights == "initializer"}


WEIGHTS = _Weights()
