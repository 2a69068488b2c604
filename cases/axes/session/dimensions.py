"""The model's steps and rows, as numbers or by names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule


class _Dimensions(Axis):
    """``static`` or ``symbolic`` (seq_length and batch_size have names)."""

    name = "dimensions"
    fields = (Field("dimensions", str, "static"),)
    part = "model"
    # Inputs of another size have no place in a model whose dimensions are numbers.
    rules = (
        Rule("dimensions", "symbolic", ("reruns",), lambda row: row["reruns"] in ("sizes", "growing"), ("static",)),
    )
    levels = {"basic": ("static",), "sequence": ("static",)}
    required = {"complete": ("symbolic",)}
    words = {"symbolic": "symbolic dimensions"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"dimensions": Domain(("static", "symbolic"))}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"symbolic": spec.dimensions == "symbolic"}


DIMENSIONS = _Dimensions()
