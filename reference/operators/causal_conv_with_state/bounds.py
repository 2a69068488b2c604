"""Error bounds of CausalConvWithState: a sum of k products and a bias, then the activation.

A kernel may add the terms in any order, store the sum before the bias, and store it again before the activation
(``Sum.settled`` counts both). Its sigmoid may have the error of any primitive function, and the product with x is
rounded. present_state copies numbers, so only a device that flushes subnormals or stores in a narrower format may
change them.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...numbers.accuracy import ORACLE_ACTIVATION, ORACLE_UNIT, Budget, budget
from ...numbers.bounded import Bounded, Sum
from ...numbers.bounding import Bounding
from ..described import Described, Outputs
from .recurrence import channels_first, lag_of, padded, present_state, taken

Array = NDArray[np.float64]

_STEEPEST = 1.1
"""Upper bound of |silu'|, whose maximum is 1.0998."""


def radii(c: Described, outputs: Outputs, accuracy: str) -> Outputs:
    """Return how far a correct implementation may be from each number; infinity where it may overflow."""
    allowed = budget(accuracy, c.format.name)
    total = _sum(c, Bounding(allowed).exact(padded(c)), allowed)
    stored = total.settled()
    radius = stored.radius if stored.doubt is None else np.where(stored.doubt, np.inf, stored.radius)
    if c.attributes["activation"] != "none":
        radius = silu_radius(stored.value, radius, allowed)
    state = Bounding(allowed).exact(present_state(c, padded(c)))
    copied = np.broadcast_to(state.radius, state.value.shape)
    copied = copied if state.doubt is None else np.where(state.doubt, np.inf, copied)
    return {"output": channels_first(c, radius), "present_state": channels_first(c, copied)}


def _sum(c: Described, numbers: Bounded, w: Budget) -> Sum:
    """Return the sum of k products and bias, whose terms may be added in any order."""
    weight, bias = c.wide("weight"), c.wide("bias")
    assert weight is not None
    k = weight.shape[2]
    shape = (*numbers.value.shape[:2], numbers.value.shape[2] - lag_of(c))
    value, magnitude, error = (np.zeros(shape) for _ in range(3))
    lost = max(w.operand_floor, w.input_floor)
    undefined = np.zeros(value.shape, bool)
    for j in range(k):
        x, factor = taken(c, numbers.value, j), weight[:, :, j].reshape(1, -1, 1)
        size, factor_size = np.abs(x), np.abs(factor)
        value += x * factor
        magnitude += size * factor_size
        # Each operand may be rounded first, or flushed; the radius of x has the error of a narrower storage.
        error += size * factor_size * w.operand_unit * (2 + w.operand_unit) + lost * (size + factor_size + lost)
        radius = taken(c, numbers.radius, j)
        error += radius * factor_size * (1 + w.operand_unit) ** 2
        error += (size + radius) * factor_size * max(w.unit - w.tensor.unit - 2 * ORACLE_UNIT, 0.0)
        undefined |= ~((size <= w.operand_largest) & (factor_size <= w.operand_largest))
        if numbers.doubt is not None:
            undefined |= taken(c, numbers.doubt, j)
    total = Sum(value, np.stack([error, magnitude, np.abs(value)]), k, 1, w, undefined if undefined.any() else None)
    if bias is None:
        return total
    return total + Bounding(w).exact(np.broadcast_to(bias.reshape(1, -1, 1), value.shape).copy())


def silu_radius(x: Array, radius: Array, w: Budget) -> Array:
    """Return the radius of x * sigmoid(x), for an x with error `radius`.

    A kernel may multiply x by a sigmoid with error (a s + b)u, at least 8su, and round the product. Or it divides x by
    1 + e with e = exp(-x): the error of e is 2ue, of the sum u(1 + e), of the quotient 6u, together at most 9su |x|.
    """
    size = np.abs(x) + radius
    sigmoid = 1 / (1 + np.exp(-np.minimum(x + radius, 700.0)))
    primitive = (w.a * w.unit + ORACLE_ACTIVATION) * sigmoid + w.b * w.unit + 2 * ORACLE_UNIT + w.least_normal
    off = _STEEPEST * radius + size * (primitive + w.unit * sigmoid) + (1 + w.division) * w.floor
    return np.where(np.isfinite(radius), off, np.inf)
