"""Faults of ExtendedLSTM: its document with one stage wrong.

What is wrong is a function from stages to stages (:mod:`.stages`), so several are combined by applying one after the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...faults.fault import FAULTS, Fault, fault
from .document import OP_TYPE, ExtendedLSTM, expect_extended
from .stages import CONFORMING, Stages

__all__ = ["Change", "of", "run_extended", "stages_with"]

Change = Callable[[Stages], Stages]

of = partial(fault, operators=(OP_TYPE,), types=("float32",))
"""Registers such a function."""


def stages_with(faults: Iterable[Fault]) -> Stages:
    """The stages with all of these faults, in the order in which a computation meets them: that of the table."""
    order = {id: place for place, id in enumerate(FAULTS)}
    stages = CONFORMING
    for each in sorted(faults, key=lambda fault: order[fault.id]):
        stages = each.wrong(stages)
    return stages


def run_extended(stages: Stages, node: ExtendedLSTM, state: str = "quantized") -> NDArray[np.float32]:
    """Y as an implementation with these stages computes it from its own states, quantized where y_scale is given.

    Every step depends on the one before, so what is predicted from a Y is a Y that is right for one step more.
    """
    Y = np.zeros((node.T, 2, node.N, node.H), np.float32)
    with np.errstate(all="ignore"):
        for _ in range(node.T + 1):
            before = Y
            expected = expect_extended(node, before, "float32", state, stages)
            value = expected.value if node.y is None else (np.rint(expected.value / node.y.scale) * node.y.scale)
            Y = value.astype(np.float32)
            if np.array_equal(Y, before):
                break
    return Y
