"""NaN and overflow: outputs that differ from the equations, though no document speaks of either.

Two statements are certain enough to be a finding, and neither is a failure. (1) A NaN that reaches an output only
through sums, products, Sigmoid and Tanh is NaN there, in IEEE 754's arithmetic of any order: no such operation turns it
into a number. Relu and clip may, so nothing is claimed behind them. (2) A formula that a document prints may overflow
on its way to a result that is finite (e^x in Softplus): the equation's value is finite all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.accuracy import budget
from ..numbers.activations import Activation, kind_named
from ..numbers.bounding import Bounding
from ..numbers.plain import Plain
from .agreement import compare, ratios
from .computation import Computation, computation_of, overflowing_arguments
from .configuration import Configuration
from .expectation import Expectation, valid_elements
from .node import Node, text_of
from .rnn import run

LOSES_NAN, OVERFLOWS = "loses-nan", "overflows"

SPECIAL = (LOSES_NAN, OVERFLOWS)
"""Flags of results in which NaN or a finite number differs from the equations; they fail no target by themselves."""

_THROUGH = frozenset({"Sigmoid", "Tanh", "Affine", "ScaledTanh"})
"""Functions that are sums, products, Sigmoid and Tanh, or made of these. Softplus and Softsign are not named: kernels
have them in forms that select."""

Array = NDArray[Any]
Bools = NDArray[np.bool_]


class SpecialValueMismatch(Struct, frozen=True):
    """Elements of one output that differ from the equations.

    flag
        ``loses-nan`` or ``overflows``.
    lost, of
        The elements, of the output's shape, and the number of elements for which the same is known.
    must
        Values of the equations, of the output's shape; NaN for ``loses-nan``.
    entry
        The element of an input where NaN enters.
    argument
        The smallest argument of the function whose formula overflows, among the lost elements.
    """

    flag: str
    output: str
    clause: str
    lost: Bools
    of: int
    must: NDArray[np.float64]
    entry: str = ""
    argument: float | None = None


def special_mismatches(
    node: Node,
    inputs: Mapping[str, Array],
    observed: Mapping[str, Array],
    accuracy: str = "standard",
    interpretations: Interpretations | None = None,
) -> list[SpecialValueMismatch]:
    """Return the departures of a target's outputs from the equations, for NaN and beyond a formula's range.

    observed
        The target's outputs by name, of the right shapes.

    Raise IllegalNode as :func:`.expectation.expect` does.
    """
    steep = any(_overflows(name) for name in node.attributes.get("activations", ()))
    spoilt = any(name != "sequence_lens" and a is not None and np.isnan(a).any() for name, a in inputs.items())
    if not (steep or spoilt):
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        computation = computation_of(node, inputs, interpretations)
        lost = _lost_nan(computation, observed) if spoilt else []
        return lost + (_overflown(computation, observed, accuracy) if steep else [])


def _overflows(name: Any) -> bool:
    kind = kind_named(text_of(name))
    return kind is not None and kind.overflows


class _Spreading(Plain):
    """Certain NaN: numbers are NaN or some number near one, which no operation of a cell takes beyond a
    range. A zero would do as well by IEEE 754, and would not where a matrix library leaves products with zero out."""

    def exact(self, value: Array) -> Array:
        return np.where(np.isnan(value), np.nan, 1.0)

    def weights(self, matrix: Array) -> Array:
        rows: Bools = np.asarray(np.isnan(matrix).any(axis=-1))
        return rows

    def product(self, x: Array, weights: Array) -> Array:
        """NaN in every sum that has a term of NaN: a whole line for one of x, a column for one of the weights."""
        return np.where(np.isnan(x).any(axis=-1, keepdims=True) | weights, np.nan, 1.0)

    def activate(self, activation: Activation, argument: Array, clip: float | None) -> Array:
        if clip is not None or activation.name not in _THROUGH:
            return np.full(np.shape(argument), 0.5)
        return np.where(np.isnan(argument), np.nan, 0.5)


def _lost_nan(computation: Computation, observed: Mapping[str, Array]) -> list[SpecialValueMismatch]:
    """Return the elements that must be NaN and are numbers. One free run decides: NaN stays in a row once it is there,
    whatever a target reports in between."""
    c = computation.configuration
    numbers = run(c, computation.inputs, _Spreading())
    losses = []
    for name in c.outputs:
        if name not in observed or observed[name].shape != c.shape_of(name):
            continue
        must = np.isnan(numbers[name]) & _certain(c, name)
        lost = must & ~np.isnan(observed[name].astype(np.float64))
        if lost.any():
            clause = f"{c.cell.prefix}.nan.kept"
            values = np.where(must, np.nan, 0.0)
            losses.append(
                SpecialValueMismatch(LOSES_NAN, name, clause, lost, int(must.sum()), values, _entry(computation))
            )
    return losses


def _certain(c: Configuration, output: str) -> Bools:
    """Return elements that some step has made: padding and the states of rows without steps are another question."""
    if output == "Y":
        return valid_elements(c)
    some = np.broadcast_to((c.lengths > 0)[:, np.newaxis], (len(c.directions), c.N, c.H))
    return some.transpose(1, 0, 2) if c.layout == 1 else some


def _entry(computation: Computation) -> str:
    """Return the first NaN of each input that has one."""
    places = []
    for name, array in computation.inputs.items():
        spoilt = np.argwhere(np.isnan(array)) if array.dtype.kind == "f" else np.empty((0, 0))
        if len(spoilt):
            more = f" and {len(spoilt) - 1} more" if len(spoilt) > 1 else ""
            places.append(f"{name}[{', '.join(map(str, spoilt[0]))}]{more}")
    return ", ".join(places)


def _overflown(computation: Computation, observed: Mapping[str, Array], accuracy: str) -> list[SpecialValueMismatch]:
    """Return elements of which nothing is expected only since a printed formula overflows, and which are not the value
    that the equation has all the same."""
    c = computation.configuration
    w = budget(accuracy, c.format.name)
    Y = None
    if "Y" in observed:
        Y = observed["Y"].astype(np.float64)
        Y = Y.transpose(1, 2, 0, 3) if c.layout == 1 else Y
    arguments = overflowing_arguments(computation, Y)
    limit = float(np.log(w.largest))
    # A kernel's own argument is off by what its sums are: a quarter is far more than that for numbers of this size.
    if arguments is None or not (arguments >= limit - 0.25).any():
        return []
    by_formula, careful = (
        run(c, computation.inputs, arithmetic, Y) for arithmetic in (Bounding(w), Bounding(w, formulas=False))
    )
    overflows = []
    for name in c.outputs:
        doubt, number = by_formula[name].doubt, careful[name]
        if doubt is None or name not in observed or (name == "Y_h" and Y is not None):
            continue
        mask = doubt & _certain(c, name) & (True if number.doubt is None else ~number.doubt)
        expectation = Expectation(name, number, f"{c.cell.prefix}.overflow", mask)
        if compare(expectation, observed[name]).worst <= 1:
            continue
        lost = np.nan_to_num(ratios(expectation, observed[name]), nan=0.0) > 1
        value = np.broadcast_to(number.value, lost.shape)
        overflows.append(
            SpecialValueMismatch(
                OVERFLOWS,
                name,
                expectation.clause,
                lost,
                int(mask.sum()),
                value,
                argument=_smallest(c, name, lost, arguments, limit),
            )
        )
    return overflows


def _smallest(c: Configuration, output: str, lost: Bools, arguments: NDArray[np.float64], limit: float) -> float:
    """Return the smallest argument among lost elements. A state's is the largest of its row's steps; if an element's
    own functions stay in range, the gate of another unit overflowed."""
    of_output = arguments if output == "Y" else arguments.max(axis=0, keepdims=True)
    own = of_output.transpose(2, 0, 1, 3) if c.layout == 1 else of_output
    own = own.reshape(lost.shape)
    own = np.where(own >= limit, own, own.max(axis=-1, keepdims=True))
    return float(own[lost].min())
