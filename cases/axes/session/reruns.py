"""The feeds that a session runs before the case's own inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Having, Rule
from ..condition import of_values
from ..tensors.draft import TensorDraft
from ..tensors.lengths import has_short_row
from .turns import CourseDraft, Turn


def _keeps_lengths(row: Any) -> bool:
    """Tell whether the run before may leave lengths that fit and are others."""
    if row.reach != "whole" and (row.reach == "one" or row.T < 6):
        return False
    if row.reruns == "data":
        return bool(row.T > 2) and (
            (row.lengths == "ragged" and row.N > 1) or (row.lengths == "empty" and row.N not in (1, 3))
        )
    if row.reruns == "sizes":
        return has_short_row(row)
    return bool(row.reruns == "growing" and row.N == 1)


_ANY = of_values("a re-used session", "reruns", "data", "sizes", "growing")
_OTHER_SIZES = of_values("an earlier run of another size", "reruns", "sizes", "growing")


class RerunsAxis(Axis):
    """``none``, ``data`` (others of the same shape), ``sizes`` (others of more steps and rows), ``growing`` (others of
    fewer)."""

    name = "reruns"
    fields = (Field("reruns", str, "none"),)
    part = "session"
    order = ("none", "data", "sizes")
    rules: tuple[Rule, ...] = (
        Rule("reruns", "data", ("T", "N"), lambda row: max(row["T"], row["N"]) < 2, ("growing",)),
    )
    having = {
        "earlier-state": Having(
            ("reruns", "N"), lambda row: row.reruns == "data" or (row.reruns == "growing" and row.N == 1)
        ),
        "earlier-lengths": Having(("reruns", "lengths", "reach", "T", "N"), _keeps_lengths),
    }
    levels = {"basic": ("none", "data"), "sequence": ("none", "data")}
    required = {"complete": ("rerun",)}
    words = {"rerun": "a re-used session"}
    columns = ("rerun",)
    seldom = ("sizes", "growing")
    counted = ("none", "data", "sizes", "growing")
    marked = "after-other-{}"
    conditions = {
        "data": (_ANY,),
        "sizes": (of_values("an earlier run that is larger", "reruns", "sizes"), _OTHER_SIZES, _ANY),
        "growing": (of_values("an earlier run that is smaller", "reruns", "growing"), _OTHER_SIZES, _ANY),
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("none", "none", "none", "data", "sizes", "growing")
        return {"reruns": Domain(("none", "data", "sizes"), rare=("growing",), often=often)}

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        if draft.run == 1 and spec.reruns == "sizes":
            draft.T, draft.N = draft.T + 2, draft.N + 1
        if draft.run == 1 and spec.reruns == "growing":
            draft.T, draft.N = max(draft.T - 2, 1), max(draft.N - 1, 1)

    def course(self, spec: Any, draft: CourseDraft) -> None:
        if spec.reruns != "none":
            draft.turns.insert(0, Turn(1))

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"rerun": spec.reruns != "none"}


RERUNS = RerunsAxis()
