"""What the outputs of a target must be: numbers with radii, from its own reported states where it reports them.

Step-local: where Y is among the outputs, every step is judged from the state that the target reported one step before.
An error then passes through R once, only the inner state is scanned, and the radius stays tight at any length.

Free run: without Y the radius grows with length.

What lies outside a radius is wrong either way; lying within it proves something only while it is small beside the
signal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.clauses import clause_named
from ..documents.interpretations import Interpretations
from ..numbers.accuracy import Budget, budget
from ..numbers.bounded import RADIUS_SLACK, Bounded, Mask
from ..numbers.bounding import Bounding
from ..numbers.dyadic import Proving, provable
from .evaluation import tensors_of
from .node import Configuration, Node, configure
from .recurrence import Computation, Inputs, collect, trace

__all__ = [
    "Agreement",
    "Expectation",
    "ExpectationsBy",
    "Expecting",
    "Measure",
    "compare",
    "expect",
    "meets",
    "ratios",
    "valid_elements",
]

# A radius above this share of the signal has nothing to say for a target that lies within, step by step or free: a
# kernel whose every output is 1 % too large would.
WIDEST_SHARE = 0.01


@dataclass(frozen=True)
class Measure:
    """What errors of a quantized output are told in, beside numbers: the attribute that holds it, and its size."""

    name: str
    size: float


@dataclass(frozen=True)
class Expectation:
    """What one output must be, as far as one clause says so.

    output
        The output's name; ``number`` has its shape, in the node's layout.
    clause
        What a target breaks that is not within the radii.
    about
        Elements that this is about; None for all. Elements in doubt are about nothing.
    weak
        Elements whose radius is so wide that lying within it proves nothing; lying outside it still does.
    measure
        The size of an error that is one level; None where outputs are not quantized.
    """

    output: str
    number: Bounded
    clause: str
    about: NDArray[np.bool_] | None = None
    weak: NDArray[np.bool_] | None = None
    measure: Measure | None = None

    @property
    def conventional(self) -> bool:
        """Whether only a convention asks for it: then it fails nothing."""
        return clause_named(self.clause).status == "convention"

    @property
    def repeats_y(self) -> bool:
        """Whether it says that an output is a part of Y, whose errors have been counted already."""
        return self.clause.endswith(".outputs.last-hidden")


ExpectationsBy = Callable[[str, Interpretations | None], list[Expectation]]
"""From an accuracy class and interpretations to what the outputs of one run must be."""


@dataclass(frozen=True)
class Agreement:
    """How an output agrees with an expectation.

    worst
        Largest |error| / radius over the judged elements; infinity where no radius allows what is there.
    index
        Where that is, in the output's own layout; None where everything agrees to the last bit or nothing is judged.
    judged, elements
        How many elements could be judged, of how many that the expectation is about.
    failing
        How many elements are outside their radius.
    nonfinite
        Whether the worst element is NaN or infinite where it must not be.
    vague
        How many elements are not judged since their radius is so wide that lying within it proves nothing.
    largest
        The largest |error| of the judged elements, infinite where one is NaN or infinite wrongly.
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


def expect(
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    observed: Mapping[str, NDArray[Any]],
    accuracy: str = "standard",
    interpretations: Interpretations | None = None,
) -> list[Expectation]:
    """What the outputs of `node` must be for these inputs.

    observed
        The target's outputs by name. Its Y, where there is one of the right shape, makes the judgement step-local.
    accuracy
        Name of an accuracy class.

    Raises IllegalNode where the document does not allow the node, ValueError for an unknown class.
    """
    return Expecting(node, inputs, observed)(accuracy, interpretations)


class Expecting:
    """What the outputs of a node must be in one run, by several classes and interpretations: what does not depend on
    these is worked out once."""

    def __init__(
        self, node: Node, inputs: Mapping[str, NDArray[Any]], observed: Mapping[str, NDArray[Any]], runs: int = 1
    ) -> None:
        """`runs`: how many stand side by side in the batch (:mod:`.stacking`)."""
        self._node, self._inputs, self._observed, self._runs = node, inputs, observed, runs
        self._tensors: Mapping[str, NDArray[Any]] | None = None
        self._shared: dict[Budget, dict[tuple[int, bool], Inputs]] = {}

    def __call__(self, accuracy: str = "standard", interpretations: Interpretations | None = None) -> list[Expectation]:
        """See :func:`expect`."""
        configuration = configure(self._node, self._inputs, interpretations)
        if self._tensors is None:
            self._tensors = tensors_of(self._inputs)
        shared = self._shared.setdefault(_of_sums(accuracy, configuration.format.name), {})
        with np.errstate(over="ignore", invalid="ignore"):
            return _expect(Computation(configuration, self._tensors), self._observed, accuracy, shared, self._runs)


@cache
def _of_sums(accuracy: str, type_name: str) -> Budget:
    """What a class says of sums: classes that differ in what activations may cost, as strict and standard do, have
    their sums in common."""
    return replace(budget(accuracy, type_name), name="", a=0.0, b=0.0)


def _expect(
    computation: Computation,
    observed: Mapping[str, NDArray[Any]],
    accuracy: str,
    shared: dict[tuple[int, bool], Inputs],
    runs: int,
) -> list[Expectation]:
    c = computation.configuration
    arithmetic = Bounding(budget(accuracy, c.format.name))
    reported = observed.get("Y")
    Y = None
    if reported is not None:
        Y = reported.astype(np.float64)
        if c.layout == 1:
            Y = Y.transpose(1, 2, 0, 3)
    numbers = collect(c, trace(computation, arithmetic, Y, shared), arithmetic)
    terms = c.T * c.N // runs * (c.I + c.H) * len(c.cell.gates) * c.H
    if arithmetic.budget.exact_possible and provable(c.activations, terms):
        numbers = _proved_exact(computation, numbers)
    prefix = c.cell.op_type.lower()
    expectations = []
    valid = valid_elements(c) if c.ragged else None
    for name in c.outputs:
        number = numbers[name]
        if name == "Y":
            expectations.append(Expectation("Y", number, f"{prefix}.equations", valid, _too_wide(number)))
            if valid is not None:
                zero = Bounded(np.zeros_like(number.value), np.zeros_like(number.value), number.budget)
                expectations.append(Expectation("Y", zero, f"{prefix}.padding.zero", ~valid))
            continue
        if name == "Y_h" and Y is not None and c.T:
            # Judged as the last of Y: what is wrong with that step shows there.
            last, some = _last_reported(c, Y, arithmetic)
            expectations.append(Expectation("Y_h", last, f"{prefix}.outputs.last-hidden", some))
            if some is not None:
                expectations.append(Expectation("Y_h", number, f"{prefix}.empty-sequence", ~some))
            continue
        expectations.append(Expectation(name, number, f"{prefix}.equations", weak=_too_wide(number)))
    return expectations


def _proved_exact(computation: Computation, numbers: dict[str, Bounded]) -> dict[str, Bounded]:
    """The numbers with radius zero wherever it is proved that no conforming implementation rounds."""
    proving = Proving(computation.configuration.format)
    proofs = collect(computation.configuration, trace(computation, proving), proving)
    proved = {}
    for name, number in numbers.items():
        proof = proofs[name].settled()
        exact = proof.exact if number.doubt is None else proof.exact & ~number.doubt
        value = np.where(exact, proof.value, number.value)
        proved[name] = replace(number, value=value, radius=np.where(exact, 0.0, number.radius))
    return proved


def valid_elements(c: Configuration) -> NDArray[np.bool_]:
    """Elements of Y that lie within their row's length, in the node's layout."""
    within = np.arange(c.T)[:, np.newaxis] < c.lengths
    shape = (c.T, len(c.directions), c.N, c.H)
    valid = np.broadcast_to(within[:, np.newaxis, :, np.newaxis], shape)
    return valid.transpose(2, 0, 1, 3) if c.layout == 1 else valid


def _last_reported(c: Configuration, Y: NDArray[Any], arithmetic: Bounding) -> tuple[Bounded, Mask]:
    """The Y of every row's last step, (D, N, H) or its layout-1 form, and the rows that have a step; None where all do.

    Y and Y_h may show one and the same wide state, each rounded once: they are two storage roundings apart at most.
    """
    rows = np.arange(c.N)
    steps = {"forward": np.maximum(c.lengths - 1, 0), "reverse": np.zeros(c.N, np.int64)}
    last = np.array([Y[steps[direction], d, rows] for d, direction in enumerate(c.directions)])
    some: Mask = None
    if not c.lengths.all():
        some = np.broadcast_to((c.lengths > 0)[:, np.newaxis], last.shape)
    if c.layout == 1:
        last, some = last.transpose(1, 0, 2), None if some is None else some.transpose(1, 0, 2)
    number = arithmetic.shown(last)
    number.radius *= 2
    number.proportion = None  # which is that of one
    return number, some


def _too_wide(number: Bounded) -> Mask:
    """Elements whose radius is not small beside the signal of their row, which is its largest number; None where there
    are none."""
    signal = np.abs(number.value).max(axis=-1, keepdims=True, initial=0.0)
    wide: NDArray[np.bool_] = number.radius > WIDEST_SHARE * signal
    return wide & (number.radius > 0) if wide.any() else None


@dataclass(frozen=True)
class _Weighed:
    """An output beside an expectation, element by element; arrays of its shape.

    ratio
        |error| / radius, 0 where nothing is judged; ``finite`` is False where a NaN or an infinity stands wrongly.
    certain, judged
        What the expectation is about and not in doubt, and what of that is judged; None for all of it.
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


# Outputs that are not finite, and radii of zero.
_unalarmed = np.errstate(over="ignore", invalid="ignore", divide="ignore")


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


@_unalarmed
def ratios(expectation: Expectation, output: NDArray[Any]) -> NDArray[np.float64]:
    """|error| / radius of every element of an output, as :func:`compare` has it; NaN where nothing is judged."""
    weighed = _weighed(expectation, output.astype(np.float64))
    return weighed.ratio if weighed.judged is None else np.where(weighed.judged, weighed.ratio, np.nan)


@_unalarmed
def meets(expectation: Expectation, output: NDArray[Any]) -> bool:
    """Whether no judged element of an output lies outside its radius: :func:`compare`, as far as that needs."""
    return bool(_weighed(expectation, output.astype(np.float64)).ratio.max(initial=0.0) <= 1)


@_unalarmed
def compare(expectation: Expectation, output: NDArray[Any]) -> Agreement:
    """Compare an output (of the right shape and type) with what it must be.

    Where |value| + radius reaches the largest finite number of the type, infinity of that sign is right, and so is
    that largest number itself: arithmetic that saturates is conforming.
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
