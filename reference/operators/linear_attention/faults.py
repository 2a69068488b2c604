"""Faults of LinearAttention's heads, decay, delta rule and scale, and of onnxruntime's own operator.

Faults of states and chunks are in :mod:`.state_faults`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ...faults.alterations import first_of
from ...faults.fault import Compute, Outputs, fault_of_run
from ..described import Described
from . import state_faults as _state_faults  # noqa: F401 - registers them
from .changes import (
    TYPES,
    Array,
    applied,
    attention_family,
    attention_faults,
    by_rule,
    changed,
    finished,
    interleaved,
    rate,
    scanned,
    shifted,
    unit_rows,
    with_exponents,
    with_factors,
    with_operands,
    with_rates,
    with_step,
    with_those,
)
from .recurrence import (
    Attention,
    Operands,
    Step,
    Written,
    advance,
    corrects,
    decays,
    default_scale,
    outer,
    read,
    retrieve,
)

# Rows: id, clause, words, then the change, which the first argument makes.
# fmt: off

attention_faults(lambda c, change: with_operands(c, heads=lambda o: change(c, np.arange(len(o.heads)))), (
    ("heads.modulo", "heads", "Lets query head h read the state of key-value head h mod kv_num_heads.",
     lambda c, h: h % c.kv_num_heads),
    ("heads.first", "heads", "Lets every query head read the state of the first key-value head.", lambda c, h: h * 0),
    ("heads.divided-by-kv", "heads",
     "Divides a query head's number by kv_num_heads instead of by the size of a group.",
     lambda c, h: np.minimum(h // c.kv_num_heads, c.kv_num_heads - 1)),
))
attention_faults(with_those, (
    ("heads.query-interleaved", "packing", "Unpacks query as (d_k, q_num_heads).",
     {"query": lambda o: interleaved(o.query)}),
    ("heads.key-interleaved", "packing", "Unpacks key as (d_k, kv_num_heads).", {"key": lambda o: interleaved(o.key)}),
    ("heads.value-interleaved", "packing", "Unpacks value as (d_v, kv_num_heads).",
     {"value": lambda o: interleaved(o.value)}),
    ("heads.key-of-first", "heads", "Uses the first head's key for all heads.", {"key": lambda o: first_of(o.key, 2)}),
    ("heads.value-of-first", "heads", "Uses the first head's value for all heads.",
     {"value": lambda o: first_of(o.value, 2)}),
))
attention_faults(scanned, (
    ("heads.output-interleaved", "packing", "Packs output as (d_v, q_num_heads).",
     lambda outputs, state, o: (outputs.swapaxes(2, 3).reshape(outputs.shape), state)),
    ("heads.output-by-head", "packing", "Leaves output as (B, q_num_heads, T, d_v) in memory.",
     lambda outputs, state, o: (outputs.swapaxes(1, 2).reshape(outputs.shape), state)),
))


def _from_second_step(g: Array) -> Array:
    return np.where(np.arange(g.shape[1])[:, None, None] == 0, 0, g)


attention_faults(with_exponents, (
    ("heads.decay-interleaved", "decay", "Unpacks a decay for each key as (d_k, kv_num_heads).", interleaved),
    ("decay.sign", "decay", "Takes exp(-g) for the decay.", np.negative),
    ("decay.twice", "decay", "Multiplies the state by the decay twice.", lambda g: 2 * g),
    ("decay.ignored", "decay", "Ignores decay.", np.zeros_like),
    ("decay.first-key", "decay.per-key", "Uses the first key's decay for the whole head.", lambda g: first_of(g, 3)),
    ("decay.mean", "decay.per-key", "Uses the mean of a head's decays for all of its keys.",
     lambda g: np.repeat(g.mean(-1, keepdims=True), g.shape[-1], -1)),
    ("decay.first-head", "decay", "Uses the first head's decay for all heads.", lambda g: first_of(g, 2)),
    ("decay.next-head", "decay", "Uses the next head's decay.", lambda g: np.roll(g, -1, axis=2)),
    ("decay.late", "decay", "Uses the decay of the step before.", lambda g: shifted(g, 1)),
    ("decay.early", "decay", "Uses the decay of the next step.", lambda g: shifted(g, -1)),
    ("decay.first-step", "decay", "Does not let past_state decay in the first step.", _from_second_step),
    ("decay.cumulative", "decay", "Adds the exponents of all steps before to each step's own.",
     lambda g: np.cumsum(g, axis=1)),
    ("decay.never-grows", "decay", "Takes decays above 0 for 0.", lambda g: np.minimum(g, 0)),
))
attention_family("decay.bounded-by-{}", (10, 5, 8, 16, 20, 30, 50, 80), "decay", "Takes decays below -{0} for -{0}.",
    lambda c, most: with_exponents(c, lambda g: np.maximum(g, -most)))
attention_faults(with_factors, (
    ("decay.factor", "decay", "Takes decay itself for the factor, without exp.", lambda g: g),
    ("decay.base-two", "decay", "Takes 2^g for the decay.", np.exp2),
    ("decay.linear", "decay", "Takes 1 + g for the decay.", lambda g: 1 + g),
    ("decay.sigmoid", "decay", "Takes sigmoid(g) for the decay.", lambda g: 1 / (1 + np.exp(-g))),
))


def _after_write(s: Step) -> Written:
    written = s.value if s.beta is None else rate(s) * (s.value - retrieve(s.state, s.key))
    state = s.decay[..., None] * (s.state + outer(s.key, written))
    return Written(state, read(state, s), written)


def _after_read(s: Step) -> Written:
    made = advance(s._replace(decay=np.ones_like(s.decay)))
    return made._replace(state=s.decay[..., None] * made.state)


def _of_values(s: Step) -> Written:
    width = s.state.shape[3]
    columns = s.decay[..., :width] if s.decay.shape[2] >= width else np.resize(s.decay, (*s.decay.shape[:2], width))
    decayed = columns[..., None, :] * s.state
    written = s.value if s.beta is None else rate(s) * (s.value - retrieve(decayed, s.key))
    return finished(s, decayed, written)


def _has_decays_of_keys(c: Attention) -> bool:
    return c.decay is not None and int(c.decay.shape[2]) != c.kv_num_heads


attention_faults(lambda c, change: with_step(c, change, decays(c.update_rule)), (
    ("decay.after-write", "decay", "Lets the state decay after it writes, what is new included.", _after_write),
    ("decay.after-read", "decay", "Lets the state decay at the end of a step, after it reads.", _after_read),
))
attention_faults(
    lambda c, change: with_step(c, change, decays(c.update_rule) and _has_decays_of_keys(c)), (
    ("decay.of-values", "decay.per-key", "Lets the columns of the state decay, d_v, instead of its rows, d_k.",
     _of_values),
))

# Beta and the delta rule

attention_faults(with_rates, (
    ("beta.ignored", "beta", "Ignores beta.", np.ones_like),
    ("beta.sigmoid", "beta", "Takes sigmoid(beta) for beta.", lambda b: 1 / (1 + np.exp(-b))),
    ("beta.twice", "beta", "Multiplies by beta twice.", np.square),
    ("beta.bounded", "beta", "Bounds beta to [0, 1].", lambda b: np.clip(b, 0, 1)),
    ("beta.first-head", "beta", "Uses the first head's beta for all heads.", lambda b: first_of(b, 2)),
    ("beta.next-head", "beta", "Uses the next head's beta.", lambda b: np.roll(b, -1, axis=2)),
    ("beta.late", "beta", "Uses the beta of the step before.", lambda b: shifted(b, 1)),
))


def _single_as_several(c: Attention) -> Attention:
    if c.beta is None or c.beta.shape[2] == c.kv_num_heads:
        return c
    numbers = np.zeros((c.beta.size, c.kv_num_heads), c.beta.dtype)
    numbers.flat[: c.beta.size] = c.beta.flat
    return replace(c, beta=numbers.reshape(*c.beta.shape[:2], c.kv_num_heads))


attention_faults(applied, (
    ("beta.single-as-several", "beta",
     "Reads a beta of one element a step as if each head had one, and zeros behind its end.", _single_as_several),
))


def _delta(c: Attention, change: Callable[[Step, Array], Array]) -> Attention:
    """Return the node with another w, computed from the step and P."""

    def step(s: Step) -> Written:
        decayed = s.decay[..., None] * s.state
        return finished(s, decayed, change(s, decayed))

    return with_step(c, step, corrects(c.update_rule))


attention_faults(_delta, (
    ("beta.value-only", "delta", "Multiplies by beta the value alone, not what the state holds for the key.",
     lambda s, P: rate(s) * s.value - retrieve(P, s.key)),
    ("beta.retrieved-only", "delta", "Multiplies by beta what the state holds for the key alone, not the value.",
     lambda s, P: s.value - rate(s) * retrieve(P, s.key)),
    ("delta.undecayed", "delta", "Corrects by the state before its decay.",
     lambda s, P: rate(s) * (s.value - retrieve(s.state, s.key))),
    ("delta.decayed-twice", "delta", "Corrects by a state that has decayed twice.",
     lambda s, P: rate(s) * (s.value - retrieve(s.decay[..., None] * P, s.key))),
    ("delta.added", "delta", "Adds what the state holds for the key to the value instead of subtracting it.",
     lambda s, P: rate(s) * (s.value + retrieve(P, s.key))),
    ("delta.by-query", "delta", "Corrects by what the state holds for the query.",
     lambda s, P: rate(s) * (s.value - retrieve(P, s.query[:, :: len(s.heads) // s.key.shape[1]]))),
))
attention_faults(lambda c, change: with_those(c, change) if corrects(c.update_rule) else c, (
    ("delta.keys-normalized", "delta", "Divides keys by their norm.", {"key": lambda o: unit_rows(o.key)}),
))
attention_faults(with_those, (
    ("delta.queries-normalized", "equations", "Divides queries by their norm.",
     {"query": lambda o: unit_rows(o.query)}),
    ("scale.squared", "scale", "Multiplies by scale twice.", {"scale": lambda o: o.scale**2}),
))

# Scale

attention_faults(applied, (
    ("scale.ignored", "scale", "Ignores scale: multiplies by 1/sqrt(d_k) whatever it is.",
     lambda c: replace(c, scale=0.0) if c.scale else c),
    ("scale.no-default", "scale", "Does not scale where scale is left out.",
     lambda c: c if c.scale else replace(c, scale=1.0)),
    ("scale.of-values", "scale", "Takes 1/sqrt(d_v) where scale is left out.",
     lambda c: c if c.scale else replace(c, scale=default_scale(c.d_v))),
    ("scale.of-packed", "scale", "Takes 1 over the root of query's whole width where scale is left out.",
     lambda c: c if c.scale else replace(c, scale=default_scale(c.query.shape[2]))),
    ("scale.of-keys", "scale", "Multiplies keys by scale instead of what is read, so that the state holds it.",
     lambda c: with_operands(with_operands(c, key=lambda o: o.key * o.scale), scale=lambda o: 1.0)),
))


@partial(fault_of_run, "linearattention.scale.zero", "scale", "Multiplies by a scale of 0 that is written down.",
         operators=("LinearAttention",), types=TYPES)
def scale_zero(compute: Compute, c: Described) -> Outputs:
    written = "scale" in compute.attributes and not compute.attributes["scale"]
    return compute(changed(c, lambda node: with_operands(node, scale=lambda o: 0.0)) if written else c)


# Operator of onnxruntime's contrib domain


def _inverse(c: Attention, change: Callable[[Array, int], Array]) -> Attention:
    """Return the node with another query head for every head of an inverse group.

    ``change`` takes the numbers of the heads and the number of query heads.
    """

    def queries(o: Operands) -> Array:
        query = o.query[:, :, :: len(o.heads) // c.q_num_heads]
        return query[:, :, change(np.arange(len(o.heads)), c.q_num_heads)]

    return with_operands(c, query=queries) if c.kv_num_heads > c.q_num_heads else c


def _shared_keys(c: Attention) -> Attention:
    keys = c.key.shape[2] // max(c.d_k, 1)

    def modulo(o: Operands) -> Array:
        return o.key[:, :, :: c.kv_num_heads // keys][:, :, np.arange(c.kv_num_heads) % keys]

    return with_operands(c, key=modulo) if 0 < keys < c.kv_num_heads else c


_OWN = ("com.microsoft::LinearAttention",)
attention_faults(_inverse, (
    ("heads.inverse-modulo", "heads.inverse",
     "Lets head h of an inverse group be read by query head h mod q_num_heads.", lambda h, queries: h % queries),
    ("heads.inverse-first", "heads.inverse", "Lets all heads of inverse groups be read by the first query head.",
     lambda h, queries: h * 0),
    ("heads.inverse-clamped", "heads.inverse",
     "Lets head h of an inverse group be read by query head h, or the last one.",
     lambda h, queries: np.minimum(h, queries - 1)),
), operators=_OWN)
attention_faults(applied, (
    ("key-heads.modulo", "key-heads", "Uses key h mod its number of heads for head h.", _shared_keys),
    ("unused.decay", "unused-inputs", "Lets the state decay wherever decay is there, whatever the rule.",
     lambda c: c if c.decay is None else by_rule(by_rule(c, "linear", "gated"), "delta", "gated_delta")),
    ("unused.beta", "unused-inputs", "Corrects by the state wherever beta is there, whatever the rule.",
     lambda c: c if c.beta is None else by_rule(by_rule(c, "linear", "delta"), "gated", "gated_delta")),
), operators=_OWN)
