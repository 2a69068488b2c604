"""The initial states that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion, cell_named
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..observed import Observed
from ..violation import Draft, Violation, has, sized
from .draft import TensorDraft


def _one_input_more(draft: Draft) -> None:
    """Add an input behind the last one; GRU and RNN get the one that LSTM has there."""
    name = "extra" if "initial_c" in draft.operator.inputs else "initial_c"
    draft.inputs[name] = draft.inputs["initial_h"].copy()


_ALL = {"initial": "all"}
_FORBIDDEN = (
    *(
        Violation(
            f"shapes.{name.replace('_', '-')}",
            "load",
            f"{name} has one row for a batch of several",
            sized(name, 1, lambda n: 1),
            _ALL,
            has(name),
        )
        for name in ("initial_h", "initial_c")
    ),
    Violation(
        "inputs.too-many",
        "check",
        "there is an input behind the last one that the operator defines",
        _one_input_more,
        _ALL,
    ),
)


_SOME = of_values("initial states", "initial", "all", "h", "c")


class _Initial(Axis):
    """``none``, ``all``, or the name of one (``h``, ``c``)."""

    name = "initial"
    fields = (Field("initial", str, "none"),)
    part = "model"
    forbidden = _FORBIDDEN
    order = ("none", "h", "c", "all")
    required = {"basic": ("initial-state", "initial-state-absent")}
    words = {"initial-state": "initial states", "initial-state-absent": "no initial state"}
    columns = ("initial-state",)
    marked = "initial-{}"
    conditions = {
        "all": (of_values("all initial states", "initial", "all"), _SOME),
        **{
            name: (
                of_values(f"initial_{name}", "initial", name, "all"),
                of_values(f"initial_{name} alone", "initial", name),
                _SOME,
            )
            for name in ("h", "c")
        },
    }
    absences = {"none": of_values("no initial states", "initial", "none")}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("none", "none", "all", "all", "all", "h", "c")
        values = ("none", "all", "h", *cell_named(operator.known_as).inner)
        return {"initial": Domain(values, often=tuple(value for value in often if value in values))}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        for name in ("h", *draft.cell.inner):
            if spec.initial in ("all", name):
                draft.draw(f"initial_{name}", draft.of_state, draft.of_states)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        formal = observed.node.operator.inputs
        given = [name in observed.inputs for name in formal if name.startswith("initial_")]
        return {"initial-state": any(given), "initial-state-absent": not all(given)}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"initial": "all"}


INITIAL = _Initial()
