"""Expected outputs: numbers with radii, computed from the target's reported states if possible.

Step-local: if Y is among the outputs, every step is judged from the state that the target reported for the step before.
An error then passes through R once, only the inner state is scanned, and the radius stays tight at any length.

Free run: without Y the radius grows with length.

A number outside its radius is wrong either way; a number inside proves something only if the radius is small beside the
signal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.clauses import clause_named
from ..documents.interpretations import Interpretations
from ..numbers.accuracy import budget
from ..numbers.bounded import Bounded, Mask
from ..numbers.bounding import LEAST_SINGLE, Bounding, Radius, in_double
from ..numbers.plain import Plain
from .computation import Computation, computation_of
from .configuration import Configuration, configure, in_layout, steps_first
from .node import Node
from .rnn import is_large, run

# A radius above this share of the signal has nothing to say for a target that lies within, step by step or free: a
# kernel whose every output is 1 % too large would.
WIDEST_SHARE = 0.01


class Measure(Struct, frozen=True):
    """Unit for errors of a quantized output: the attribute that holds it, and its size."""

    name: str
    size: float


@dataclass(frozen=True)
class Expectation:
    """Expected value of one output, as far as one clause determines it.

    output
        The output's name; ``number`` has its shape, in the node's layout.
    clause
        The clause that a target breaks outside the radii.
    about
        Elements concerned; None for all. Elements in doubt are never judged.
    weak
        Elements whose radius is so wide that agreement proves nothing; outside it they are wrong all the same.
    measure
        The size of an error of one level; None if outputs are not quantized.
    open
        Number of levels that are open for each element, without the class's allowance: largest errors count beyond
        that. None if outputs are numbers.
    """

    output: str
    number: Bounded
    clause: str
    about: NDArray[np.bool_] | None = None
    weak: NDArray[np.bool_] | None = None
    measure: Measure | None = None
    open: NDArray[np.float64] | None = None

    @property
    def conventional(self) -> bool:
        """Whether only a convention asks for it: then it fails nothing."""
        return clause_named(self.clause).status == "convention"

    @property
    def repeats_y(self) -> bool:
        """Whether it says that an output is a part of Y, whose errors were counted already."""
        return self.clause.endswith(".outputs.last-hidden")


ExpectationsBy = Callable[[str, Interpretations | None], list[Expectation]]
"""Function from an accuracy class and interpretations to the expected outputs of one run."""


def expect(
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    observed: Mapping[str, NDArray[Any]],
    accuracy: str = "standard",
    interpretations: Interpretations | None = None,
    *,
    runs: int = 1,
) -> list[Expectation]:
    """Return the expected outputs of `node` for these inputs.

    observed
        The target's outputs by name. A Y of the right shape makes the judgement step-local.
    accuracy
        Name of an accuracy class.
    runs
        Number of runs on the same inputs, whose outputs stand side by side in the batch.

    Raise IllegalNode if the document does not allow the node, ValueError for an unknown class.
    """
    one = computation_of(node, inputs, interpretations)
    computation = one if runs == 1 else _side_by_side(one, runs)
    c, reported = computation.configuration, observed.get("Y")
    allowed, radii = budget(accuracy, c.format.name), _radii(computation, observed)
    Y = None if reported is None else steps_first(reported.astype(np.float64), c.layout)
    exact = node.exact and allowed.exact_possible
    if exact and interpretations is not None:  # with other functions or coefficients numbers may be rounded
        exact = one.configuration.equivalence_key == configure(node, inputs).equivalence_key
    with np.errstate(over="ignore", invalid="ignore"):
        if exact:
            outputs = run(c, computation.inputs, Plain())
            numbers = {name: Bounded(value, np.zeros_like(value), allowed) for name, value in outputs.items()}
        else:
            numbers = run(c, computation.inputs, Bounding(allowed, radii=radii), Y)
            if radii is np.float32:
                numbers = {name: in_double(number, allowed) for name, number in numbers.items()}
        return _expectations(c, numbers, Y, Bounding(allowed))


def _side_by_side(one: Computation, runs: int) -> Computation:
    """Return the computation of several runs in one batch."""
    c = one.configuration
    operands = None if c.operands is None else c.operands.beside(runs)
    several = replace(c, N=runs * c.N, lengths=np.tile(c.lengths, runs), operands=operands)
    batched = {"X", *(f"initial_{name}" for name in ("h", *c.cell.inner))} & one.inputs.keys()
    tiled = {name: np.concatenate([one.inputs[name]] * runs, 1 - c.layout) for name in batched}
    return Computation(several, {**one.inputs, **tiled})


def bounds(
    node: Node,
    inputs: Mapping[str, NDArray[Any]],
    arithmetic: Bounding,
    interpretations: Interpretations | None = None,
    states: Bounded | None = None,
) -> dict[str, Bounded]:
    """Return all outputs of a node in some arithmetic with bounds, in the node's layout.

    states
        Known Y of every step, (T, D, N, H), from which each step starts. None: a free run.
    """
    computation = computation_of(node, inputs, interpretations)
    with np.errstate(over="ignore", invalid="ignore"):
        return run(computation.configuration, computation.inputs, arithmetic, states)


def _expectations(
    c: Configuration, numbers: Mapping[str, Bounded], Y: NDArray[Any] | None, arithmetic: Bounding
) -> list[Expectation]:
    """Return what each clause determines of the outputs; `Y` (T, D, N, H) are the states that a target reported."""
    prefix = c.cell.prefix
    expectations = []
    valid = valid_elements(c) if c.ragged else None
    for name in c.outputs:
        number = numbers[name]
        if name == "Y":
            expectations.append(Expectation("Y", number, f"{prefix}.equations", valid, too_wide(number)))
            if valid is not None:
                nothing = np.broadcast_to(0.0, number.value.shape)
                zero = Bounded(nothing, nothing, number.budget)
                expectations.append(Expectation("Y", zero, f"{prefix}.padding.zero", ~valid))
            continue
        if name == "Y_h" and Y is not None and c.T:
            # Judged as the last of Y: what is wrong with that step shows there.
            last, some = _last_reported(c, Y, arithmetic)
            expectations.append(Expectation("Y_h", last, f"{prefix}.outputs.last-hidden", some))
            if some is not None:
                expectations.append(Expectation("Y_h", number, f"{prefix}.empty-sequence", ~some))
            continue
        expectations.append(Expectation(name, number, f"{prefix}.equations", weak=too_wide(number)))
    return expectations


def _radii(computation: Computation, observed: Mapping[str, NDArray[Any]]) -> Radius:
    """Return the type of radii: float32 for large nodes, whose cost is memory, if every state is made of functions that
    allow it (:func:`..numbers.bounding.in_double`)."""
    c = computation.configuration
    fit = (
        "Y" in observed  # the radii of a free run grow with its length, and so would their roundings
        and is_large(c)
        and c.T * c.N * max(c.I, c.H) * len(c.cell.gates) * c.H >= LEAST_SINGLE  # which no stack of runs has
        and c.format.precision == 24
        and not (c.cell.domain or c.operands or "P" in computation.inputs)
        and all(clip is None for clip in c.clips)
        and all(function.kind.slope is not None for functions in c.activations for function in functions)
    )
    return np.float32 if fit else np.float64


def valid_elements(c: Configuration) -> NDArray[np.bool_]:
    """Return elements of Y that lie within their row's length, in the node's layout."""
    within = np.arange(c.T)[:, np.newaxis] < c.lengths
    shape = (c.T, len(c.directions), c.N, c.H)
    valid: NDArray[np.bool_] = in_layout(np.broadcast_to(within[:, np.newaxis, :, np.newaxis], shape), c.layout)
    return valid


def _last_reported(c: Configuration, Y: NDArray[Any], arithmetic: Bounding) -> tuple[Bounded, Mask]:
    """Return the Y of every row's last step, (D, N, H) or its layout-1 form, and the rows that have a step; None if all
    do.

    Y and Y_h may show the same wider state, each rounded once: they are at most two storage roundings apart.
    """
    rows = np.arange(c.N)
    steps = {"forward": np.maximum(c.lengths - 1, 0), "reverse": np.zeros(c.N, np.int64)}
    last = np.array([Y[steps[direction], d, rows] for d, direction in enumerate(c.directions)])
    some: Mask = None
    if not c.lengths.all():
        some = np.broadcast_to((c.lengths > 0)[:, np.newaxis], last.shape)
    if c.layout == 1:
        last, some = last.transpose(1, 0, 2), None if some is None else some.transpose(1, 0, 2)
    number = arithmetic.reported_state(last)
    number.radius *= 2
    number.proportion = None  # which is that of one
    return number, some


def too_wide(number: Bounded) -> Mask:
    """Return a mask of elements whose radius is not small beside the signal of their row, its largest number; None if
    there are none."""
    signal = np.abs(number.value).max(axis=-1, keepdims=True, initial=0.0)
    wide: NDArray[np.bool_] = number.radius > WIDEST_SHARE * signal
    return wide & (number.radius > 0) if wide.any() else None
