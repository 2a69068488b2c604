"""The feeds that a session runs before the case's own inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..condition import of_values
from ..tensors.draft import TensorDraft
from .turns import CourseDraft, Turn

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
    levels = {"basic": ("none", "data"), "sequence": ("none", "data")}
    required = {"complete": ("rerun",)}
    words = {"rerun": "a re-used session"}
    columns = ("rerun",)
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
