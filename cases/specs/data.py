"""Tensors of a case, as its axes draw and change them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ...reference import FORMATS, cell_named, operator_version
from ..axes.generator import gain, uniform
from .spec import RecurrentSpec

Array = NDArray[Any]


class TensorDraft:
    """Draft that the effects of :class:`..axes.axis.Axis` change.

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
        """The operator's cell, if it has one."""
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
        """X with its steps first; a view to be changed in place."""
        X = self.inputs["X"]
        return X if self.spec.layout == 0 else X.swapaxes(0, 1)

    @property
    def states(self) -> list[Array]:
        """The initial states with their directions first and rows second; views to be changed in place."""
        states = [array for name, array in self.inputs.items() if name.startswith("initial_")]
        return states if self.spec.layout == 0 else [array.swapaxes(0, 1) for array in states]

    def key(self, name: str, stream: str = "") -> str:
        """Return the random stream of a tensor that changes from run to run, unless it is a constant.

        `stream` distinguishes several streams of one tensor.
        """
        run = 0 if name in self.spec.constants else self.run
        return f"{self.spec.op}/{stream}{name}/{self.spec.seed}/{run}"

    def draw(self, name: str, shape: tuple[int, ...], exponent: int) -> None:
        """Draw a tensor that changes from run to run."""
        drawn = uniform(self.key(name), shape, self.precision, exponent)
        self.inputs[name] = drawn.astype(self.format.dtype)

    def hold(self, name: str, shape: tuple[int, ...], exponent: int) -> None:
        """Store a tensor of weights; cases share it, so it is read-only."""
        key = f"{self.spec.op}/{name}/{self.spec.weights_seed}"
        self.inputs[name] = _held(key, shape, self.precision, exponent, self.spec.type)


@lru_cache(maxsize=64)
def _held(key: str, shape: tuple[int, ...], precision: int, exponent: int, type: str) -> Array:
    return uniform(key, shape, precision, exponent).astype(FORMATS[type].dtype)


def inputs_of(spec: RecurrentSpec, run: int = 0) -> Mapping[str, Array]:
    """Return the inputs of a case by formal name, in its types. The arrays are read-only.

    run
        0 for the case's own inputs; other numbers for earlier runs of its session.
    """
    # With a default argument, the caches would have two entries for run 0.
    return (_drawn if spec.elements > _SMALL else _drawn_small)(spec, run)


_SMALL = 4096
"""Greatest number of elements of a case whose inputs are cached during a whole run, some tens of megabytes."""


@lru_cache(maxsize=256)  # cases are built this far ahead of their results, which need the inputs again
def _drawn(spec: RecurrentSpec, run: int) -> Mapping[str, Array]:
    draft = TensorDraft(spec, run)
    for axis in spec.axes:
        if axis.prepare is not None:
            axis.prepare(spec, draft)
    draft.draw("X", draft.of_sequence, draft.of_x)
    draft.hold("W", (draft.D, draft.G * draft.H, draft.I), gain(draft.I) + draft.of_weights)
    draft.hold("R", (draft.D, draft.G * draft.H, draft.H), gain(draft.H) + draft.of_weights)
    for axis in spec.axes:
        if axis.fill is not None:
            axis.fill(spec, draft)
    for array in draft.inputs.values():
        array.setflags(write=False)
    return MappingProxyType(draft.inputs)


_drawn_small = lru_cache(maxsize=4096)(_drawn.__wrapped__)
