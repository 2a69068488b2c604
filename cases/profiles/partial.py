"""Parts of the space, as targets have them that lack features: each drawn case of these levels has its own.

Targets lack what is seldom asked for or hard to compile, and what one lacks others have. So each case leaves out some
of it, in every mixture, from little to nearly all; whichever features a target lacks, some of these cases have none of
them, and are dense with what is left. Compilers for devices lack much of it at once: whatever makes a graph dynamic,
and all but the default cell. They have a level of their own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from ..axes.recurrent import RECURRENT_AXES
from .covering import Counter
from .dense import Supported

__all__ = ["PARTIAL", "partial_space"]

PARTIAL = ("partial", "device")
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
"""By axis, in how many of sixteen cases it is left out, and what is left then. The shares are a choice, by what the
runtimes and providers that were looked at lack: layout 1 nearly all of them, a bias none."""

_STRENGTHS = (0.4, 0.8, 1.2, 1.75)
"""By what the shares are multiplied, each as often as the others: targets lack little or much."""

_DIRECTIONS = (None, None, None, ("forward",), ("forward", "bidirectional"), ("forward", "reverse"))
_TYPES = (None, ("float32",), ("float32",), ("float32",), ("float16",), ("float32", "float16"), ("bfloat16",), None)


_DEVICE = frozenset({"layout", "clip", "activations", "lengths", "dimensions", "weights"})
"""What compilers for devices lack together; one in sixteen cases of their level has it all the same."""


def partial_space(op: str, level: str, index: int) -> Supported:
    """The part of the space of the operator's case of that number in a level of :data:`PARTIAL`."""
    key = f"{level}/{op}/{index}"
    choose = Counter(int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "little"))
    strength = _STRENGTHS[choose.below(len(_STRENGTHS))] if level == "partial" else _STRENGTHS[0]

    def left_out(axis: str, share: float) -> bool:
        whole = level == "device" and axis in _DEVICE
        return choose.below(_SIXTEENTHS) < (_SIXTEENTHS - 1 if whole else min(share * strength, _SIXTEENTHS - 1))

    space: dict[str, Collection[Any]] = {
        axis: left for axis, (share, left) in _LEFT_OUT.items() if left_out(axis, share)
    }
    directions, types = _DIRECTIONS[choose.below(len(_DIRECTIONS))], _TYPES[choose.below(len(_TYPES))]
    if directions is not None:
        space["direction"] = directions
    if types is not None:
        space["type"] = types
    if "dimensions" in space:
        space["reruns"] = ("none", "data")  # other sizes need dimensions with names
    return space
