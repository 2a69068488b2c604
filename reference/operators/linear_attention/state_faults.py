"""Faults of LinearAttention's states, reads, chunks, tails, rules, batch and time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ...faults.alterations import first_of
from .changes import (
    Array,
    applied,
    attention_family,
    attention_faults,
    by_rule,
    finished,
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
    advance,
    corrects,
    decays,
    outer,
    read,
    retrieve,
    run_steps,
    step_of,
)

# Rows: id, clause, words, then the change, which the first argument makes.
# fmt: off

# Past and present state


def _transposed(state: Array) -> Array:
    """Return each head's state, read as if its shape were (d_v, d_k)."""
    batch, heads, d_k, d_v = state.shape
    return state.reshape(batch, heads, d_v, d_k).swapaxes(2, 3)


attention_faults(lambda c, change: c if c.past_state is None else with_operands(c, past=lambda o: change(o.past)), (
    ("past.transposed", "past-state", "Reads past_state as (B, kv_num_heads, d_v, d_k).", _transposed),
    ("past.first-head", "past-state", "Starts every head from the first one's past_state.", lambda S: first_of(S, 1)),
))
attention_faults(lambda c, change: scanned(c, lambda outputs, state, o: (outputs, change(state, o))), (
    ("past.twice", "past-state", "Adds past_state to the last state once more.", lambda S, o: S + o.past),
    ("present.transposed", "present-state", "Returns present_state as (B, kv_num_heads, d_v, d_k) in memory.",
     lambda S, o: S.swapaxes(2, 3).reshape(S.shape)),
    ("present.past", "present-state", "Returns past_state as present_state.", lambda S, o: o.past),
    ("present.scaled", "present-state", "Multiplies present_state by scale.", lambda S, o: S * o.scale),
    ("present.heads-reversed", "present-state", "Returns the heads of present_state in reversed order.",
     lambda S, o: S[:, ::-1]),
))


def _state_after(c: Attention, steps: int) -> Attention:
    """Return the node whose last state is the state after `steps` steps."""
    return scanned(c, lambda outputs, _, o: (outputs, run_steps(some_steps(o, slice(0, steps)), c.advance)[1]))


def _rounded(c: Attention) -> Attention:
    dtype = c.query.dtype
    return with_step(c, lambda s: advance(s._replace(state=s.state.astype(dtype).astype(np.float64))))


def _from_row_to_row(o: Operands, step: Advance) -> tuple[Array, Array]:
    outputs, states, past = [], [], o.past[:1]
    names = ("query", "key", "value", "exponent", "decay", "beta")
    for row in range(len(o.query)):
        arrays = {n: a[row : row + 1] for n in names if (a := getattr(o, n)) is not None}
        outputs_of_row, past = run_steps(replace(o, **arrays, past=past), step)
        outputs.append(outputs_of_row)
        states.append(past)
    return np.concatenate(outputs), np.concatenate(states)


attention_faults(applied, (
    ("present.early", "present-state", "Returns the state before the last step.",
     lambda c: _state_after(c, max(c.query.shape[1] - 1, 0))),
    ("state.from-row-to-row", "batch",
     "Starts every sequence of the batch from the last state of the one before.",
     lambda c: replace(c, scan=_from_row_to_row) if len(c.query) > 1 else c),
))
attention_faults(applied, (
    ("state.rounded", "equations", "Rounds the state to the type of query in every step.", _rounded),
), types=("float16", "bfloat16"))

# Reading

attention_faults(with_step, (
    ("read.before-write", "read", "Reads the state before it writes: after its decay.",
     lambda s: advance(s)._replace(output=read(s.decay[..., None] * s.state, s))),
    ("read.new-only", "read", "Reads what the step writes alone, not what the state holds.",
     lambda s: (made := advance(s))._replace(output=read(outer(s.key, made.written), s))),
))
attention_faults(lambda c, change: with_step(c, change, decays(c.update_rule)), (
    ("read.before-decay", "read", "Reads the state as the step before left it.",
     lambda s: advance(s)._replace(output=read(s.state, s))),
))

# Chunks


Chunked = Callable[[int, Operands, Advance], tuple[Array, Array]]
"""A loop over chunks of some length."""


def _in_chunks(c: Attention, scan: Chunked, length: int, longer: bool = True) -> Attention:
    """Return the node with a loop over chunks of `length` steps; the same node where there is one step, or, if
    `longer`, where one chunk holds all steps."""
    return replace(c, scan=partial(scan, length)) if c.query.shape[1] > (length if longer else 1) else c


def _restarting(length: int, o: Operands, step: Advance) -> tuple[Array, Array]:
    outputs, state = [], o.past
    for begin in range(0, o.steps, length):
        past = np.zeros_like(state) if begin else state
        chunk, state = run_steps(replace(some_steps(o, slice(begin, begin + length)), past=past), step)
        outputs.append(chunk)
    return np.concatenate(outputs, axis=1), state


def _reading_ends(length: int, o: Operands, step: Advance) -> tuple[Array, Array]:
    outputs, state = np.zeros((*o.query.shape[:3], o.value.shape[3])), o.past
    for begin in range(0, o.steps, length):
        steps = range(begin, min(begin + length, o.steps))
        for t in steps:
            state = step(step_of(o, t, state)).state
        for t in steps:
            outputs[:, t] = read(state, step_of(o, t, state))
    return outputs, state


def _whole(length: int, o: Operands, step: Advance) -> tuple[Array, Array]:
    whole = o.steps // length * length
    outputs = np.zeros((*o.query.shape[:3], o.value.shape[3]))
    outputs[:, :whole], state = run_steps(some_steps(o, slice(0, whole)), step)
    return outputs, state


def _correcting_by_starts(length: int, o: Operands, step: Advance) -> tuple[Array, Array]:
    start = state = o.past
    outputs = np.zeros((*o.query.shape[:3], o.value.shape[3]))
    for t in range(o.steps):
        operands = step_of(o, t, state)
        start = operands.decay[..., None] * (state if t % length == 0 else start)
        written = rate(operands) * (operands.value - retrieve(start, operands.key))
        state, outputs[:, t], _ = finished(operands, operands.decay[..., None] * state, written)
    return outputs, state


def _undecayed_at(g: Array, length: int) -> Array:
    steps = np.arange(g.shape[1])
    return np.where(((steps % length == 0) & (steps > 0))[:, None, None], 0, g)


def _left_over(c: Attention, length: int) -> bool:
    """Return whether there is a whole chunk of `length` steps, and a step after the last whole chunk."""
    steps = int(c.query.shape[1])
    return steps > length and steps % length > 0


_LENGTHS = (64, 16, 32, 128, 8, 256)
attention_family("chunks.restart-{}", _LENGTHS, "chunks", "Starts from zero after every {0} steps.",
    lambda c, length: _in_chunks(c, _restarting, length))
attention_family("chunks.carry-undecayed-{}", _LENGTHS, "chunks",
    "Leaves out the decay of the first step of every chunk of {0} steps but the first.",
    lambda c, length: with_exponents(c, lambda g: _undecayed_at(g, length)) if c.query.shape[1] > length else c)
attention_family("chunks.correction-from-start-{}", (16, 64, 32, 128), "chunks",
    "Corrects within chunks of {0} steps by the state at the chunk's beginning.",
    lambda c, length: _in_chunks(c, _correcting_by_starts, length, longer=False) if corrects(c.update_rule) else c)
attention_family("chunks.not-causal-{}", (64, 16, 32, 128), "chunks",
    "Lets every step of a chunk of {0} read the state at the chunk's end.",
    lambda c, length: _in_chunks(c, _reading_ends, length, longer=False))
attention_family("chunks.whole-only-{}", (16, 64, 32, 8, 4, 128), "chunks",
    "Leaves out the steps after the last whole chunk of {0}, where there is one.",
    lambda c, length: _in_chunks(c, _whole, length) if _left_over(c, length) else c)
attention_family("chunks.present-of-whole-{}", (64, 16, 32, 128), "chunks",
    "Returns the state at the end of the last whole chunk of {0} steps.",
    lambda c, length: _state_after(c, c.query.shape[1] // length * length) if _left_over(c, length) else c)

# Tails of d_k and d_v


def _up_to(array: Array, width: int) -> Array:
    """Return an array with zeros after the first `width` elements of its last axis."""
    return np.where(np.arange(array.shape[-1]) < width, array, 0.0)


def _keys_up_to(c: Attention, width: int) -> Attention:
    """Return the node with sums over the first `width` elements of d_k; the same node where that is none or all."""
    if not 0 < width < c.d_k:
        return c
    return with_operands(c, key=lambda o: _up_to(o.key, width), query=lambda o: _up_to(o.query, width))


def _values_up_to(c: Attention, width: int) -> Attention:
    """Return the node with zeros after the first `width` elements of d_v; the same node where that is none or all."""
    if not 0 < width < c.d_v:
        return c
    return scanned(c, lambda outputs, state, o: (_up_to(outputs, width), _up_to(state, width)))


_BLOCKS = (4, 8, 16, 32, 64, 2)
attention_family("tails.keys-{}", _BLOCKS, "sizes", "Leaves out of sums over d_k the rest after whole blocks of {0}.",
    lambda c, block: _keys_up_to(c, c.d_k // block * block))
attention_family("tails.values-{}", _BLOCKS, "sizes", "Leaves the rest of d_v after whole blocks of {0} at zero.",
    lambda c, block: _values_up_to(c, c.d_v // block * block))
attention_family("tails.keys-beyond-{}", (128, 64, 256, 32), "sizes",
    "Leaves out of sums over d_k what is beyond the first {0}.", _keys_up_to)

# Rules confused with each other

_RULES = (("gated_delta", "gated"), ("gated_delta", "delta"), ("gated", "linear"), ("delta", "linear"))
attention_faults(lambda c, change: by_rule(c, *change), [
    (f"rules.{rule.replace('_', '-')}-as-{other}", "update-rule", f"Computes rule {rule} as {other}.", (rule, other))
    for rule, other in _RULES
])
attention_faults(
    lambda c, change: with_operands(c, beta=lambda o: np.ones(o.key.shape[:3])) if c.update_rule == change else c, (
    ("rules.linear-as-delta", "update-rule", "Computes rule linear as delta, with a beta of 1.", "linear"),
    ("rules.gated-as-gated-delta", "update-rule", "Computes rule gated as gated_delta, with a beta of 1.", "gated"),
))

# Batch and time


def _time_major(array: Array) -> Array:
    batch, steps = array.shape[:2]
    return array.reshape(steps, batch, *array.shape[2:]).swapaxes(0, 1)


def _of_operands(c: Attention, change: Callable[[Array], Array], names: tuple[str, ...]) -> Attention:
    """Return the node with each of the named operands changed separately."""
    return with_operands(c, **{name: partial(lambda o, name: change(getattr(o, name)), name=name) for name in names})


def _reversed(o: Operands, step: Advance) -> tuple[Array, Array]:
    outputs, state = run_steps(some_steps(o, slice(None, None, -1)), step)
    return outputs[:, ::-1], state


attention_faults(lambda c, change: _of_operands(c, *change) if len(c.query) > 1 else c, (
    ("batch.first-row", "batch", "Computes every sequence with the first one's keys and values.",
     (lambda array: first_of(array, 0), ("key", "value"))),
    ("batch.time-major", "batch", "Reads query, key and value as (T, B, ...).",
     (_time_major, ("query", "key", "value"))),
))
attention_faults(lambda c, change: change(c) if c.query.shape[1] > 1 else c, (
    ("time.reversed", "time", "Takes the steps from the last to the first.", lambda c: replace(c, scan=_reversed)),
    ("time.keys-late", "time", "Uses the key of the step before.",
     lambda c: _of_operands(c, lambda array: shifted(array, 1), ("key",))),
    ("time.values-late", "time", "Uses the value of the step before.",
     lambda c: _of_operands(c, lambda array: shifted(array, 1), ("value",))),
    ("time.queries-late", "time", "Uses the query of the step before.",
     lambda c: _of_operands(c, lambda array: shifted(array, 1), ("query",))),
))
