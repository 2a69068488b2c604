"""Axes of the tensors: their type, sizes and presence, the lengths of rows, and the seeds of their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ...reference import cell_named
from .axis import Axis, Changes, Condition, Feature, Rule, of_values, skips, without_numbers
from .generator import integers
from .violation import Draft, Violation, changed, has, sized

if TYPE_CHECKING:
    from ..specs.data import TensorDraft
    from ..specs.features import Observed

# Type

_TYPES = ("float32", "float64", "float16", "bfloat16")


def _all_integers(draft: Draft) -> None:
    draft.inputs |= {name: np.rint(array).astype(np.int32) for name, array in draft.inputs.items()}


def _type_feature(name: str) -> Feature:
    def own(o: Observed) -> bool | None:
        return o.configuration.format.name == name if name in o.node.operator.types else None

    return Feature(name, node=own)


# float32 first, because every runtime has it.
ELEMENT_TYPE = Axis(
    name="type",
    values=_TYPES,
    there=lambda operator, value: value in operator.types,
    ordered=True,
    forbidden=(
        Violation(
            "types.mixed",
            "check",
            "initial_h is float64 while all else is float32",
            changed("initial_h", lambda array: array.astype(np.float64)),
            {"initial": "all"},
        ),
        Violation("types.integer", "check", "all tensors are int32, which T may not be", _all_integers),
    ),
    features=tuple(map(_type_feature, _TYPES)),
    conditions={name: (of_values(name, "type", name),) for name in _TYPES},
)

# Sizes: T (seq_length), N (batch_size), I (input_size) and H (hidden_size)

LONGEST, HIGHEST_SEED = 2**20, 2**63 - 1
_OTHERS = 3
"""Draws of other numbers with which a smaller size is tried."""


def smaller(name: str) -> Callable[[Any], Iterator[Changes]]:
    """Return the function that yields smaller sizes of a spec. Whether anything shows depends on which numbers there
    are where they are few, so others are tried as well."""

    def changes(spec: Any) -> Iterator[Changes]:
        value = getattr(spec, name)
        seeded = [seed for seed in ("seed", "weights_seed") if seed in spec.__dataclass_fields__]
        # Of nothing at all, one is the plainer size.
        for size in dict.fromkeys((1, 2, 3, value // 2, value - 1)):
            if 0 < size < value or (size == 1 and not value):
                yield {name: size}
                for other in range(1, _OTHERS + 1) if size in (1, value - 1) else ():
                    yield {name: size, **dict.fromkeys(seeded, spec.seed + other)}

    return changes


def whole_number(least: int, most: int) -> tuple[Callable[[Any], bool], str]:
    """Return the test for a whole number within limits, and its description."""
    return lambda value: type(value) is int and least <= value <= most, f"a whole number from {least} to {most}"


def size_axis(name: str, called: str, least: int, **members: Any) -> Axis:
    """Return the axis of a size."""
    return Axis(name=name, called=called, fits=whole_number(least, LONGEST), simpler=smaller(name), **members)


def _one_direction(draft: Draft) -> None:
    for name in ("W", "R"):
        draft.inputs[name] = draft.inputs[name][:1]


STEPS = size_axis(
    "T",
    "step",
    0,
    forbidden=(
        Violation(
            "shapes.X-rank", "load", "X has two dimensions, without a batch", changed("X", lambda array: array[:, 0])
        ),
        Violation("shapes.W-rows", "load", "W has a row too many", sized("W", 1, lambda n: n + 1)),
        Violation(
            "shapes.W-columns", "load", "W has a column more than X has features", sized("W", 2, lambda n: n + 1)
        ),
        Violation(
            "shapes.W-directions",
            "load",
            "W and R of a bidirectional node have one direction",
            _one_direction,
            {"direction": "bidirectional"},
        ),
        Violation("shapes.R-rows", "load", "R has a row too many", sized("R", 1, lambda n: n + 1)),
    ),
    features=(
        Feature("several-rows", "several rows", lambda o: o.configuration.N > 1, level="sequence"),
        Feature(
            "size-one",
            "a size of 1",
            lambda o: 1 in (o.configuration.T, o.configuration.N, o.configuration.I, o.configuration.H),
        ),
        Feature("size-zero", "a size of 0", lambda o: 0 in (o.configuration.T, o.configuration.N)),
        Feature("no-rows", "batch_size 0", lambda o: o.configuration.N == 0),
        Feature("no-steps", "seq_length 0", lambda o: o.configuration.T == 0),
        Feature("input-skipped", "an input skipped", lambda o: skips(o.node.operator.inputs, o.inputs)),
    ),
    conditions={0: (of_values("seq_length 0", "T", 0),)},
)
ROWS = size_axis("N", "row", 0, conditions={0: (of_values("batch_size 0", "N", 0),)})
INPUTS = size_axis("I", "feature of X", 1)
UNITS = size_axis("H", "unit", 1)

# Optional inputs


def _fill_bias(spec: Any, draft: TensorDraft) -> None:
    if spec.bias:
        draft.hold("B", (draft.D, 2 * draft.G * draft.H), -1)


BIAS = Axis(
    name="bias",
    values=(False, True),
    often=(True, True, False),
    forbidden=(
        Violation(
            "shapes.B-length",
            "load",
            "B is half as long as it must be: it lacks the recurrent biases",
            sized("B", 1, lambda n: n // 2),
            {"bias": True},
        ),
    ),
    features=(Feature("bias", "bias", lambda o: "B" in o.inputs, column=True, level="basic"),),
    marked="bias",
    conditions={True: (of_values("bias", "bias", True),)},
    absences={False: of_values("no bias", "bias", False)},
    richer={"bias": True},
    fill=_fill_bias,
)


def _one_input_more(draft: Draft) -> None:
    """Add an input behind the last one; GRU and RNN get the one that LSTM has there."""
    name = "extra" if "initial_c" in draft.operator.inputs else "initial_c"
    draft.inputs[name] = draft.inputs["initial_h"].copy()


def _fill_initial(spec: Any, draft: TensorDraft) -> None:
    for name in ("h", *draft.cell.inner):
        if spec.initial in ("all", name):
            draft.draw(f"initial_{name}", draft.of_state, draft.of_states)


def _initial_states(o: Observed) -> list[bool]:
    return [name in o.inputs for name in o.node.operator.inputs if name.startswith("initial_")]


_SOME = of_values("initial states", "initial", "all", "h", "c")

INITIAL = Axis(
    name="initial",
    values=("none", "h", "c", "all"),
    often=("none", "none", "all", "all", "all", "h", "c"),
    there=lambda operator, value: value != "c" or value in cell_named(operator.known_as).inner,
    ordered=True,
    forbidden=(
        *(
            Violation(
                f"shapes.{name.replace('_', '-')}",
                "load",
                f"{name} has one row for a batch of several",
                sized(name, 1, lambda n: 1),
                {"initial": "all"},
                has(name),
            )
            for name in ("initial_h", "initial_c")
        ),
        Violation(
            "inputs.too-many",
            "check",
            "there is an input behind the last one that the operator defines",
            _one_input_more,
            {"initial": "all"},
        ),
    ),
    features=(
        Feature("initial-state", "initial states", lambda o: any(_initial_states(o)), column=True, level="basic"),
        Feature("initial-state-absent", "no initial state", lambda o: not all(_initial_states(o)), level="basic"),
    ),
    marked="initial-{}",
    conditions={
        "all": (of_values("all initial states", "initial", "all"), _SOME),
        **{
            name: (
                of_values(f"initial_{name}", "initial", name, "all"),
                of_values(f"initial_{name} alone", "initial", name),
                _SOME,
            )
            for name in ("h", "c")
        },
    },
    absences={"none": of_values("no initial states", "initial", "none")},
    richer={"initial": "all"},
    fill=_fill_initial,
)


def _fill_peepholes(spec: Any, draft: TensorDraft) -> None:
    if spec.peepholes:
        draft.hold("P", (draft.D, len(draft.cell.peepholes) * draft.H), 0)


PEEPHOLES = Axis(
    name="peepholes",
    values=(False, True),
    often=(True, True, False),
    there=lambda operator, value: bool(cell_named(operator.known_as).peepholes),
    forbidden=(
        Violation(
            "shapes.P-length",
            "load",
            "P has weights for four gates, not three",
            sized("P", 1, lambda n: n // 3 * 4),
            {"peepholes": True, "initial": "all"},
            has("P"),
        ),
    ),
    level="complete",
    features=(Feature("peepholes", "peepholes P", lambda o: "P" in o.inputs, column=True, level="complete"),),
    marked="peepholes",
    conditions={True: (of_values("peepholes P", "peepholes", True),)},
    fill=_fill_peepholes,
)

# Lengths of rows


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
        # Unsorted: the longest row is neither first nor last where there are enough rows.
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
_SHORTER = Condition("a row shorter than the sequence", lambda spec: spec.lengths != "absent" and has_short_row(spec))

# absent, full, short (equal, below T), ragged (unsorted), empty (ragged, one row of 0)
LENGTHS = Axis(
    name="lengths",
    values=("absent", "full", "short", "ragged", "empty"),
    rare=("empty",),
    often=("absent", "ragged", "ragged", "full", "short", "empty"),
    ordered=True,
    rules=(
        Rule("lengths", "full", ("T",), lambda row: row["T"] < 2, ("ragged", "short")),
        Rule("lengths", "full", ("T", "N"), without_numbers, ("empty",)),
        # One row that is called ragged is as long as all of them.
        Rule("lengths", "short", ("N",), lambda row: row["N"] < 2, ("ragged",), kind="same"),
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
        "ragged": (of_values("rows of several lengths", "lengths", "ragged", "empty"), _SHORTER, _GIVEN),
        "empty": (of_values("a row of length 0", "lengths", "empty"), _SHORTER, _GIVEN),
    },
    absences={"absent": of_values("no sequence_lens", "lengths", "absent")},
    richer={"lengths": "ragged"},
    fill=_fill_lengths,
)


def _reached(steps: int, T: int, reach: str) -> int:
    """Return the number of steps of a row that would have `steps` of T; a row of T steps is the longest."""
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
        Rule(
            "reach",
            "whole",
            ("lengths",),
            lambda row: row["lengths"] not in ("short", "ragged", "empty"),
            ("below", "one"),
        ),
        Rule("reach", "whole", ("T",), lambda row: row["T"] < 3, ("below",)),
        Rule("reach", "whole", ("T",), lambda row: row["T"] < 2, ("one",)),
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
    # No other row is as long, but for one step, than which a row cannot be shorter and still be run.
    shorter = [min(steps, max(longest - 1, 1)) for steps in others]
    if order == "ends":
        return [longest, *shorter[:-1], longest]
    middle = len(shorter) // 2
    shorter = [*shorter[1:][:middle], *shorter[:1], *shorter[1:][middle:]]
    return [longest, *shorter] if order == "first" else [*shorter, longest]


def _of_uneven(test: Callable[[list[int]], bool]) -> Callable[[Observed], bool]:
    """Return the test of a node's lengths where rows have several."""

    def holds(o: Observed) -> bool:
        lengths = o.configuration.lengths.tolist()
        return len(set(lengths)) > 1 and test(lengths)

    return holds


_ORDERS = ("mixed", "falling", "rising", "first", "last", "ends")

# mixed (the longest row in the middle, an empty one at the end), falling (as packed sequences have it), rising, first
# and last (the longest row stands there, all others are shorter, and an empty one stands in the middle), ends (both of
# these rows are the longest, and those between them shorter)
ROW_ORDER = Axis(
    name="row_order",
    values=_ORDERS,
    rare=_ORDERS[1:],
    often=("mixed", "mixed", *_ORDERS[1:]),
    ordered=True,
    rules=(
        Rule("row_order", "mixed", ("lengths",), lambda row: row["lengths"] not in ("ragged", "empty"), _ORDERS[1:]),
        Rule("row_order", "mixed", ("N",), lambda row: row["N"] < 2, _ORDERS[1:]),
        Rule("row_order", "mixed", ("N",), lambda row: row["N"] < 3, ("ends",)),
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

# Seeds: of the inputs that change from run to run, and of the others, so that cases can share a model


def _without_seeds(spec: Any) -> Iterator[Changes]:
    """Yield both seeds together: numbers of one go with those of the other."""
    if spec.seed:
        yield dict.fromkeys([seed for seed in ("seed", "weights_seed") if seed in spec.__dataclass_fields__], 0)


SEED = Axis(name="seed", fits=whole_number(0, HIGHEST_SEED), simpler=_without_seeds)
WEIGHTS_SEED = Axis(name="weights_seed", fits=whole_number(0, HIGHEST_SEED), simpler=lambda spec: ())
