"""Parts of ONNX's recurrent operators that can go wrong: made from their description, not listed.

Every input may be dropped or lose its end, every gate may be taken for another one, every attribute may be forgotten,
every output may lose its end, the state may stay from one run to the next. What goes wrong is a :class:`.fault.Fault`
like any other, without a name of its own in the table; *where* it does is for whoever asks (see
``conformance/proof/interactions.py``).

What a part needs is in words: names of optional inputs and of attributes that are written down, ``reverse`` (a reverse
direction), ``two-directions``, ``second-direction`` (of two), ``short-row`` and ``uneven-rows`` (by their lengths),
``steps`` and ``rows`` (more than one), ``last-step`` and ``last-row`` (not past a length), ``earlier-state`` and
``earlier-lengths`` (a run before that left others which fit), ``recurrence`` (a state that is not zero may enter a
step), ``initial``, ``initial-absent`` (some initial state), ``no-initial``, ``states-at`` (a last state is asked for),
``out-<name>`` (that output). ``cases/specs/recurrent_contexts.py`` says which cases have it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.operators import OperatorVersion, operator_version, versions_of
from ..numbers.activations import ACTIVATIONS, Activation, Coefficient
from ..recurrent.computation import Computation
from ..recurrent.node import Node, cell_named
from .alterations import (
    configured,
    reordered,
    with_functions,
    with_inputs,
    with_lengths,
    with_outputs,
    with_recurrent_state,
    with_states,
    with_steps,
    with_tensors,
)
from .computing import run_recurrent_fault
from .fault import Compute, Fault, Outputs
from .part import Part

__all__ = ["recurrent_parts", "wrong_parts"]

Array = NDArray[Any]
Wrong = Callable[[Compute, Computation], Outputs]
Change = Callable[[Array], Array]


@cache
def recurrent_parts(op_type: str) -> tuple[Part, ...]:
    """The parts of an operator, over all of its versions; what a case does not have cannot go wrong there."""
    return tuple(_parts(op_type))


def _part(op_type: str, id: str, summary: str, needs: tuple[str, ...], wrong: Wrong) -> Part:
    fault = Fault(id, "equations", summary, wrong, (op_type,))

    def answer(node: Node, inputs: Mapping[str, Array], memory: dict[str, Any]) -> Outputs:
        return run_recurrent_fault(fault, node, inputs, memory=memory)

    return Part(id, frozenset(needs), answer)


def _parts(op_type: str) -> Iterator[Part]:
    part = partial(_part, op_type)
    for id, summary, needs, wrong in wrong_parts(op_type):
        yield part(id, summary, needs, wrong)


def wrong_parts(op_type: str) -> Made:
    """The id of each part, what goes wrong in words, what it needs, and that as a change of a computation."""
    return itertools.chain(
        _inputs(op_type),
        _gates(op_type),
        _attributes(op_type),
        _directions(op_type),
        _states(op_type),
        _outputs(op_type),
    )


Made = Iterator[tuple[str, str, tuple[str, ...], Wrong]]


def _newest(op_type: str) -> OperatorVersion:
    return operator_version(op_type, versions_of(op_type)[-1])


def _end(axis: int) -> Change:
    """The last slice along an axis becomes zero."""

    def lose(array: Array) -> Array:
        kept = array.copy()
        kept[(slice(None),) * (axis % array.ndim) + (slice(-1, None),)] = 0
        return kept

    return lose


def _inputs(op_type: str) -> Made:
    operator, cell = _newest(op_type), cell_named(op_type)
    for name in operator.inputs:
        if name not in operator.required and name != "sequence_lens":
            yield f"{name}.dropped", f"leaves {name} out", (name,), _dropping(name)
    yield "sequence_lens.dropped", "takes every row for a full one", ("short-row",), _all_steps
    yield "sequence_lens.first-row", "gives every row the first row's length", ("uneven-rows",), _first_length

    def of_tensor(letter: str, change: Change) -> Wrong:
        return lambda compute, c: compute(with_tensors(c, letter, change))

    def of_state(name: str, change: Change) -> Wrong:
        return lambda compute, c: compute(with_states(c, change, (name,)))

    def of_x(change: Change) -> Wrong:
        return lambda compute, c: compute(with_steps(c, change))

    for axis, word in enumerate(("step", "row", "input")):
        needs = () if word == "input" else (f"last-{word}",)
        yield f"X.last-{word}", f"reads the last {word} of X as zero", needs, of_x(_end(axis))
    yield "W.last-input", "leaves the last column of W out", (), of_tensor("W", _end(2))
    yield "R.last-unit", "leaves the last column of R out", ("recurrence",), of_tensor("R", _end(2))
    for letter in ("W", "R", "B", "P"):
        if letter in operator.inputs:
            yield f"{letter}.end", f"reads the end of {letter} as zero", _of(letter), of_tensor(letter, _end(1))
    yield "B.of-input", "leaves Wb out", ("B",), of_tensor("B", _half(0))
    yield "B.of-state", "leaves Rb out", ("B",), of_tensor("B", _half(1))
    for name in ("h", *cell.inner):
        given = f"initial_{name}"
        yield (
            f"{given}.last-row",
            f"reads the last row of {given} as zero",
            (given, *_last_state(op_type)),
            of_state(name, _end(1)),
        )
        yield f"{given}.last-unit", f"reads the last unit of {given} as zero", (given,), of_state(name, _end(2))
        both = (given, "second-direction")
        yield f"{given}.one-direction", f"takes {given} of the first direction for both", both, of_state(name, _first)


def _of(letter: str) -> tuple[str, ...]:
    """The needs for a tensor to matter."""
    return ("recurrence",) if letter == "R" else (letter,) if letter in "BP" else ()


def _dropping(name: str) -> Wrong:
    return lambda compute, c: compute(with_inputs(c, **{name: None}))


def _all_steps(compute: Compute, c: Computation) -> Outputs:
    return compute(with_lengths(c, c.configuration.T))


def _first_length(compute: Compute, c: Computation) -> Outputs:
    return compute(with_lengths(c, c.configuration.lengths[:1]) if c.configuration.N else c)


def _half(which: int) -> Change:
    def without(bias: Array) -> Array:
        kept = bias.copy()
        half = bias.shape[1] // 2
        kept[:, which * half : (which + 1) * half] = 0
        return kept

    return without


def _first(array: Array) -> Array:
    return np.repeat(array[:1], len(array), axis=0)


def _gates(op_type: str) -> Made:
    cell = cell_named(op_type)

    def swapped(names: str, letters: str, first: str, second: str) -> Wrong:
        order = letters.translate(str.maketrans(first + second, second + first))

        def wrong(compute: Compute, c: Computation) -> Outputs:
            return compute(with_tensors(c, names, lambda tensor: reordered(c, tensor, order, letters)))

        return wrong

    for a, b in itertools.combinations(cell.gates, 2):
        yield f"gates.{a}{b}", f"takes gate {a} for gate {b}", (), swapped("WRB", cell.gates, a, b)
    for a, b in itertools.combinations(cell.peepholes, 2):
        yield f"P.{a}{b}", f"takes the peephole of {a} for that of {b}", ("P",), swapped("P", cell.peepholes, a, b)


def _usual(c: Computation) -> tuple[Activation, ...]:
    return tuple(Activation(ACTIVATIONS[name]) for name in c.configuration.cell.activations)


def _attributes(op_type: str) -> Made:
    known = {name for v in versions_of(op_type) for name in operator_version(op_type, v).attributes}

    def no_clip(compute: Compute, c: Computation) -> Outputs:
        return compute(configured(c, clips=(None,) * len(c.configuration.clips)))

    def no_activations(compute: Compute, c: Computation) -> Outputs:
        return compute(configured(c, activations=(_usual(c),) * len(c.configuration.directions)))

    def default_at(position: int) -> Wrong:
        def wrong(compute: Compute, c: Computation) -> Outputs:
            return compute(with_functions(c, lambda f, p, d: _usual(c)[p] if p == position else f))

        return wrong

    def without(letter: str) -> Wrong:
        """All coefficients of one list as they are where it is not given."""

        def change(function: Activation, position: int, d: int) -> Activation:
            usual = getattr(function.kind, f"default_{letter}")
            if not getattr(function.kind, f"uses_{letter}"):
                return function
            assumed = (1.0 if letter == "alpha" or function.name != "Affine" else 0.0) if usual is None else usual
            given = Coefficient.of(assumed)
            return replace(function, alpha=given) if letter == "alpha" else replace(function, beta=given)

        return lambda compute, c: compute(with_functions(c, change))

    yield "clip.dropped", "does not clip", ("clip",), no_clip
    yield "activations.dropped", "computes with the default functions", ("activations",), no_activations
    for position, name in enumerate("fgh"[: len(cell_named(op_type).activations)]):
        if len(cell_named(op_type).activations) > 1:
            yield f"activations.{name}", f"computes {name} by its default", ("activations",), default_at(position)
    for letter in ("alpha", "beta"):
        given = f"activation_{letter}"
        yield f"{given}.dropped", f"takes every {letter} for the default", (given,), without(letter)
    if "input_forget" in known:
        yield (
            "input_forget.dropped",
            "does not couple the gates",
            ("input_forget",),
            lambda compute, c: compute(configured(c, coupled=None)),
        )
    if "linear_before_reset" in known:
        yield (
            "linear_before_reset.other",
            "takes linear_before_reset for its opposite",
            (),
            lambda compute, c: compute(configured(c, linear_before_reset=not c.configuration.linear_before_reset)),
        )
    if "layout" in known:
        yield "layout.dropped", "reads and writes memory as with layout 0", ("layout", "rows"), _as_layout_0


def _as_layout_0(compute: Compute, c: Computation) -> Outputs:
    """The numbers as they lie in memory, taken for those of layout 0; the outputs have their shapes all the same."""
    k = c.configuration
    if k.layout == 0:
        return compute(c)
    D = len(k.directions)
    states = {n: a.reshape(D, k.N, k.H) for n, a in c.inputs.items() if n.startswith("initial_")}
    other = with_inputs(configured(c, layout=0), X=c.inputs["X"].reshape(k.T, k.N, k.I), **states)
    return {name: array.reshape(k.shape_of(name)) for name, array in compute(other).items()}


def _directions(op_type: str) -> Made:
    operator = _newest(op_type)

    def forward(compute: Compute, c: Computation) -> Outputs:
        return compute(configured(c, directions=("forward",) * len(c.configuration.directions)))

    yield "reverse.forward", "runs the reverse direction forward", ("reverse", "steps"), forward

    def of_first(letter: str) -> Wrong:
        return lambda compute, c: compute(with_tensors(c, letter, _first))

    for letter in ("W", "R", "B", "P"):
        if letter in operator.inputs:
            both = ("second-direction", *_of(letter))
            yield f"{letter}.one-direction", f"takes {letter} of the first direction for both", both, of_first(letter)

    def functions(compute: Compute, c: Computation) -> Outputs:
        own = c.configuration.activations
        return compute(configured(c, activations=(own[0],) * len(own)))

    def exchanged(compute: Compute, c: Computation) -> Outputs:
        return with_outputs(c, compute(c), Y=lambda y: y[:, ::-1], states=lambda s: s[::-1])

    both = ("second-direction", "activations")
    yield "activations.one-direction", "takes the functions of the first direction for both", both, functions
    yield "outputs.directions", "gives the directions' results in each other's place", ("two-directions",), exchanged


def _states(op_type: str) -> Made:
    cell = cell_named(op_type)

    def forgotten(compute: Compute, c: Computation) -> Outputs:
        return compute(with_recurrent_state(c, lambda state: state * 0.0))

    def kept(compute: Compute, c: Computation) -> Outputs:
        """Needs of a rerun: what a session ended with is where its next run starts, if nothing else is said."""
        memory = compute.memory
        names = [f"initial_{name}" for name in ("h", *cell.inner)]
        started = {
            n: memory[n] for n in names if n not in c.inputs and n in memory
            and memory[n].shape == c.configuration.shape_of("Y_h")
        }  # fmt: skip
        outputs = compute(with_inputs(c, **started))
        memory.update({f"initial_{n}": outputs[f"Y_{n}"] for n in ("h", *cell.inner) if f"Y_{n}" in outputs})
        return outputs

    def lengths_kept(compute: Compute, c: Computation) -> Outputs:
        before = compute.memory.setdefault("lengths", c.configuration.lengths)
        fits = len(before) >= c.configuration.N
        own = np.minimum(before[: c.configuration.N], c.configuration.T) if fits else c.configuration.lengths
        return compute(with_lengths(c, own))

    absent = "initial-absent" if cell.inner else "no-initial"
    yield "state.forgotten", "starts every step from zero", ("recurrence",), forgotten
    yield "state.kept", "starts from where the run before ended", ("earlier-state", absent), kept
    yield "lengths.kept", "keeps the lengths of the run before", ("earlier-lengths",), lengths_kept

    def next_row(compute: Compute, c: Computation) -> Outputs:
        return compute(with_states(c, lambda states: np.roll(states, 1, axis=1)))

    yield "initial.next-row", "starts every row from another row's state", ("initial", "rows"), next_row


def _outputs(op_type: str) -> Made:
    def y(change: Change) -> Wrong:
        return lambda compute, c: with_outputs(c, compute(c), Y=change)

    def state(name: str, change: Change) -> Wrong:
        return lambda compute, c: with_outputs(c, compute(c), states=change, names=(name,))

    for axis, word in ((0, "step"), (2, "row"), (3, "unit")):
        yield f"Y.last-{word}", f"leaves the last {word} of Y unwritten", ("out-Y", *_last(word)), y(_end(axis))
    for name in (n for n in _newest(op_type).outputs if n != "Y"):
        for axis, word in ((1, "row"), (2, "unit")):
            yield (
                f"{name}.last-{word}",
                f"leaves the last {word} of {name} unwritten",
                (f"out-{name}", *(_last_state(op_type) if word == "row" else ())),
                state(name, _end(axis)),
            )
    yield (
        "outputs.last-position",
        "gives the state of the last position instead of the last step",
        ("states-at", "short-row"),
        _at_end,
    )


def _last(word: str) -> tuple[str, ...]:
    """The needs for the last step or row to matter: it is not past a length."""
    return () if word == "unit" else (f"last-{word}",)


def _last_state(op_type: str) -> tuple[str, ...]:
    """Needs like :func:`_last`'s for a row of a state. The document leaves open with which state a row without a step
    ends, so the loss of a last row that has none is excused; not of one state of several, since the answer is one for
    all."""
    return () if cell_named(op_type).inner else _last("row")


def _at_end(compute: Compute, c: Computation) -> Outputs:
    """The last states are those that stand at the last position of a sequence, whatever a row's length: past it, the
    state as it stays."""
    right, full = compute(c), compute(with_lengths(c, c.configuration.T))
    return {name: array if name == "Y" else full[name] for name, array in right.items()}
