"""The tensors that are constants of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion, operator_version
from ..axis import Axis, Domain, Field
from ..violation import Violation, without_input

CONSTANTS = ("W", "R", "B", "P")
"""The weights of ONNX's own operators."""


def held(operator: OperatorVersion, name: str) -> bool:
    """Tell whether an input is the same in every run: weights, and their scales and zero points."""
    return name in operator.inputs and name != "X" and not operator.tensors[name].rows


class WeightsAxis(Axis):
    """``input``: all tensors are graph inputs; ``initializer``: weights are constants of the model."""

    name = "weights"
    fields = (Field("weights", str, "input"),)
    part = "model"
    forbidden = tuple(
        Violation(f"inputs.missing-{name}", "check", f"{name} is missing", without_input(name)) for name in "WR"
    )
    words = {"initializers": "constant weights"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"weights": Domain(("initializer", "input"))}

    def constants(self, spec: Any, names: frozenset[str]) -> frozenset[str]:
        operator = operator_version(spec.op, spec.version)
        return frozenset(n for n in operator.inputs if held(operator, n)) if spec.weights == "initializer" else names

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"initializers": spec.weights == "initializer"}


WEIGHTS = WeightsAxis()
