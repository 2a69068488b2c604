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
Steps = NDArray[np.int64]


def multiplied(operands: Any, before: Number, T: int, lengths: Steps, wait: Steps | None) -> Number:
    """Return the operands of the states before all steps (T, N, H)."""
    had = steps_had(0, T, len(lengths), wait)
    if (lengths == T).all():
        return operands.of_states(before, had, lengths)
    states = before[np.clip(had, 0, np.minimum(lengths, T - 1)), np.arange(len(lengths))]
    made = operands.of_states(states, had, lengths)
    return made if wait is None else made[later(T, wait)]


def steps_had(start: int, stop: int, N: int, wait: Steps | None) -> Steps:
    """Return the number of steps that each row has had before some steps, (steps, N)."""
    steps = np.broadcast_to(np.arange(start, stop)[:, np.newaxis], (stop - start, N))
    return steps if wait is None else steps - wait


def later(T: int, wait: Steps) -> tuple[Steps, Steps]:
    """Return an index of steps (T, N) that are so many steps later, as far as they exist."""
    return np.clip(np.arange(T)[:, np.newaxis] + wait, 0, T - 1), np.arange(len(wait))


def held(arithmetic: Any, had: Steps, lengths: Steps, before: tuple[Any, Any], after: tuple[Any, Any]) -> Any:
    """Return the states after one step: a row that waits keeps all states, a row past its last step keeps H."""
    runs = ((had >= 0) & (had < lengths))[..., np.newaxis]
    H, inner = after
    H = arithmetic.where(runs, H, before[0])
    if (had < 0).any():
        started = (had >= 0)[0, :, np.newaxis]
        inner = tuple(arithmetic.where(started, new, old) for new, old in zip(inner, before[1], strict=True))
    return H, inner


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
    noted
        Values of gates by letter, where somebody asks for them (:meth:`note`).
    """

    functions: tuple[Callable[[Number], Number], ...]
    P: Mapping[str, Number]
    coupled: str | None
    linear_before_reset: bool
    arithmetic: Any
    recurrent: Callable[[Number, str], Number]
    t: int = 0
    noted: dict[str, list[Number]] | None = None

    def note(self, **gates: Number) -> None:
        """Note the values of gates at some steps, by letter, for :func:`.computation.steps_of`."""
        if self.noted is not None:
            for letter, number in gates.items():
                self.noted.setdefault(letter, []).append(number)

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
    without_defaults
        Versions whose document gives no default coefficients of activations.
    operands
        Function from interpretations, and whether rows differ in length, to the numbers that replace X and states in
        products (:class:`..operators.dynamic_quantize_lstm.QuantizedOperands`); None: X and states themselves.
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
