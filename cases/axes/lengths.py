"""Axes of the lengths of rows: sequence_lens, its longest row, and the order of its rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .axis import Axis, Condition, Feature, Rule, choice, of_values
from .generator import integers
from .violation import Draft, Violation, changed, sized

if TYPE_CHECKING:
    from ..specs.features import Observed
    from ..specs.model import TensorDraft


def has_short_row(row: Any) -> bool:
    """Return whether some row has fewer steps than the sequence."""
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


def _fill_lengths(spec: Any, draft: TensorDraft) -> None:
    if spec.lengths == "absent":
        return
    T, N = draft.T, draft.N
    lengths = np.full(N, T, np.int64)
    if spec.lengths == "short":
        lengths[:] = max(T - 1, 0)
    elif spec.lengths in ("ragged", "empty") and N and T:
        run = 0 if "sequence_lens" in spec.constants else draft.run
        lengths = integers(f"lengths/{spec.seed}/{run}", N, 1, max(T - 1, 1))
        # Unsorted: with enough rows, the longest row is neither first nor last.
        lengths[N // 2] = T
        if N > 1:
            lengths[0] = min(lengths[0], max(T - 1, 1))
        if spec.lengths == "empty":
            lengths[-1] = 0
            if N > 2:
                lengths[0] = 1
    draft.inputs["sequence_lens"] = lengths.astype(np.int32)


_FULL = {"lengths": "full"}
_GIVEN = of_values("sequence_lens", "lengths", "full", "short", "ragged", "empty")
_SEVERAL = Condition("rows of several lengths", lambda spec: spec.lengths in ("ragged", "empty") and spec.N > 1)
_EMPTY = Condition("a row of length 0", lambda spec: spec.lengths == "empty" or spec.T == 0)
_EMPTY_IN_LONGER = of_values("a row of length 0 and seq_length above 0", "lengths", "empty")
_SHORTER = Condition("a row shorter than the sequence", lambda spec: spec.lengths != "absent" and has_short_row(spec))

# absent, full, short (equal, below T), ragged (unsorted), empty (ragged, one row of 0)
LENGTHS = Axis(
    name="lengths",
    values=("absent", "full", "short", "ragged", "empty"),
    rare=("empty",),
    often=("absent", "ragged", "ragged", "full", "short", "empty"),
    ordered=True,
    rules=(
        Rule(("T",), lambda T: T < 2, ("ragged", "short"), "full"),
        Rule(("T", "N"), lambda T, N: not (T and N), ("empty",), "full"),
        # A single ragged row has all T steps, as with full: a short one has fewer, so it shows more.
        Rule(("N",), lambda N: N < 2, ("ragged",), "short"),
    ),
    forbidden=(
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
        Violation(
            "lengths.negative", "run", "sequence_lens holds a length of -1", _last_length(lambda length: -1), _FULL
        ),
        Violation(
            "types.lens-int64",
            "check",
            "sequence_lens is int64, not int32",
            changed("sequence_lens", lambda array: array.astype(np.int64)),
            _FULL,
        ),
    ),
    level="sequence",
    features=(
        Feature("lengths", "sequence_lens", lambda o: "sequence_lens" in o.inputs, column=True, level="sequence"),
        Feature("lengths-absent", "no sequence_lens", lambda o: "sequence_lens" not in o.inputs),
        Feature("short-row", "a row shorter than the sequence", lambda o: o.configuration.ragged, level="sequence"),
        Feature("unsorted", "unsorted lengths", lambda o: bool((np.diff(o.configuration.lengths) > 0).any())),
        Feature(
            "empty-row",
            "a row of length 0",
            lambda o: bool((o.configuration.lengths == 0).any()) or o.configuration.T == 0,
        ),
    ),
    marked="lengths-{}",
    conditions={
        "full": (_GIVEN,),
        "short": (_SHORTER, _GIVEN),
        "ragged": (_SEVERAL, _SHORTER, _GIVEN),
        "empty": (_EMPTY, _EMPTY_IN_LONGER, _SHORTER, _GIVEN),
    },
    absences={"absent": of_values("no sequence_lens", "lengths", "absent")},
    richer={"lengths": "ragged"},
    fill=_fill_lengths,
)


def _reached(steps: int, T: int, reach: str) -> int:
    """Return the new number of steps of a row with `steps` of T steps; a row of T steps is the longest."""
    return -(-steps * (T - max(2, T // 3)) // T) if reach == "below" else min(steps, 1)


def _fill_reach(spec: Any, draft: TensorDraft) -> None:
    if spec.reach != "whole" and draft.T > 2:
        given = draft.inputs["sequence_lens"]
        lengths = [_reached(int(steps), draft.T, spec.reach) for steps in given]
        draft.inputs["sequence_lens"] = np.array(lengths, given.dtype)


def _longest(o: Observed) -> int:
    return int(o.configuration.lengths.max(initial=0))


# whole (as in `lengths`), one (no row has more than one step), below (the longest row ends two steps before T or more)
REACH = Axis(
    name="reach",
    values=("whole", "one", "below"),
    rare=("below", "one"),
    often=("whole", "whole", "whole", "whole", "below", "below", "one"),
    ordered=True,
    rules=(
        Rule(("lengths",), lambda lengths: lengths not in ("short", "ragged", "empty")),
        Rule(("T",), lambda T: T < 3, ("below",)),
        Rule(("T",), lambda T: T < 2, ("one",)),
    ),
    level="sequence",
    features=(
        Feature("no-row-whole", "no row of T steps", lambda o: 0 < o.configuration.T != _longest(o)),
        Feature("rows-of-one", "no row of more than one step", lambda o: o.configuration.T > 1 >= _longest(o)),
    ),
    marked="reach-{}",
    fill=_fill_reach,
)


def _fill_row_order(spec: Any, draft: TensorDraft) -> None:
    if spec.row_order != "mixed":
        given = draft.inputs["sequence_lens"]
        draft.inputs["sequence_lens"] = np.array(_arranged(sorted(given.tolist()), spec.row_order), given.dtype)


def _arranged(rising: list[int], order: str) -> list[int]:
    if order in ("rising", "falling") or len(rising) < 2:
        return rising[::-1] if order == "falling" else rising
    *others, longest = rising
    # All other rows are shorter by a step at least, except rows of one step, which is the shortest row that still runs.
    shorter = [min(steps, max(longest - 1, 1)) for steps in others]
    if order == "ends":
        return [longest, *shorter[:-1], longest]
    middle = len(shorter) // 2
    shorter = [*shorter[1:][:middle], *shorter[:1], *shorter[1:][middle:]]
    return [longest, *shorter] if order == "first" else [*shorter, longest]


def _of_uneven(test: Callable[[list[int]], bool]) -> Callable[[Observed], bool]:
    """Return the test of a node's lengths; False if all rows have the same length."""

    def holds(o: Observed) -> bool:
        lengths = o.configuration.lengths.tolist()
        return len(set(lengths)) > 1 and test(lengths)

    return holds


# mixed (the longest row in the middle, an empty one at the end), falling (as packed sequences have it), rising, first
# and last (the longest row stands there, all others are shorter, and an empty one stands in the middle), ends (both of
# these rows are the longest, and those between them shorter)
ROW_ORDER = choice(
    "row_order",
    "mixed",
    ("falling", "rising", "first", "last", "ends"),
    2,
    rules=(
        Rule(("lengths",), lambda lengths: lengths not in ("ragged", "empty")),
        Rule(("N",), lambda N: N < 2),
        Rule(("N",), lambda N: N < 3, ("ends",)),
    ),
    level="sequence",
    features=(
        Feature("falling-lengths", "lengths that fall", _of_uneven(lambda lengths: lengths == sorted(lengths)[::-1])),
        Feature("rising-lengths", "lengths that rise", _of_uneven(lambda lengths: lengths == sorted(lengths))),
        Feature(
            "first-row-longest",
            "a first row that is longer than all others",
            _of_uneven(lambda lengths: lengths[0] > max(lengths[1:])),
        ),
        Feature(
            "last-row-longest",
            "a last row that is longer than all others",
            _of_uneven(lambda lengths: lengths[-1] > max(lengths[:-1])),
        ),
        Feature("empty-row-first", "a first row of length 0", _of_uneven(lambda lengths: lengths[0] == 0)),
        Feature(
            "ends-longest",
            "a first and a last row of the same length beside shorter ones",
            _of_uneven(lambda lengths: lengths[0] == lengths[-1] == max(lengths)),
        ),
    ),
    marked="rows-{}",
    fill=_fill_row_order,
)
