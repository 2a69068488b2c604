"""The distance of the longest row from T."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..observed import Observed
from .draft import TensorDraft

_RAGGED = ("short", "ragged", "empty")


def reached(steps: int, T: int, reach: str) -> int:
    """Return the number of steps of a row that would have `steps` of T; a row of T steps is the longest."""
    if reach == "below":
        return -(-steps * (T - max(2, T // 3)) // T)
    return min(steps, 1) if reach == "one" else steps


class _Reach(Axis):
    """``whole`` (as in ``lengths``: T in a ragged batch, one less in a short one), ``below`` (the longest row ends at
    least two steps before T), ``one`` (no row has more than one step)."""

    name = "reach"
    fields = (Field("reach", str, "whole"),)
    order = ("whole", "one", "below")
    rules = (
        Rule("reach", "whole", ("lengths",), lambda row: row["lengths"] not in _RAGGED, ("below", "one")),
        Rule("reach", "whole", ("T",), lambda row: row["T"] < 3, ("below",)),
        Rule("reach", "whole", ("T",), lambda row: row["T"] < 2, ("one",)),
    )
    levels = {"basic": ("whole",), "sequence": order}
    words = {"no-row-whole": "no row of T steps", "rows-of-one": "no row of more than one step"}
    marked = "reach-{}"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("whole", "whole", "whole", "whole", "below", "below", "one")
        return {"reach": Domain(("whole",), rare=("below", "one"), often=often)}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        if spec.reach != "whole" and draft.T > 2:
            given = draft.inputs["sequence_lens"]
            lengths = [reached(int(steps), draft.T, spec.reach) for steps in given]
            draft.inputs["sequence_lens"] = np.array(lengths, given.dtype)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        c = observed.configuration
        longest = int(c.lengths.max(initial=0))
        return {"no-row-whole": 0 < c.T != longest, "rows-of-one": c.T > 1 >= longest}


REACH = _Reach()
