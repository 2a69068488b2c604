"""The scan that all cells share: directions, lengths, layout, initial states and optional inputs.

Everything inside works in *processing order*: step 0 is the one that a direction computes first. For a row of length L
forward processes 0 ... L-1 and reverse L-1 ... 0; steps past the length come last in both, are computed like the others
and then left out. One table of positions turns tensors into processing order and, being its own inverse, back.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..numbers.accuracy import budget
from ..numbers.bounded import Bounded
from ..numbers.bounding import Bounding
from ..numbers.formats import Format
from ..numbers.plain import Plain
from .cell import ABSENT, Gates, Number, Parameters, Recurrent, blocks_of
from .configuration import Configuration
from .operands import Operands

# Numbers of one array that are worked on at a time: small enough for a processor's cache, and for memory to be used
# again instead of being asked for anew. Long sequences are taken in blocks of steps.
_BLOCK = 1 << 17

# Bytes of the largest array whose end tells glibc to keep as much: see `_hold_memory`.
_MOST_HELD = 1 << 25

# Sums of at most so many numbers, and walks with them, are kept for other interpretations: those of larger cases would
# fill the memory.
_SHARED = 1 << 15


@dataclass(frozen=True)
class Computation:
    """A configuration with the float64 values of its tensors: all that the numbers depend on.

    Faults are made by replacing parts of it.

    handed
        Inputs with their bounds, in the node's layout, that are outputs of another node: X, or initial states.
    runs
        How many stand side by side in the batch (:mod:`.stacking`); X, which is the same for all, is that of one.
    """

    configuration: Configuration
    inputs: Mapping[str, NDArray[Any]] = field(hash=False)
    handed: Mapping[str, Bounded] = field(default_factory=dict, hash=False, compare=False, kw_only=True)
    runs: int = field(default=1, kw_only=True)

    @property
    def format(self) -> Format:
        """The format of the tensors."""
        return self.configuration.format

    @property
    def directions(self) -> tuple[str, ...]:
        """Directions in the order of Y's axis."""
        return self.configuration.directions

    @property
    def peeps(self) -> bool:
        """Tell whether gates see inner states."""
        return "P" in self.inputs

    def direction_axis(self, output: str) -> int:
        """The axis of an output that has the directions."""
        batch_first = self.configuration.layout == 1
        return (2 if batch_first else 1) if output == "Y" else int(batch_first)

    def plain(self, observed: NDArray[Any] | None = None) -> dict[str, NDArray[Any]]:
        """All outputs in float64; `observed` as in :func:`trace`."""
        arithmetic = Plain()
        return collect(self.configuration, trace(self, arithmetic, reported(self, observed)), arithmetic)

    def bounded(self, accuracy: str, observed: NDArray[Any] | None = None) -> dict[str, Number]:
        """All outputs with their bounds in an accuracy class; `observed` as in :func:`trace`."""
        arithmetic = Bounding(budget(accuracy, self.configuration.format.name))
        return collect(self.configuration, trace(self, arithmetic, reported(self, observed)), arithmetic)

    def with_input(self, name: str, altered: Computation) -> Computation:
        """This computation, with one input as another one has it."""
        changed, own = altered.inputs.get(name), self.inputs.get(name)
        if changed is not None and own is not None and changed.shape != own.shape:
            return self  # it goes with other axes of all that there is, and not alone
        inputs = {**self.inputs, name: changed}
        return replace(self, inputs={n: a for n, a in inputs.items() if a is not None})


def reported(computation: Computation, observed: NDArray[Any] | None) -> NDArray[Any] | None:
    """The states that a target reported, where the computation is of their sizes: one that takes other axes for steps
    and rows starts from its own."""
    c = computation.configuration
    fits = observed is not None and observed.shape == (c.T, len(c.directions), c.N, c.H)
    return observed if fits else None


class Trace(Struct, frozen=True):
    """The states of one direction after every step, in processing order: arrays (T, N, H) of the arithmetic's
    numbers."""

    positions: NDArray[np.int64] | slice
    hidden: Number
    inner: tuple[Number, ...]
    initial: tuple[Number, ...]


class Rows(Protocol):
    """The steps to be walked through: T steps, of which each row has its number."""

    @property
    def T(self) -> int: ...
    @property
    def lengths(self) -> NDArray[np.int64]: ...
    @property
    def ragged(self) -> bool: ...


def processing_order(configuration: Rows, direction: str) -> NDArray[np.int64] | slice:
    """The position that each row processes at each step: (T, N), or a slice where that is the same for all rows."""
    c = configuration
    if direction == "forward":
        return slice(None)
    if not c.ragged:
        return slice(None, None, -1)
    t = np.arange(c.T)[:, np.newaxis]
    positions: NDArray[np.int64] = np.where(t < c.lengths, c.lengths - 1 - t, t)
    return positions


def ordered(tensor: Any, positions: NDArray[np.int64] | slice) -> Any:
    """A (T, N, ...) tensor with its steps in processing order, or from it back."""
    if isinstance(positions, slice):
        return tensor[positions]
    return tensor[positions, np.arange(positions.shape[1])]


def trace(
    computation: Computation,
    arithmetic: Any,
    observed: Any = None,
    shared: Shared | None = None,
) -> tuple[Trace, ...]:
    """Run every direction.

    observed
        The Y that a target reported, (T, D, N, H) in float64, or what the arithmetic makes of it. Then each step starts
        from the reported state of the step before (step-local); without it from the computed one (free run).
    shared
        What other interpretations of the same node have in common with this one, in the same arithmetic and from the
        same reported states; it is added to.
    """
    directions = range(len(computation.configuration.directions))
    shared = Shared() if shared is None else shared
    return tuple(_walked(computation, arithmetic, d, observed, shared) for d in directions)


class Factors(Struct):
    """The part of one direction's operands that is the same whatever a target reported, in some arithmetic.

    X, biases
        X in processing order; of several runs side by side (:mod:`.stacking`), for which it is the same, that of one.
    gates
        Of single gates the weights of states and their bias, so far as somebody asked for them.
    sums
        Xt*(W^T) + Wb for all gates, of the blocks of steps that were asked for so far, by where one begins and how
        many steps it may have.
    """

    X: Number
    W: Any
    R: Any
    biases: tuple[Number, Number]
    gates: dict[str, tuple[Any, Number]] = {}
    sums: dict[tuple[int, int], Number] = {}


class Inputs(Struct):
    """The operands of one direction: its tensors in some arithmetic, and Ht-1*(R^T) + Rb for all gates where every
    state before a step is known, of the blocks of steps that were asked for so far.

    before, multiplied
        Every state before a step, where they are known, and what goes into products in their place.
    wait
        Where rows wait (:class:`.operands.Operands`), how many steps of the others each lets go by.
    """

    factors: Factors
    positions: NDArray[np.int64] | slice
    initial: tuple[Number, ...]
    peepholes: dict[str, Number]
    before: Number | None
    multiplied: Number | None
    wait: NDArray[np.int64] | None
    sums: dict[int, Number] = {}


_Asked = tuple[int, bool, Operands | None]


class Shared(Struct, frozen=True):
    """Parts of computations that interpretations of one node have in common.

    inputs
        Inputs by direction and what interpretations say of the operands. Classes with the same sums share them.
    walks
        Traces by direction and all that interpretations say of its steps: what they say of empty rows and of outputs is
        none of it.
    factors
        Like inputs, of all runs on these.
    """

    inputs: dict[_Asked, Inputs] = {}
    walks: dict[Hashable, Trace] = {}
    factors: dict[Hashable, Factors] = {}


def sums_of_inputs(computation: Computation, arithmetic: Any, shared: Shared) -> Iterator[Number]:
    """Xt*(W^T) + Wb of each direction, for all gates and steps."""
    for d in range(len(computation.configuration.directions)):
        factors = _given(computation, arithmetic, d, None, shared).factors
        yield _plus(arithmetic.product(factors.X, factors.W), factors.biases[0])


def _given(computation: Computation, arithmetic: Any, d: int, observed: Any, shared: Shared) -> Inputs:
    """The operands of one direction, which other interpretations may have asked for."""
    c = computation.configuration
    key = d, c.transposes, c.operands
    if key not in shared.inputs:
        shared.inputs[key] = _inputs(computation, arithmetic, d, observed, shared)
    return shared.inputs[key]


def _walked(computation: Computation, arithmetic: Any, d: int, observed: Any, shared: Shared) -> Trace:
    """The trace of one direction, which other interpretations may have asked for."""
    c = computation.configuration
    if is_large(c):
        return _run(computation, arithmetic, d, observed, shared)
    key = d, c.activations[d], c.clips, c.coupled, c.transposes, c.operands
    known = shared.walks.get(key)
    if known is None:
        known = shared.walks[key] = _run(computation, arithmetic, d, observed, shared)
    return known


def is_large(c: Configuration) -> bool:
    """Tell whether a direction has more numbers than are kept for other interpretations."""
    return c.T * c.N * len(c.cell.gates) * c.H > _SHARED


def _factors(computation: Computation, arithmetic: Any, d: int, shared: Shared) -> Factors:
    """The factors of one direction, which another run may have asked for."""
    c, inputs = computation.configuration, computation.inputs
    operands = None if c.operands is None else c.operands.beside(1)
    rows = read = len(c.cell.gates) * c.H
    if c.cell.read is not None and is_large(c):  # for what the walk leaves alone there are too many products a step
        read = len(c.cell.read(c.linear_before_reset)) * c.H
    key = d, c.transposes, operands, read
    if key in shared.factors:
        return shared.factors[key]
    bias = inputs.get("B")
    biases = (ABSENT, ABSENT)
    if bias is not None:
        biases = arithmetic.given(bias[d, :rows]), arithmetic.given(bias[d, rows : rows + read])
    X: Number = computation.handed.get("X", inputs["X"])
    order, own = processing_order(c, c.directions[d]), c.N // computation.runs
    order = order if isinstance(order, slice) else order[:, :own]
    X = ordered(X if c.layout == 0 else X.transpose(1, 0, 2), order)
    X = X if "X" in computation.handed else arithmetic.given(X)
    if operands is not None:
        X = operands.of_inputs(X, c.lengths[:own], order)
    W, R = arithmetic.weights(inputs["W"][d]), arithmetic.weights(_recurrent_weights(computation, d)[:read])
    shared.factors[key] = Factors(X, W, R, biases)
    return shared.factors[key]


def _inputs(computation: Computation, arithmetic: Any, d: int, observed: Any, shared: Shared) -> Inputs:
    c, inputs, cell = computation.configuration, computation.inputs, computation.configuration.cell
    factors = _factors(computation, arithmetic, d, shared)
    positions = processing_order(c, c.directions[d])
    initial = tuple(_initial(computation, arithmetic, name, d) for name in ("h", *cell.inner))
    before = None
    if observed is not None and c.T:
        reported = arithmetic.shown(ordered(observed[:, d], positions)[:-1])
        before = arithmetic.concatenate((initial[0][np.newaxis], reported))
    wait = None
    if c.operands is not None and c.operands.by_clock and c.directions[d] == "reverse":
        wait = c.T - c.lengths
    multiplied = before if before is None or c.operands is None else _multiplied(c, c.operands, before, wait)
    return Inputs(factors, positions, initial, _peepholes(c, inputs, d, arithmetic), before, multiplied, wait)


def _recurrent_weights(computation: Computation, d: int) -> NDArray[Any]:
    c = computation.configuration
    R: NDArray[Any] = computation.inputs["R"][d]
    return R if c.transposes else R.reshape(-1, c.H, c.H).swapaxes(1, 2).reshape(R.shape)


def _run(
    computation: Computation,
    arithmetic: Any,
    d: int,
    observed: Any,
    shared: Shared,
) -> Trace:
    c, cell = computation.configuration, computation.configuration.cell
    rows = len(cell.gates) * c.H
    given = _given(computation, arithmetic, d, observed, shared)
    factors = given.factors

    def through(x: Number, letter: str) -> Number:
        if letter not in factors.gates:
            R, bias = _recurrent_weights(computation, d), computation.inputs.get("B")
            block = slice(position := cell.gates.index(letter) * c.H, position + c.H)
            own_bias = ABSENT if bias is None else arithmetic.given(bias[d, rows:][block])
            factors.gates[letter] = arithmetic.weights(R[block]), own_bias
        weights, own_bias = factors.gates[letter]
        return _plus(arithmetic.product(x, weights), own_bias)

    functions = cell.bind(arithmetic, c.activations[d], c.clips)
    parameters = Parameters(functions, given.peepholes, c.coupled, c.linear_before_reset, arithmetic)

    before, (Wb, Rb) = given.before, factors.biases
    wait = given.wait if before is None else None
    X = factors.X if wait is None else factors.X[_later(c, -wait)]
    state, inner = given.initial[0][np.newaxis], given.initial[1:]
    blocks = blocks_of(cell.gates, c.H)
    if c.T == 0:
        nothing = arithmetic.given(np.zeros((0, c.N, c.H)))
        return Trace(given.positions, nothing, (nothing,) * len(inner), given.initial)
    steps: list[tuple[Number, ...]] = []
    if large := is_large(c):
        _hold_memory()
    block = max(1, _BLOCK // max(1, c.N * rows))
    for start in range(0, c.T, block):
        known = None if before is None else before[start : start + block]
        kept = known is not None and not large
        XW: Number = factors.sums.get((start, block)) if kept else None
        if XW is None:
            XW = _plus(arithmetic.product(X[start : start + block], factors.W), Wb)
            if kept:
                factors.sums[start, block] = XW
        if computation.runs > 1:
            XW = XW[:, np.arange(c.N) % (c.N // computation.runs or 1)]
        if known is not None:  # one walk takes all steps of the block
            HR = given.sums.get(start)
            if HR is None:
                assert given.multiplied is not None
                HR = _plus(arithmetic.product(given.multiplied[start : start + block], factors.R), Rb)
                if kept:
                    given.sums[start] = HR
            steps.append(cell.walk(parameters, Gates(XW, blocks), Recurrent(HR, blocks, known, through, start), inner))
            inner = tuple(arithmetic.kept(states[-1]) for states in steps[-1][1:])
            continue
        for t in range(len(XW)):  # each step waits for the one before
            operand = state
            if c.operands is not None:
                had = _had(c, start + t, start + t + 1, wait)
                operand = c.operands.of_states(state, had, c.lengths)
            HR = _plus(arithmetic.product(operand, factors.R), Rb)
            step = Recurrent(HR, blocks, state, through, start + t)
            steps.append(stepped := cell.walk(parameters, Gates(XW[t : t + 1], blocks), step, inner))
            last = state
            state = arithmetic.fed_back(stepped[0])
            inner = tuple([arithmetic.kept(states[-1]) for states in stepped[1:]])
            if c.operands is not None and c.ragged:  # rows depend on what others wait with, or have ended with
                state = arithmetic.where((had < c.lengths)[..., np.newaxis], state, last)
            if wait is not None:
                waits = (had < 0)[..., np.newaxis]
                state = arithmetic.where(waits, given.initial[0], state)
                inner = tuple(
                    arithmetic.where(waits[0], initial, states)
                    for initial, states in zip(given.initial[1:], inner, strict=True)
                )
    if len(steps) == 1:
        hidden, *inner_states = steps[0]
    else:
        hidden, *inner_states = (arithmetic.concatenate(parts) for parts in zip(*steps, strict=True))
    if wait is not None:
        hidden, *inner_states = (states[_later(c, wait)] for states in (hidden, *inner_states))
    return Trace(given.positions, hidden, tuple(inner_states), given.initial)


@cache
def _hold_memory() -> None:
    """Have the C library keep memory that large arrays leave, for those that come next.

    glibc gives back what is freed beyond a threshold, and the system hands it out again, cleared: of large cases that
    was a fifth of the time. The threshold follows the largest array that was ever freed, up to 32 MiB; so one is made,
    and never written to. Other libraries take no notice.
    """
    np.empty(_MOST_HELD - (1 << 16), np.uint8)


def _multiplied(c: Configuration, operands: Operands, before: Number, wait: NDArray[np.int64] | None) -> Number:
    """The operands of all steps that the states before them go into products as."""
    if not c.ragged:
        return operands.of_states(before, _had(c, 0, c.T, None), c.lengths)
    had = _had(c, 0, c.T, wait)
    states = before[np.clip(had, 0, np.minimum(c.lengths, c.T - 1)), np.arange(c.N)]
    made = operands.of_states(states, had, c.lengths)
    return made if wait is None else made[_later(c, wait)]


def _had(c: Configuration, start: int, stop: int, wait: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The number of steps that each row has had before some steps (steps, N)."""
    steps = np.broadcast_to(np.arange(start, stop)[:, np.newaxis], (stop - start, c.N))
    return steps if wait is None else steps - wait


def _later(c: Configuration, wait: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """An index of steps (T, N) by so many later, as far as there are any."""
    return np.clip(np.arange(c.T)[:, np.newaxis] + wait, 0, c.T - 1), np.arange(c.N)


def _plus(product: Number, bias: Number) -> Number:
    """A product, which nothing else holds, plus a bias."""
    if bias is not ABSENT:
        product += bias
    return product


def _peepholes(c: Configuration, inputs: Mapping[str, NDArray[Any]], d: int, arithmetic: Any) -> dict[str, Number]:
    if "P" not in inputs:
        return dict.fromkeys(c.cell.peepholes, ABSENT)
    blocks = inputs["P"][d].reshape(len(c.cell.peepholes), c.H)
    return {letter: arithmetic.given(block) for letter, block in zip(c.cell.peepholes, blocks, strict=True)}


def _initial(computation: Computation, arithmetic: Any, name: str, d: int) -> Number:
    c, name = computation.configuration, f"initial_{name}"
    place = d if c.layout == 0 else (slice(None), d)
    if name in computation.handed:
        return computation.handed[name][place]
    given = computation.inputs.get(name)
    initial: Number = arithmetic.given(np.zeros((c.N, c.H)) if given is None else given[place])
    return initial


def collect(configuration: Configuration, traces: tuple[Trace, ...], arithmetic: Any) -> dict[str, Number]:
    """The operator's outputs, in its layout, from the traces of its directions."""
    c = configuration
    outputs: dict[str, list[Number]] = {"Y": [], "Y_h": [], **{f"Y_{name}": [] for name in c.cell.inner}}
    for run in traces:
        Y = ordered(run.hidden, run.positions)
        if c.ragged:
            valid = (np.arange(c.T)[:, np.newaxis] < c.lengths)[..., np.newaxis]
            Y = arithmetic.where(valid, Y, arithmetic.given(np.zeros(())))
        outputs["Y"].append(Y[:, np.newaxis])
        for name, steps, initial in zip(("h", *c.cell.inner), (run.hidden, *run.inner), run.initial, strict=True):
            outputs[f"Y_{name}"].append(_last(c, steps, initial, arithmetic)[np.newaxis])
    joined = {"Y": arithmetic.concatenate(outputs.pop("Y"), 1)}
    joined.update({name: arithmetic.concatenate(parts) for name, parts in outputs.items()})
    if c.layout == 1:
        joined = {n: v.transpose(*((2, 0, 1, 3) if n == "Y" else (1, 0, 2))) for n, v in joined.items()}
    return joined


def _last(c: Configuration, steps: Number, initial: Number, arithmetic: Any) -> Number:
    """The state after each row's last step, (N, H)."""
    if c.T == 0:
        last = initial
    elif c.ragged:
        last = steps[np.maximum(c.lengths - 1, 0), np.arange(c.N)]
    else:
        return steps[-1]
    if c.empty == "zero":
        initial = arithmetic.given(np.zeros((c.N, c.H)))
    return arithmetic.where((c.lengths > 0)[:, np.newaxis], last, initial)
