"""Faults of LinearAttention's states, of what a step reads, of chunks, tails, rules, batch and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .changes import (
    Array,
    attention_family,
    attention_fault,
    by_rule,
    finished,
    first_of,
    rate,
    scanned,
    shifted,
    some_steps,
    with_exponents,
    with_operands,
    with_step,
)
from .recurrence import (
    Advance,
    Attention,
    Operands,
    Step,
    Written,
    advance,
    corrects,
    decays,
    outer,
    read,
    retrieve,
    run_steps,
    step_of,
)

# Past and present state


def _past(c: Attention, change: Callable[[Array], Array]) -> Attention:
    return with_operands(c, c.past_state is not None, past=lambda o: change(o.past))


def _transposed(state: Array) -> Array:
    """Each head's state, read as if it were (d_v, d_k)."""
    batch, heads, d_k, d_v = state.shape
    return state.reshape(batch, heads, d_v, d_k).swapaxes(2, 3)


attention_fault(
    "past.transposed",
    "past-state",
    "Reads past_state as (B, kv_num_heads, d_v, d_k).",
    lambda c: _past(c, _transposed),
)
attention_fault(
    "past.first-head",
    "past-state",
    "Starts every head from the first one's past_state.",
    lambda c: _past(c, lambda S: first_of(S, 1)),
)
attention_fault(
    "past.twice",
    "past-state",
    "Adds past_state to the last state once more.",
    lambda c: scanned(c, lambda outputs, state, o: (outputs, state + o.past), c.past_state is not None),
)


attention_fault(
    "present.transposed",
    "present-state",
    "Returns present_state as (B, kv_num_heads, d_v, d_k) in memory.",
    lambda c: scanned(c, lambda outputs, state, o: (outputs, state.swapaxes(2, 3).reshape(state.shape))),
)
attention_fault(
    "present.past",
    "present-state",
    "Returns past_state as present_state.",
    lambda c: scanned(c, lambda outputs, state, o: (outputs, o.past)),
)
attention_fault(
    "present.scaled",
    "present-state",
    "Multiplies present_state by scale.",
    lambda c: scanned(c, lambda outputs, state, o: (outputs, state * o.scale)),
)
attention_fault(
    "present.heads-reversed",
    "present-state",
    "Returns the heads of present_state in reversed order.",
    lambda c: scanned(c, lambda outputs, state, o: (outputs, state[:, ::-1])),
)


@attention_fault("present.early", "present-state", "Returns the state before the last step.")
def present_early(c: Attention) -> Attention:
    def change(outputs: Array, state: Array, o: Operands) -> tuple[Array, Array]:
        return outputs, run_steps(some_steps(o, slice(0, max(o.steps - 1, 0))), c.advance)[1]

    return scanned(c, change)


@attention_fault(
    "state.rounded",
    "equations",
    "Rounds the state to the type of query in every step.",
    types=("float16", "bfloat16"),
)
def state_rounded(c: Attention) -> Attention:
    dtype = c.query.dtype

    def step(s: Step) -> Written:
        return advance(s._replace(state=s.state.astype(dtype).astype(np.float64)))

    return with_step(c, step)


@attention_fault(
    "state.from-row-to-row",
    "batch",
    "Starts every sequence of the batch from the last state of the one before.",
)
def state_from_row_to_row(c: Attention) -> Attention:
    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        outputs, states, state = [], [], None
        for row in range(len(o.query)):
            arrays = {
                n: a[row : row + 1]
                for n in ("query", "key", "value", "exponent", "decay", "beta", "past")
                if (a := getattr(o, n)) is not None
            }
            one = replace(o, **arrays)
            made, state = run_steps(one if state is None else replace(one, past=state), step)
            outputs.append(made)
            states.append(state)
        return np.concatenate(outputs), np.concatenate(states)

    return replace(c, scan=scan) if len(c.query) > 1 else c


# Reading


@attention_fault("read.before-write", "read", "Reads the state before it writes: after its decay.")
def read_before_write(c: Attention) -> Attention:
    return with_step(c, lambda s: advance(s)._replace(output=read(s.decay[..., None] * s.state, s)))


@attention_fault("read.before-decay", "read", "Reads the state as the step before left it.")
def read_before_decay(c: Attention) -> Attention:
    return with_step(c, lambda s: advance(s)._replace(output=read(s.state, s)), decays(c.update_rule))


@attention_fault("read.new-only", "read", "Reads what the step writes alone, not what the state holds.")
def read_new_only(c: Attention) -> Attention:
    def step(s: Step) -> Written:
        made = advance(s)
        return made._replace(output=read(outer(s.key, made.written), s))

    return with_step(c, step)


# Chunks


def _by_chunks(
    length: int, between: Callable[[Array], Array] = lambda state: state
) -> Callable[[Operands, Advance], tuple[Array, Array]]:
    """A loop over chunks, with a change of the state that is handed on between two."""

    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        outputs, state = [np.zeros((*o.query.shape[:1], 0, o.query.shape[2], o.value.shape[3]))], o.past
        for begin in range(0, o.steps, length):
            start = between(state) if begin else state
            made, state = run_steps(replace(some_steps(o, slice(begin, begin + length)), past=start), step)
            outputs.append(made)
        return np.concatenate(outputs, axis=1), state

    return scan


_LENGTHS = (64, 16, 32, 128, 8, 256)
attention_family(
    "chunks.restart-{}",
    _LENGTHS,
    "chunks",
    "Starts from zero after every {0} steps.",
    lambda c, length: replace(c, scan=_by_chunks(length, np.zeros_like)) if c.query.shape[1] > length else c,
)


def _undecayed_at(g: Array, length: int) -> Array:
    begins = (np.arange(g.shape[1]) % length == 0) & (np.arange(g.shape[1]) > 0)
    return np.where(begins[:, None, None], 0, g)


attention_family(
    "chunks.carry-undecayed-{}",
    _LENGTHS,
    "chunks",
    "Leaves out the decay of the first step of every chunk of {0} steps but the first.",
    lambda c, length: with_exponents(c, lambda g: _undecayed_at(g, length)) if c.query.shape[1] > length else c,
)


def _correction_from_start(c: Attention, length: int) -> Attention:
    if not corrects(c.update_rule) or c.query.shape[1] < 2:
        return c

    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        state, outputs = o.past, np.zeros((*o.query.shape[:3], o.value.shape[3]))
        start = state
        for t in range(o.steps):
            one = step_of(o, t, state)
            start = one.decay[..., None] * (state if t % length == 0 else start)
            written = rate(one) * (one.value - retrieve(start, one.key))
            state, outputs[:, t], _ = finished(one, one.decay[..., None] * state, written)
        return outputs, state

    return replace(c, scan=scan)


attention_family(
    "chunks.correction-from-start-{}",
    (16, 64, 32, 128),
    "chunks",
    "Corrects within chunks of {0} steps by the state at the chunk's beginning.",
    _correction_from_start,
)


def _reading_ends(length: int) -> Callable[[Operands, Advance], tuple[Array, Array]]:
    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        outputs, state = np.zeros((*o.query.shape[:3], o.value.shape[3])), o.past
        for begin in range(0, o.steps, length):
            end = min(begin + length, o.steps)
            for t in range(begin, end):
                state = step(step_of(o, t, state)).state
            for t in range(begin, end):
                outputs[:, t] = read(state, step_of(o, t, state))
        return outputs, state

    return scan


attention_family(
    "chunks.not-causal-{}",
    (64, 16, 32, 128),
    "chunks",
    "Lets every step of a chunk of {0} read the state at the chunk's end.",
    lambda c, length: replace(c, scan=_reading_ends(length)) if c.query.shape[1] > 1 else c,
)


def _whole_chunks(length: int) -> Callable[[Operands, Advance], tuple[Array, Array]]:
    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        whole = o.steps // length * length
        outputs = np.zeros((*o.query.shape[:3], o.value.shape[3]))
        outputs[:, :whole], state = run_steps(some_steps(o, slice(0, whole)), step)
        return outputs, state

    return scan


attention_family(
    "chunks.whole-only-{}",
    (16, 64, 32, 8, 4, 128),
    "chunks",
    "Leaves out the steps after the last whole chunk of {0}, where there is one.",
    lambda c, length: (
        replace(c, scan=_whole_chunks(length)) if c.query.shape[1] > length and c.query.shape[1] % length else c
    ),
)


def _present_of_whole(c: Attention, length: int) -> Attention:
    whole = c.query.shape[1] // length * length
    return scanned(
        c,
        lambda outputs, state, o: (outputs, run_steps(some_steps(o, slice(0, whole)), c.advance)[1]),
        whole not in (0, c.query.shape[1]),
    )


attention_family(
    "chunks.present-of-whole-{}",
    (64, 16, 32, 128),
    "chunks",
    "Returns the state at the end of the last whole chunk of {0} steps.",
    _present_of_whole,
)

# Tails of d_k and d_v


def _left_over(array: Array, block: int) -> Array:
    """An array without what is left over of its last axis after whole blocks, where there is a whole one."""
    width = array.shape[-1]
    if width <= block or width % block == 0:
        return array
    return np.where(np.arange(width) < width // block * block, array, 0.0)


attention_family(
    "tails.keys-{}",
    (4, 8, 16, 32, 64, 2),
    "sizes",
    "Leaves out of sums over d_k the rest after whole blocks of {0}.",
    lambda c, block: with_operands(
        c,
        c.d_k > block and c.d_k % block > 0,
        key=lambda o: _left_over(o.key, block),
        query=lambda o: _left_over(o.query, block),
    ),
)


def _values_left_over(c: Attention, block: int) -> Attention:
    return scanned(
        c,
        lambda outputs, state, o: (_left_over(outputs, block), _left_over(state, block)),
        c.d_v > block and c.d_v % block > 0,
    )


attention_family(
    "tails.values-{}",
    (4, 8, 16, 32, 64, 2),
    "sizes",
    "Leaves the rest of d_v after whole blocks of {0} at zero.",
    _values_left_over,
)


def _beyond(array: Array, most: int) -> Array:
    return np.where(np.arange(array.shape[-1]) < most, array, 0.0)


attention_family(
    "tails.keys-beyond-{}",
    (128, 64, 256, 32),
    "sizes",
    "Leaves out of sums over d_k what is beyond the first {0}.",
    lambda c, most: with_operands(
        c, c.d_k > most, key=lambda o: _beyond(o.key, most), query=lambda o: _beyond(o.query, most)
    ),
)

# Rules taken for each other

_RULES = (
    ("gated_delta", "gated"),
    ("gated_delta", "delta"),
    ("gated", "linear"),
    ("delta", "linear"),
)
for _rule, _other in _RULES:
    attention_fault(
        f"rules.{_rule.replace('_', '-')}-as-{_other}",
        "update-rule",
        f"Computes rule {_rule} as {_other}.",
        partial(by_rule, rule=_rule, other=_other),
    )


@attention_fault("rules.linear-as-delta", "update-rule", "Computes rule linear as delta, with a beta of 1.")
def linear_as_delta(c: Attention) -> Attention:
    return with_operands(c, c.update_rule == "linear", beta=lambda o: np.ones(o.key.shape[:3]))


@attention_fault("rules.gated-as-gated-delta", "update-rule", "Computes rule gated as gated_delta, with a beta of 1.")
def gated_as_gated_delta(c: Attention) -> Attention:
    return with_operands(c, c.update_rule == "gated", beta=lambda o: np.ones(o.key.shape[:3]))


# Batch and time

attention_fault(
    "batch.first-row",
    "batch",
    "Computes every sequence with the first one's keys and values.",
    lambda c: with_operands(
        c, len(c.query) > 1, key=lambda o: first_of(o.key, 0), value=lambda o: first_of(o.value, 0)
    ),
)


def _time_major(array: Array) -> Array:
    batch, steps = array.shape[:2]
    return array.reshape(steps, batch, *array.shape[2:]).swapaxes(0, 1)


@attention_fault("batch.time-major", "batch", "Reads query, key and value as (T, B, ...).")
def time_major(c: Attention) -> Attention:
    changes: Any = {
        name: partial(lambda o, name: _time_major(getattr(o, name)), name=name) for name in ("query", "key", "value")
    }
    return with_operands(c, c.query.shape[0] > 1 and c.query.shape[1] > 1, **changes)


@attention_fault("time.reversed", "time", "Takes the steps from the last to the first.")
def time_reversed(c: Attention) -> Attention:
    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        outputs, state = run_steps(some_steps(o, slice(None, None, -1)), step)
        return outputs[:, ::-1], state

    return replace(c, scan=scan) if c.query.shape[1] > 1 else c


attention_fault(
    "time.keys-late",
    "time",
    "Uses the key of the step before.",
    lambda c: with_operands(c, c.query.shape[1] > 1, key=lambda o: shifted(o.key, 1)),
)
attention_fault(
    "time.values-late",
    "time",
    "Uses the value of the step before.",
    lambda c: with_operands(c, c.query.shape[1] > 1, value=lambda o: shifted(o.value, 1)),
)
attention_fault(
    "time.queries-late",
    "time",
    "Uses the query of the step before.",
    lambda c: with_operands(c, c.query.shape[1] > 1, query=lambda o: shifted(o.query, 1)),
)
