"""Cells: recurrent operators by their gates, default activations and equations, and the symbols of equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.operators import document_of

Number = Any
"""Number of any arithmetic: a float64 array, a Bounded, a sum with separate terms, ..."""

States = tuple[Number, ...]
"""Ht after each step, and for LSTM Ct after each step, stacked along the first axis."""


class Zero:
    """An absent bias or peephole. It takes part in no operation, so it costs no rounding."""

    __array_ufunc__ = None  # NumPy arrays leave `+` and `*` to this class

    def __add__(self, other: Number) -> Number:
        return other

    __radd__ = __add__

    def __mul__(self, other: Number) -> Zero:
        return self

    __rmul__ = __mul__


ZERO = Zero()


class Gates:
    """Sums of all gates, (..., gates x hidden_size): ``sums.i`` is the block of gate i.

    blocks
        Letter of a gate to the index of its block, see :func:`blocks_of`.
    """

    __slots__ = ("blocks", "number")

    def __init__(self, number: Number, blocks: Mapping[str, Any]) -> None:
        self.number, self.blocks = number, blocks

    def __getattr__(self, letter: str) -> Number:
        if len(letter) > 1 or letter not in self.blocks:
            raise AttributeError(letter)
        return self.number[self.blocks[letter]]

    def __add__(self, other: Gates) -> Gates:
        return type(self)(self.number + other.number, self.blocks)

    def __getitem__(self, steps: int | slice) -> Gates:
        return type(self)(self.number[steps], self.blocks)


def blocks_of(letters: str, hidden_size: int) -> Mapping[str, Any]:
    """Return the index of each gate's block; W, R and B hold the blocks in the order of `letters`."""
    starts = range(0, len(letters) * hidden_size, hidden_size) if hidden_size else [0] * len(letters)
    return {letter: (..., slice(start, start + hidden_size)) for letter, start in zip(letters, starts, strict=True)}


@dataclass(eq=False)
class Parameters:
    """Symbols of the equations of one direction.

    functions
        Activation functions f, g and h, as many as the operator has, with their coefficients and clip.
    P
        Peepholes by letter: each (hidden_size,), or ZERO.
    coupled
        Gate that ``input_forget`` keeps, ``input`` or ``forget``; None without it.
    recurrent
        recurrent(x, letter): x*(R^T) + Rb of one gate.
    t
        Index of the first step, in processing order.
    """

    functions: tuple[Callable[[Number], Number], ...]
    P: Mapping[str, Number]
    coupled: str | None
    linear_before_reset: bool
    arithmetic: Any
    recurrent: Callable[[Number, str], Number]
    t: int = 0

    @cached_property
    def f(self) -> Callable[[Number], Number]:
        return self.functions[0]

    @cached_property
    def g(self) -> Callable[[Number], Number]:
        return self.functions[1]

    @cached_property
    def h(self) -> Callable[[Number], Number]:
        return self.functions[2]


@dataclass(frozen=True)
class Cell:
    """A recurrent operator: its equations, and how its tensors hold their parameters.

    gates
        Letters of the gates, in the order of their blocks in W, R and B.
    activations
        Default activation functions of one direction.
    inner
        Names of the states beside H: ``("c",)`` for LSTM. Each has an input ``initial_<name>`` and an output
        ``Y_<name>``.
    peepholes
        Letters of the blocks of P, in order.
    equations
        equations(p, XW, HR, H, *inner states) -> H and inner states after each step.
    unmarked
        Versions whose document prints the recurrent product without the mark of transposition.
    read
        read(linear_before_reset) -> letters, the first ones of `gates`, of the only sums over Ht-1 that the equations
        read. None: they may read all.
    without_defaults
        Versions whose document gives no default coefficients of activations.
    operands
        Numbers that replace X and states in products (:class:`.operands.Operands`); None: X and states themselves.
    questions
        Ambiguities of `operands` for a node's T, its rows' lengths and its directions.
    domain
        Domain of the operator.
    """

    op_type: str
    gates: str
    activations: tuple[str, ...]
    equations: Callable[..., States]
    inner: tuple[str, ...] = ()
    peepholes: str = ""
    unmarked: frozenset[int] = frozenset()
    read: Callable[[bool], str] | None = None
    without_defaults: frozenset[int] = frozenset()
    operands: Callable[..., Any] | None = None
    questions: Callable[[int, NDArray[np.int64], tuple[str, ...]], frozenset[str]] = lambda *_: frozenset()
    domain: str = ""

    @cached_property
    def prefix(self) -> str:
        """Prefix of the ids of the operator's clauses."""
        return document_of(self.op_type, self.domain).prefix


_REGISTERED: dict[tuple[str, str], Cell] = {}


def register_cell(cell: Cell) -> Cell:
    """Register the cell of an operator."""
    return _REGISTERED.setdefault((cell.domain, cell.op_type), cell)


def cell_of(op_type: str, domain: str = "") -> Cell | None:
    """Return the cell of an operator; None for an operator without one."""
    return _REGISTERED.get((domain, op_type))
