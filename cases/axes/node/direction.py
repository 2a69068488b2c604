"""Direction: forward, reverse or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..observed import Observed
from ..violation import Violation, set_to
from .functions import first_functions


class _Direction(Axis):
    """The attribute ``direction``."""

    name = "direction"
    fields = (Field("direction", str, "forward"),)
    part = "model"
    order = ("forward", "reverse", "bidirectional")
    forbidden = tuple(
        Violation(
            f"direction.{value}",
            "load",
            f"direction is '{value}', none of forward, reverse and bidirectional",
            set_to("direction", value),
        )
        for value in ("sideways", "backward")
    )
    levels = {"basic": ("forward",), "sequence": order}
    required = {"basic": ("forward",), "sequence": ("reverse", "bidirectional")}
    words = {
        "direction-absent": "no direction",
        "forward": "the forward direction",
        "reverse": "the reverse direction",
        "bidirectional": "bidirectional nodes",
    }
    columns = ("forward", "reverse", "bidirectional")
    conditions = {
        "reverse": (
            of_values(words["reverse"], "direction", "reverse", "bidirectional"),
            of_values("the reverse direction alone", "direction", "reverse"),
        ),
        "bidirectional": (of_values("both directions", "direction", "bidirectional"),),
    }
    absences = dict.fromkeys(("forward", "reverse"), of_values("one direction", "direction", "forward", "reverse"))

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("forward", "reverse", "bidirectional", "bidirectional")
        return {"direction": Domain(("forward", "reverse", "bidirectional"), often=often)}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.direction == "forward" else {"direction": spec.direction}

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        directions = observed.configuration.directions
        return {
            "direction-absent": "direction" not in observed.attributes,
            "forward": "forward" in directions,
            "reverse": "reverse" in directions,
            "bidirectional": len(directions) == 2,
        }

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Each direction has functions of its own: those of the one that is left stay, with coefficients for them."""
        for name, changes in super().simpler(spec):
            if spec.activations and spec.directions == 2:
                each = len(spec.activations) // 2
                left = slice(None, each) if changes["direction"] == "forward" else slice(each, None)
                changes = {**changes, **first_functions(spec, left)}
            yield name, changes

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"direction": "bidirectional"} if spec.activations is None else {}


DIRECTION = _Direction()
