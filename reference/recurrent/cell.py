"""The cell of a recurrent operator: its gates, its default activations, its equations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from ..documents.operators import document_of
from ..numbers.activations import Activation
from .operands import OpenQuestions, OperandRules

# A number of any arithmetic: a float64 array, a Bounded, a Dyadic, ... The equations do not care.
Number = Any


class Absent:
    """An optional input that is not there: a zero that takes part in no operation, so costs no rounding."""

    __array_ufunc__ = None  # NumPy arrays then leave `+` and `*` to this class

    def __add__(self, other: Number) -> Number:
        return other

    __radd__ = __add__

    def __mul__(self, other: Number) -> Absent:
        return self

    __rmul__ = __mul__


ABSENT = Absent()


# Not frozen, nor is Recurrent: every step makes both, and what guards fields costs more than what is in them. Nothing
# writes to a field.
@dataclass(eq=False)
class Gates:
    """A sum for all gates at once, (..., gates x hidden_size), of which each gate's block has its letter's name.

    blocks
        Where each letter's block is, see :func:`blocks_of`.
    """

    number: Number
    blocks: Mapping[str, Any]

    def __getattr__(self, letter: str) -> Number:
        # Only letters get here; everything else is a field.
        try:
            block = self.__dict__["blocks"][letter]
        except KeyError:
            raise AttributeError(letter) from None
        return self.number[block]

    def __add__(self, other: Gates) -> Gates:
        return type(self)(self.number + other.number, self.blocks)

    def __getitem__(self, step: int) -> Gates:
        return type(self)(self.number[step], self.blocks)


def blocks_of(letters: str, hidden_size: int) -> Mapping[str, Any]:
    """Letter to what takes its gate's block out of a sum for all gates. The blocks stand in the order of `letters`."""
    return {
        letter: (..., slice(position * hidden_size, (position + 1) * hidden_size))
        for position, letter in enumerate(letters)
    }


@dataclass(eq=False)
class Recurrent(Gates):
    """The sums over Ht-1: Ht-1*(R^T) + Rb for all gates.

    state
        Ht-1 itself.
    through
        through(x, letter): x*(R^T) + Rb of one gate, for what takes the place of Ht-1 there.
    step
        The number of the first of its steps, in the order in which a direction computes them.
    """

    state: Number
    through: Callable[[Number, str], Number]
    step: int = 0

    def __getitem__(self, step: int) -> Recurrent:
        return type(self)(self.number[step], self.blocks, self.state[step], self.through, self.step + step)


@dataclass(frozen=True)
class Parameters:
    """The symbols of the equations of one direction, beside the sums and the state.

    functions
        The activation functions of the direction, clipping included: from an argument to a number. The equations call
        them f, g and h.
    P
        Peepholes by letter, each (hidden_size,) or ABSENT.
    coupled
        None, or which gate ``input_forget`` keeps: ``input`` or ``forget``.
    linear_before_reset
        Whether the reset gate is applied to the hidden gate's recurrent sum instead of to Ht-1.
    """

    functions: tuple[Callable[[Number], Number], ...]
    P: dict[str, Number]
    coupled: str | None
    linear_before_reset: bool
    arithmetic: Any

    @cached_property
    def f(self) -> Callable[[Number], Number]:
        return self.functions[0]

    @cached_property
    def g(self) -> Callable[[Number], Number]:
        return self.functions[1]

    @cached_property
    def h(self) -> Callable[[Number], Number]:
        return self.functions[2]


# H_t and the inner states, after each step, stacked along the first axis.
States = tuple[Number, ...]


@dataclass(frozen=True)
class Cell:
    """One recurrent operator.

    gates
        The letters of the gate blocks, in the order in which W, R and B hold them.
    activations
        The default activation functions of one direction.
    inner
        Names of the states beside H: ``("c",)`` for LSTM. Each has an input ``initial_<name>`` and an output
        ``Y_<name>``.
    peepholes
        Letters of the blocks of P, in order.
    unmarked
        Versions whose document prints the recurrent product without the mark of transposition.
    walk
        walk(parameters, sums over Xt, sums over Ht-1, inner states before the first step) -> H and inner states after
        every step. The H_(t-1) of every step is known, so both sums cover all steps.
    read
        read(linear_before_reset) -> letters, the first ones of `gates`, of the only sums over Ht-1 that the walk reads;
        None where it may read all.
    without_defaults
        Versions whose document does not say what an activation's coefficients are where the lists hold none.
    operands
        What X and states go into products as; None for themselves. Then rows of a batch may depend on each other.
    questions
        Names of the interpretations on which that depends, of a node's T, its rows' lengths and its directions.
    domain
        That of its operator.
    """

    op_type: str
    gates: str
    activations: tuple[str, ...]
    inner: tuple[str, ...]
    peepholes: str
    unmarked: frozenset[int]
    walk: Callable[[Parameters, Gates, Recurrent, tuple[Number, ...]], States]
    read: Callable[[bool], str] | None = None
    without_defaults: frozenset[int] = frozenset()
    operands: OperandRules | None = None
    questions: OpenQuestions = lambda *_: frozenset()
    domain: str = ""

    @cached_property
    def prefix(self) -> str:
        """The beginning of the ids of its operator's clauses."""
        return document_of(self.op_type, self.domain).prefix

    def bind(
        self, arithmetic: Any, activations: tuple[Activation, ...], clips: tuple[float | None, ...]
    ) -> tuple[Callable[[Number], Number], ...]:
        """The activations as functions of one argument, in an arithmetic."""

        pairs = zip(activations, clips, strict=True)
        return tuple(partial(arithmetic.activate, activation, clip=clip) for activation, clip in pairs)


CELLS: dict[str, Cell] = {}
"""ONNX's own, by operator; each registers its own (:mod:`..operators.tables`)."""

_EVERY: dict[tuple[str, str], Cell] = {}


def enter(cell: Cell) -> Cell:
    """Make a cell known, once for each domain and name."""
    if not cell.domain:
        CELLS.setdefault(cell.op_type, cell)
    return _EVERY.setdefault((cell.domain, cell.op_type), cell)


def cell_of(op_type: str, domain: str = "") -> Cell | None:
    """The cell of an operator; None for one that has none."""
    return _EVERY.get((domain, op_type))
