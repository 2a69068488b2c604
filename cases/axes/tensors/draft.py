"""The tensors of one run of a recurrent case, as axes draw them phase by phase."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

from numpy.typing import NDArray

from ....reference import FORMATS, cell_named, operator_version
from ..generator import uniform

Array = NDArray[Any]


class TensorDraft:
    """Draft that the phases of :class:`..axis.Axis` change: sizes first, then the drawing of numbers, then tensors.

    run
        0 for the case's own inputs; other numbers for earlier runs of its session.
    T, N
        Steps and rows of this run.
    precision
        Digits of the numbers.
    of_x, of_states, of_weights
        Exponents of X, of initial states, and of W and R, added to the usual ones.
    inputs
        The tensors drawn so far, by formal name.
    """

    def __init__(self, spec: Any, run: int) -> None:
        self.spec, self.run = spec, run
        self.T, self.N = spec.T, spec.N
        self.D, self.G, self.I, self.H = spec.directions, operator_version(spec.op, spec.version).gates, spec.I, spec.H
        self.format = FORMATS[spec.type]
        self.precision = self.format.precision
        self.of_x = self.of_states = self.of_weights = 0
        self.inputs: dict[str, Array] = {}

    @cached_property
    def cell(self) -> Any:
        """The operator's, where it has one."""
        return cell_named(self.spec.op)

    @property
    def of_state(self) -> tuple[int, ...]:
        """The shape of a state."""
        return (self.D, self.N, self.H) if self.spec.layout == 0 else (self.N, self.D, self.H)

    @property
    def of_sequence(self) -> tuple[int, ...]:
        """The shape of X."""
        return (self.T, self.N, self.I) if self.spec.layout == 0 else (self.N, self.T, self.I)

    @property
    def X(self) -> Array:
        """X with its steps first, to be changed in place."""
        X = self.inputs["X"]
        return X if self.spec.layout == 0 else X.swapaxes(0, 1)

    def key(self, name: str, stream: str = "") -> str:
        """Return the stream of a tensor that changes from run to run, unless it is a constant; `stream` distinguishes
        several of one tensor."""
        run = 0 if name in self.spec.constants else self.run
        return f"{self.spec.op}/{stream}{name}/{self.spec.seed}/{run}"

    def draw(self, name: str, shape: tuple[int, ...], exponent: int) -> None:
        """Draw a tensor that changes from run to run."""
        drawn = uniform(self.key(name), shape, self.precision, exponent)
        self.inputs[name] = drawn.astype(self.format.dtype)

    def hold(self, name: str, shape: tuple[int, ...], exponent: int) -> None:
        """Return a tensor of weights, which cases share and nobody may write to."""
        key = f"{self.spec.op}/{name}/{self.spec.weights_seed}"
        self.inputs[name] = _held(key, shape, self.precision, exponent, self.spec.type)


@lru_cache(maxsize=64)
def _held(key: str, shape: tuple[int, ...], precision: int, exponent: int, type: str) -> Array:
    return uniform(key, shape, precision, exponent).astype(FORMATS[type].dtype)


def gain(columns: int) -> int:
    """Exponent of weights that makes sums of `columns` products about as large as one: that of 2 / sqrt(columns).

    In whole numbers, since the last digit of a logarithm, which is not the same everywhere, would decide where the
    exponent lies halfway: at 2, 8, 32, 128, ... There it is the even one; at 8 it is the odd one, as was pinned once.
    """
    exponent = max(columns.bit_length() - 2, 0) // 2
    halfway = columns & (columns - 1) == 0 and columns.bit_length() % 2 == 0
    return -(exponent - 1 if halfway and exponent % 2 and columns > 8 else exponent)
