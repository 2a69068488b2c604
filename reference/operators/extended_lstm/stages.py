"""Stages of an ExtendedLSTM, as in its document. An implementation may get each of them wrong.

:mod:`.document` runs through the stages; :mod:`.faults` replaces them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...numbers.affine import Affine
from ...numbers.bounded import Bounded

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Operand:
    """A quantized tensor.

    value
        The exact numbers that its levels represent.
    radius
        One scale where the level is undecided, because the quotient is near a tie; else zero.
    centred
        Levels minus 32768: the factors of fixed-point arithmetic.
    centre
        The zero point minus 32768.
    scale
        Zero for a state that is not quantized.
    known
        Whether the levels are those that the target has. If not, only the value is known.
    """

    value: Array
    radius: Array
    centred: Array
    centre: int
    scale: float
    known: bool = True

    @classmethod
    def of(cls, affine: Affine, array: NDArray[Any]) -> Operand:
        """Return a tensor quantized as documented."""
        radius = np.where(affine.undecided(array), affine.scale, 0.0)
        return cls.from_levels(affine, affine.levels(array), radius)

    @classmethod
    def from_levels(
        cls, affine: Affine, levels: NDArray[Any], radius: Array | None = None, known: bool = True
    ) -> Operand:
        """Return a tensor of these levels, which may be outside the type's range."""
        half = 2 ** (affine.bits - 1)
        centred = levels.astype(np.float64) - half
        radius = np.zeros_like(centred) if radius is None else radius
        return cls(affine.dequantized(levels), radius, centred, affine.zero_point - half, affine.scale, known)

    def each(self, change: Callable[..., Array], *others: Operand) -> Operand:
        """Return the operand with every array replaced by `change` of it and of the arrays of `others`."""
        arrays = ((getattr(operand, name) for operand in (self, *others)) for name in ("value", "radius", "centred"))
        value, radius, centred = (change(*triple) for triple in arrays)
        return replace(self, value=value, radius=radius, centred=centred)

    def __getitem__(self, index: Any) -> Operand:
        return self.each(lambda array: array[index])

    def followed_by(self, rest: Operand) -> Operand:
        """Return the operand followed by another one along the first axis."""
        return self.each(lambda *both: np.concatenate(both), rest)

    def started(self, level: float | Array, number: float | Array) -> Operand:
        """Return the states with another first state: `level` is its level minus 32768, `number` its value."""
        if not len(self.value):
            return self
        value, centred = self.value.copy(), self.centred.copy()
        value[0], centred[0] = number, level
        return replace(self, value=value, centred=centred)


class Sums(Struct, frozen=True):
    """Parts of the pre-activations in one direction, in processing order.

    x, w
        Inputs (T, N, I) and their weights (4H, I).
    h, r
        The states before each step (T, N, H) and their weights (4H, H).
    bias
        (4H,), the sum of Wb and Rb.
    total
        The pre-activations (T, N, 4H).
    """

    x: Operand
    w: Operand
    h: Operand
    r: Operand
    bias: Array
    total: Array


def _same(number: Any) -> Any:
    return number


def _quantized(name: str, affine: Affine, array: NDArray[Any]) -> Operand:
    return Operand.of(affine, array)


def _nothing(sums: Sums) -> Array | float:
    return 0.0


def saturated(y: Affine, hidden: Array) -> Array:
    """Return Ht limited to the range of levels, not yet rounded to a level."""
    return np.clip(hidden, y.least, y.greatest)


@dataclass(frozen=True)
class Stages:
    """Functions and settings of the stages.

    quantized
        Function from a tensor's name (X, W, R, B), its parameters and its numbers to the operand.
    state
        Function of the states before each step, as used in the products.
    shift
        Function from :class:`Sums` to the error added to the pre-activations.
    shown
        Function from Y's parameters and Ht to the number returned for it, not yet rounded to a level.
    biases
        Function of Wb and Rb, each (4H,), as they are added.
    weights
        The slice of W, R and B that each direction uses.
    backwards
        Whether each direction starts at the last step.
    realigned
        Whether results of the backward direction are stored at the positions of their steps.
    gates
        The letters of the blocks of W, R and B.
    functions
        Names of the activation functions f, g and h.
    rows
        Function from X (T, N, I), quantized, to the input of each row of the batch.
    absent_bias
        The number added where there is no B.
    seen, placed
        Functions from a reported Y to the computed Y, and back, for faults that move elements.
    """

    quantized: Callable[[str, Affine, NDArray[Any]], Operand] = _quantized
    state: Callable[[Operand], Operand] = _same
    shift: Callable[[Sums], Array | float] = _nothing
    shown: Callable[[Affine, Array], Array] = saturated
    biases: Callable[[tuple[Array, Array]], tuple[Array, Array]] = _same
    weights: tuple[int, int] = (0, 1)
    backwards: tuple[bool, bool] = (False, True)
    realigned: bool = True
    gates: str = "iofc"
    functions: tuple[str, str, str] = ("Sigmoid", "Tanh", "Tanh")
    rows: Callable[[Operand], Operand] = _same
    absent_bias: float = 0.0
    seen: Callable[[Array], Array] = _same
    placed: Callable[[Bounded], Bounded] = _same
