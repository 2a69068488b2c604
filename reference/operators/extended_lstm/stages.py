"""The stages of an ExtendedLSTM, as its document has them, each of which an implementation may get wrong.

:mod:`.document` runs through them; :mod:`.faults` puts others in their place.
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
        What its levels stand for, exact.
    radius
        One scale where the level is undecided, since the quotient is near a tie; else zero.
    centred
        Levels less 32768: what fixed-point arithmetic multiplies.
    centre
        The zero point less 32768.
    scale
        Zero for a state that nothing quantizes.
    known
        Whether the levels are those that the target has; else the value is all that is known of them.
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
        """Return a tensor of these levels, whether or not they are within the type's range."""
        half = 2 ** (affine.bits - 1)
        centred = levels.astype(np.float64) - half
        radius = np.zeros_like(centred) if radius is None else radius
        return cls(affine.dequantized(levels), radius, centred, affine.zero_point - half, affine.scale, known)

    def each(self, change: Callable[..., Array], *others: Operand) -> Operand:
        """Return the operand with every array changed, by those of others too."""
        arrays = ((getattr(one, name) for one in (self, *others)) for name in ("value", "radius", "centred"))
        value, radius, centred = (change(*several) for several in arrays)
        return replace(self, value=value, radius=radius, centred=centred)

    def __getitem__(self, index: Any) -> Operand:
        return self.each(lambda array: array[index])

    def followed_by(self, rest: Operand) -> Operand:
        """Return the operand, with another one behind it along the first axis."""
        return self.each(lambda *both: np.concatenate(both), rest)

    def started(self, level: float | Array, number: float | Array) -> Operand:
        """States of which the first is another: a level less 32768, and what it stands for."""
        if not len(self.value):
            return self
        value, centred = self.value.copy(), self.centred.copy()
        value[0], centred[0] = number, level
        return replace(self, value=value, centred=centred)


class Sums(Struct, frozen=True):
    """All that pre-activations are made of, in one direction and in processing order.

    x, w
        Inputs (T, N, I) and their weights (4H, I).
    h, r
        The states before each step (T, N, H) and their weights (4H, H).
    bias
        (4H,), Wb and Rb added.
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
    """Return the number nearest to Ht that some level stands for, not yet rounded to one."""
    return np.clip(hidden, y.least, y.greatest)


@dataclass(frozen=True)
class Stages:
    """The functions of each stage.

    quantized
        From a tensor's name (X, W, R, B), its parameters and its numbers to what is computed with.
    state
        The states before each step, as they go into the products.
    shift
        From :class:`Sums` to what is added to the pre-activations beside what they must be.
    shown
        From Y's parameters and Ht to the number that is shown for it, not yet rounded to a level.
    biases
        Wb and Rb, each (4H,), as they are added.
    weights
        For each direction which slice of W, R and B it uses.
    backwards
        For each direction whether it starts at the last step.
    realigned
        Whether what the backward direction computes goes to the places of its steps.
    gates
        The letters of the blocks of W, R and B.
    functions
        Names of the activation functions f, g and h.
    rows
        From X (T, N, I), quantized, to what the rows of the batch are computed from.
    absent_bias
        What is added where there is no B.
    seen, placed
        From the Y that a target reports to the one that it has computed, and back: where elements lie elsewhere.
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
