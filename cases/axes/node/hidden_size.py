"""The attribute hidden_size, there or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field
from ..condition import of_values
from ..violation import Draft, Violation, sized


def _off(by: int) -> Callable[[Draft], None]:
    def change(draft: Draft) -> None:
        draft.attributes["hidden_size"] = draft.H + by

    return change


class HiddenSizeAxis(Axis):
    """The attribute ``hidden_size``, which the shape of R says too."""

    name = "hidden_size"
    fields = (Field("hidden_size", bool, True),)
    part = "model"
    forbidden: tuple[Violation, ...] = (
        *(
            Violation(
                f"hidden-size.{word}", "load", f"hidden_size is {word} by one than the last dimension of R", _off(by)
            )
            for word, by in (("larger", 1), ("smaller", -1))
        ),
        Violation(
            "hidden-size.R-columns",
            "load",
            "R has a column more than hidden_size, and than a gate has rows",
            sized("R", 2, lambda n: n + 1),
        ),
    )
    levels = {"basic": (True,)}
    conditions = {False: (of_values("no hidden_size", "hidden_size", False),)}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"hidden_size": Domain((True, False), often=(True, True, True, False))}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"hidden_size": spec.H} if spec.hidden_size else {}


HIDDEN_SIZE = HiddenSizeAxis()
