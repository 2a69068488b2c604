"""Comparison of outputs with expectations, and NaN, which no document mentions.

One statement about NaN is certain enough to be a finding, and no failure: a NaN that reaches an output only through
sums, products, Sigmoid and Tanh is NaN there, in IEEE 754's arithmetic of any order. No such operation turns it into a
number. Relu and clip may, so nothing is claimed behind them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.activations import Activation
from ..numbers.bounded import RADIUS_SLACK, Mask
from ..numbers.plain import Plain
from .computation import Computation, computation_of
from .configuration import Configuration
from .expectation import Expectation, ExpectationsBy, valid_elements
from .node import Node
from .rnn import run

# Outputs that are not finite, and radii of zero. One function calls another, so each has a state of its own: an older
# NumPy cannot enter one twice.
_UNALARMED: Any = {"over": "ignore", "invalid": "ignore", "divide": "ignore"}


@dataclass(frozen=True)
class Agreement:
    """Result of comparing an output with an expectation.

    worst
        Largest |error| / radius over the judged elements; infinity if no radius allows the value.
    index
        Position of the worst element in the output's layout; None if everything agrees to the last bit or nothing is
        judged.
    judged, elements
        Number of judged elements, and of all elements of the expectation.
    failing
        Number of elements outside their radius.
    nonfinite
        Whether the worst element is NaN or infinite and must not be.
    vague
        Number of elements that are not judged because their radius is too wide to prove anything.
    largest
        Largest |error| of the judged elements; infinite if one is NaN or infinite and must not be.
    shift, scale, square, size
        Sums over finite elements that are not in doubt: of error, of error towards larger magnitude, of its square, and
        of u|value|. shift/size and scale/size are mean signed errors in u, sqrt(square)/size their standard error.
    """

    expectation: Expectation
    worst: float
    index: tuple[int, ...] | None
    judged: int
    elements: int
    failing: int
    nonfinite: bool
    shift: float
    scale: float
    square: float
    size: float
    vague: int = 0
    largest: float = 0.0


class _Weighed(Struct, frozen=True):
    """Output beside an expectation, element by element; arrays of its shape.

    ratio
        error| / radius, 0 where nothing is judged; ``finite`` is False where a NaN or an infinity must not be.
    certain, judged
        Elements of the expectation that are not in doubt, and those of them that are judged; None for all.
    all_finite
        Whether the output has no NaN and no infinity.
    """

    value: NDArray[np.float64]
    error: NDArray[np.float64]
    ratio: NDArray[np.float64]
    finite: NDArray[np.bool_]
    judged: Mask
    elements: int
    vague: int
    certain: Mask
    all_finite: bool


def _weighed(expectation: Expectation, got: NDArray[np.float64]) -> _Weighed:
    number, mask = expectation.number, expectation.about
    elements = got.size if mask is None else int(mask.sum())
    certain = mask
    if number.doubt is not None:
        certain = ~number.doubt if mask is None else mask & ~number.doubt
        certain = np.broadcast_to(certain, got.shape)
    value, radius = number.value, number.radius
    if value.shape != got.shape:
        value, radius = np.broadcast_to(value, got.shape), np.broadcast_to(radius, got.shape)
    radius = radius * RADIUS_SLACK
    largest = number.budget.tensor.largest
    error = got - value
    ratio = np.abs(error) / radius
    ratio[got == value] = 0.0
    finite = np.isfinite(got)
    all_finite = bool(finite.all())
    size = np.abs(value) + radius
    if size.size and not size.max() < largest:
        towards = (np.sign(got) == np.sign(value)) & (np.abs(got) >= largest) & (size >= largest)
        ratio[towards] = 0.0
        finite = finite | towards
    if not all_finite:
        ratio[~finite] = np.inf
    if certain is not None:
        ratio[~certain] = 0.0
    judged, vague = certain, 0
    if expectation.weak is not None:
        unproved = expectation.weak & (ratio <= 1)
        if certain is not None:
            unproved &= certain
        judged, vague = (~unproved if certain is None else certain & ~unproved), int(unproved.sum())
    return _Weighed(value, error, ratio, finite, judged, elements, vague, certain, all_finite)


@np.errstate(**_UNALARMED)
def ratios(expectation: Expectation, output: NDArray[Any]) -> NDArray[np.float64]:
    """|error| / radius of every element of an output, as :func:`compare` has it; NaN where nothing is judged."""
    weighed = _weighed(expectation, output.astype(np.float64))
    return weighed.ratio if weighed.judged is None else np.where(weighed.judged, weighed.ratio, np.nan)


@np.errstate(**_UNALARMED)
def meets(expectation: Expectation, output: NDArray[Any]) -> bool:
    """Return whether no judged element of an output lies outside its radius: :func:`compare`, as far as that needs."""
    return bool(_weighed(expectation, output.astype(np.float64)).ratio.max(initial=0.0) <= 1)


@np.errstate(**_UNALARMED)
def compare(expectation: Expectation, output: NDArray[Any]) -> Agreement:
    """Compare an output (of the right shape and type) with its expectation.

    Where |value| + radius reaches the largest finite number of the type, infinity of that sign is right, and so is that
    largest number itself: arithmetic that saturates is conforming.
    """
    got = output.astype(np.float64)
    weighed = _weighed(expectation, got)
    ratio, judged = weighed.ratio, weighed.judged
    worst = float(ratio.max(initial=0.0))
    index: tuple[Any, ...] | None = np.unravel_index(int(ratio.argmax()), ratio.shape) if worst > 0 else None
    nonfinite = index is not None and not bool(weighed.finite[index])
    # A bound that is too wide to show anything takes nothing from what the error itself says of drift.
    certain, error, value = weighed.certain, weighed.error, weighed.value
    if certain is None and weighed.all_finite:  # as nearly always
        error, value = error.ravel(), value.ravel()
        largest = float(np.abs(error).max(initial=0.0))
    else:
        certain = np.ones(got.shape, bool) if certain is None else certain
        largest = float(np.where(weighed.finite, np.abs(error), np.inf)[certain].max(initial=0.0))
        steady = certain & np.isfinite(got)
        error, value = error[steady], value[steady]
    shift, scale = float(error.sum()), float((error * np.sign(value)).sum())
    square, size = float((error * error).sum()), float(np.abs(value).sum())
    if expectation.open is not None:
        beyond = np.where(weighed.finite, np.abs(weighed.error) - expectation.open, np.inf)
        largest = float(beyond[weighed.judged if weighed.judged is not None else ...].max(initial=0.0))
    return Agreement(
        expectation=expectation,
        worst=worst,
        index=None if index is None else tuple(int(i) for i in index),
        judged=got.size if judged is None else int(judged.sum()),
        elements=weighed.elements,
        vague=weighed.vague,
        failing=int((ratio > 1).sum()) if worst > 1 else 0,
        nonfinite=nonfinite,
        shift=shift,
        scale=scale,
        square=square,
        size=expectation.number.budget.tensor.unit * size,
        largest=largest,
    )


class Expected(Struct, frozen=True):
    """Values that the outputs of one run must have, by a class and interpretations, and how they agree with that.

    outputs
        Those that there are, by name.
    """

    expectations: ExpectationsBy
    outputs: Mapping[str, NDArray[Any]]

    def __call__(self, accuracy: str, interpretations: Interpretations | None) -> list[Expectation]:
        return self.expectations(accuracy, interpretations)

    def agreements(self, accuracy: str, interpretations: Interpretations | None) -> list[Agreement]:
        """Return the agreement of each returned output with each of its expectations."""
        return [
            compare(expectation, self.outputs[expectation.output])
            for expectation in self(accuracy, interpretations)
            if expectation.output in self.outputs
        ]


LOSES_NAN = "loses-nan"
"""Flag of results in which NaN became a number; it fails no target by itself."""

_THROUGH = frozenset({"Sigmoid", "Tanh", "Affine", "ScaledTanh"})
"""Functions that are sums, products, Sigmoid and Tanh, or made of these. Softplus and Softsign are not named: kernels
have them in forms that select."""

Array = NDArray[Any]
Bools = NDArray[np.bool_]


class SpecialValueMismatch(Struct, frozen=True):
    """Elements of one output that must be NaN and are numbers.

    lost, of
        The elements, of the output's shape, and the number of elements that must be NaN.
    entry
        The element of an input where NaN enters.
    """

    output: str
    clause: str
    lost: Bools
    of: int
    entry: str


def special_mismatches(
    node: Node,
    inputs: Mapping[str, Array],
    observed: Mapping[str, Array],
    interpretations: Interpretations | None = None,
) -> list[SpecialValueMismatch]:
    """Return the elements of a target's outputs that must be NaN and are numbers.

    One free run decides: NaN stays in a row once it is there, whatever a target reports in between.

    observed
        The target's outputs by name, of the right shapes.

    Raise IllegalNode if the document does not allow the node.
    """
    if not any(name != "sequence_lens" and a is not None and np.isnan(a).any() for name, a in inputs.items()):
        return []
    with np.errstate(over="ignore", invalid="ignore"):
        computation = computation_of(node, inputs, interpretations)
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
            losses.append(SpecialValueMismatch(name, clause, lost, int(must.sum()), _entry(computation)))
    return losses


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
