"""Lengths of rows: sequence_lens, or none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ....reference import OperatorVersion
from ..axis import Axis, Domain, Field, Rule
from ..condition import Condition, of_values
from ..generator import integers
from ..observed import Observed
from ..violation import Draft, Violation, changed, sized
from .draft import TensorDraft
from .reach import reached


def longest(row: Any) -> int:
    """Steps of the longest row."""
    steps = row.T - 1 if row.lengths == "short" else row.T
    if row.lengths == "empty" and row.N < 3:
        steps = max(row.T - 1, 1) if row.N == 2 else 0
    return reached(steps, row.T, row.reach)


def has_short_row(row: Any) -> bool:
    """Tell whether some row has fewer steps than there are."""
    if row.reach != "whole":
        return True
    if row.lengths == "ragged":
        return bool(row.T > 1 and row.N > 1)
    return bool(row.lengths == "empty" or (row.T > 1 and row.lengths == "short"))


def _last_length(change: Callable[[int], int]) -> Callable[[Draft], None]:
    """Change the last row's length; the others are whole."""

    def change_last(draft: Draft) -> None:
        lengths = draft.inputs["sequence_lens"].copy()
        lengths[-1] = change(int(lengths[-1]))
        draft.inputs["sequence_lens"] = lengths

    return change_last


_FULL = {"lengths": "full"}
_FORBIDDEN = (
    Violation(
        "shapes.lens-length",
        "load",
        "sequence_lens has one element less than the batch has rows",
        sized("sequence_lens", 0, lambda n: n - 1),
        _FULL,
    ),
    Violation(
        "lengths.above-T",
        "run",
        "sequence_lens holds a length above seq_length",
        _last_length(lambda length: length + 1),
        _FULL,
    ),
    Violation("lengths.negative", "run", "sequence_lens holds a length of -1", _last_length(lambda length: -1), _FULL),
    Violation(
        "types.lens-int64",
        "check",
        "sequence_lens is int64, not int32",
        changed("sequence_lens", lambda array: array.astype(np.int64)),
        _FULL,
    ),
)


_GIVEN = of_values("sequence_lens", "lengths", "full", "short", "ragged", "empty")
_SHORTER = Condition("a row shorter than the sequence", lambda spec: spec.lengths != "absent" and has_short_row(spec))


class _Lengths(Axis):
    """``absent``, ``full``, ``short`` (equal, below T), ``ragged`` (unsorted), ``empty`` (ragged, one row of 0)."""

    name = "lengths"
    fields = (Field("lengths", str, "absent"),)
    order = ("absent", "full", "short", "ragged", "empty")
    rules = (
        Rule("lengths", "full", ("T",), lambda row: row["T"] < 2, ("ragged", "short")),
        Rule("lengths", "full", ("T", "N"), lambda row: not (row["T"] and row["N"]), ("empty",)),
        # One row that is called ragged is as long as all of them.
        Rule("lengths", "short", ("N",), lambda row: row["N"] < 2, ("ragged",), kind="same"),
    )
    forbidden = _FORBIDDEN
    levels = {"basic": ("absent",), "sequence": order}
    required = {"sequence": ("lengths", "short-row")}
    words = {
        "lengths": "sequence_lens",
        "lengths-absent": "no sequence_lens",
        "short-row": "a row shorter than the sequence",
        "unsorted": "unsorted lengths",
        "empty-row": "a row of length 0",
    }
    columns = ("lengths",)
    marked = "lengths-{}"
    conditions = {
        "full": (_GIVEN,),
        "short": (_SHORTER, _GIVEN),
        "ragged": (of_values("rows of several lengths", "lengths", "ragged", "empty"), _SHORTER, _GIVEN),
        "empty": (of_values("a row of length 0", "lengths", "empty"), _SHORTER, _GIVEN),
    }
    absences = {"absent": of_values("no sequence_lens", "lengths", "absent")}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        often = ("absent", "ragged", "ragged", "full", "short", "empty")
        return {"lengths": Domain(("absent", "ragged", "full", "short"), rare=("empty",), often=often)}

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        if spec.lengths != "absent":
            draft.inputs["sequence_lens"] = _lengths(spec, draft).astype(np.int32)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        given, c = observed.inputs.get("sequence_lens"), observed.configuration
        return {
            "lengths": given is not None,
            "lengths-absent": given is None,
            "short-row": c.ragged,
            "unsorted": bool((c.lengths[1:] > c.lengths[:-1]).any()),
            "empty-row": bool((c.lengths == 0).any()) or c.T == 0,
        }

    def richer(self, spec: Any) -> Mapping[str, Any]:
        return {"lengths": "ragged"}


def _lengths(spec: Any, draft: TensorDraft) -> Any:
    T, N = draft.T, draft.N
    lengths = np.full(N, T, np.int64)
    if spec.lengths == "short":
        lengths[:] = max(T - 1, 0)
    elif spec.lengths in ("ragged", "empty") and N and T:
        run = 0 if "sequence_lens" in spec.constants else draft.run
        lengths = integers(f"lengths/{spec.seed}/{run}", N, 1, max(T - 1, 1))
        # Unsorted: the longest row is neither first nor last where there are enough rows.
        lengths[N // 2] = T
        if N > 1:
            lengths[0] = min(lengths[0], max(T - 1, 1))
        if spec.lengths == "empty":
            lengths[-1] = 0
            if N > 2:
                lengths[0] = 1
    return lengths


LENGTHS = _Lengths()
