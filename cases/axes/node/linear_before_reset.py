"""The place of GRU's reset gate: linear_before_reset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion, operator_version, versions_of
from ..axis import Axis, Domain, Field
from ..observed import Observed
from ..violation import unknown_attribute


def _ever(operator: OperatorVersion) -> bool:
    """Tell whether some version of an operator has the attribute."""
    op, domain = operator.op_type, operator.domain
    return any("linear_before_reset" in operator_version(op, v, domain).attributes for v in versions_of(op, domain))


def _came_later(operator: OperatorVersion) -> bool:
    """Tell whether a version lacks the attribute, and another of its operator has it."""
    return "linear_before_reset" not in operator.attributes and _ever(operator)


class _LinearBeforeReset(Axis):
    """The attribute ``linear_before_reset``."""

    name = "linear_before_reset"
    fields = (Field("linear_before_reset", int | None, None),)
    part = "model"
    forbidden = (unknown_attribute("linear_before_reset", "the version does not define", _came_later),)
    levels = {"basic": (None,), "sequence": (None,)}
    required = {"complete": ("linear-before-reset",)}
    words = {
        "linear-before-reset": "linear_before_reset",
        "linear-before-reset-not-one": "a linear_before_reset other than 0 and 1",
        "reset-before-linear": "linear_before_reset 0",
    }
    columns = ("linear-before-reset",)

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        if "linear_before_reset" not in operator.attributes:
            return {}
        return {"linear_before_reset": Domain((None, 1), rare=(0, 2, -1, 255), often=(None, None, 1, 1, 0, 2))}

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {} if "linear_before_reset" in operator.attributes else {"linear_before_reset": (None,)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        linear = spec.linear_before_reset
        if linear is not None and (type(linear) is not int or not -(2**63) <= linear < 2**63):
            return "linear_before_reset", "None or a whole number of 64 bits"
        return None

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        given = spec.linear_before_reset
        return {} if given is None else {"linear_before_reset": given}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        if not _ever(observed.node.operator):
            return {}
        linear = observed.configuration.linear_before_reset
        return {
            "linear-before-reset": linear,
            "linear-before-reset-not-one": observed.attributes.get("linear_before_reset", 0) not in (0, 1),
            "reset-before-linear": not linear,
        }

    def mark(self, spec: Any) -> str:
        return "linear-before-reset" if spec.linear_before_reset else ""


LINEAR_BEFORE_RESET = _LinearBeforeReset()
