"""Parts of the space, as targets have them that lack features: each drawn case of these levels has its own.

Targets lack what is seldom asked for or hard to compile, and what one lacks others have. So each case leaves out some
of it, in every mixture, from little to nearly all; whichever features a target lacks, some of these cases have none of
them, and are dense with what is left. Compilers for devices lack much of it at once: whatever makes a graph dynamic,
and all but the default cell. They have a level of their own. So have the axes that are younger than the pool: its cases
have rows in some order, and keep clear of what nearly every target lacks that lacks something.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from ...reference import operator_version, versions_of
from ..axes.generator import Counter
from ..axes.recurrent import RECURRENT_AXES
from ..specs.space import PINNED_AXES, space_of
from .dense import Supported
from .turns import TURNING

VARIED = "varied"
"""The level of cases in which the axes stand that are younger than the pool."""

PARTIAL = ("partial", "device", VARIED)
"""Levels of cases that leave out what targets lack; none of them is in a profile."""

_SIXTEENTHS = 16

# The order in which dice for the pinned pool have taken them from the beginning.
_PINNED = (
    *("layout", "clip", "activations", "lengths", "dimensions", "weights", "peepholes", "input_forget"),
    *("linear_before_reset", "hidden_size", "explicit", "initial", "bias"),
)
_BY_AXIS = {axis.name: axis.lacked for axis in RECURRENT_AXES if axis.lacked is not None}
_LEFT_OUT: Mapping[str, tuple[int, Collection[Any]]] = {
    **{name: _BY_AXIS[name] for name in _PINNED},
    "N": (1, (1,)),
}
"""The number of sixteen cases in which an axis is left out, and what is left then. The shares are a choice, by what the
runtimes and providers that were looked at lack: layout 1 nearly all of them, a bias none."""

_LATER = {name: lacked for name, lacked in _BY_AXIS.items() if name not in PINNED_AXES}
SELDOM_LACKED: Supported = {"type": ("float32", "float16"), "layout": (0,), "hidden_size": (True,)}
"""Features of nearly every target that lacks something. Where nothing is lacking, ``core`` is enough."""

_ROWS: Supported = {
    **SELDOM_LACKED,
    "lengths": ("ragged", "empty", "short"),
    "N": range(2, 10),
    "T": range(3, 18),
}
"""Values of cases of :data:`VARIED`, so that their rows have an order."""

_DRAWN: Supported = {
    "held": ("fixed", "listed", "overridden", "once"),
    "row_order": ("mixed", "falling", "rising", "first", "last"),
}
"""Values of axes that have had more since cases of :data:`VARIED` were drawn: these are those of that day."""

_STRENGTHS = (0.4, 0.8, 1.2, 1.75)
"""Factors by which the shares are multiplied, each as often as the others: targets lack little or much."""

_DIRECTIONS = (None, None, None, ("forward",), ("forward", "bidirectional"), ("forward", "reverse"))
_TYPES = (None, ("float32",), ("float32",), ("float32",), ("float16",), ("float32", "float16"), ("bfloat16",), None)


_DEVICE = frozenset({"layout", "clip", "activations", "lengths", "dimensions", "weights"})
"""Features that compilers for devices lack together; one in sixteen cases of their level has it all the same."""


def partial_space(op: str, level: str, index: int) -> Supported:
    """The part of the space of the operator's case of that number in a level of :data:`PARTIAL`."""
    choose = Counter.of(f"{level}/{op}/{index}")
    strength = choose.one_of(_STRENGTHS) if level == "partial" else _STRENGTHS[0]

    def left_out(axis: str, share: float) -> bool:
        whole = level == "device" and axis in _DEVICE
        return choose.below(_SIXTEENTHS) < (_SIXTEENTHS - 1 if whole else min(share * strength, _SIXTEENTHS - 1))

    space: dict[str, Collection[Any]] = {
        axis: left for axis, (share, left) in _LEFT_OUT.items() if left_out(axis, share)
    }
    directions, types = choose.one_of(_DIRECTIONS), choose.one_of(_TYPES)
    if directions is not None:
        space["direction"] = directions
    if types is not None:
        space["type"] = types
    if level == VARIED:
        space |= _DRAWN
        space |= {axis: left for axis, (share, left) in _LATER.items() if left_out(axis, share)}
        space |= {**_plain(op), **_ROWS}
    if "dimensions" in space:
        space["reruns"] = ("none", "data")  # other sizes need dimensions with names
    return space


@cache
def _plain(op: str) -> Supported:
    """The simplest value of later axes that are neither drawn nor lacking."""
    later = space_of(operator_version(op, versions_of(op)[-1])).items()
    kept = {*PINNED_AXES, *TURNING, *_LATER}
    return {name: domain.values[:1] for name, domain in later if name not in kept}
