"""Faults of LinearAttention's heads, decay, delta rule and scale. Those of states and chunks are in
:mod:`.state_faults`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from ...faults.fault import Compute, Outputs, fault_of_run
from ..described import Described
from . import state_faults as _state_faults  # noqa: F401 - registers them
from .changes import (
    TYPES,
    Array,
    attention_family,
    attention_fault,
    by_rule,
    changed,
    finished,
    first_of,
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

attention_fault(
    "heads.modulo",
    "heads",
    "Lets query head h read the state of key-value head h mod kv_num_heads.",
    lambda c: with_operands(
        c, c.q_num_heads > c.kv_num_heads, heads=lambda o: o.heads * 0 + np.arange(len(o.heads)) % c.kv_num_heads
    ),
)
attention_fault(
    "heads.first",
    "heads",
    "Lets every query head read the state of the first key-value head.",
    lambda c: with_operands(c, heads=lambda o: o.heads * 0),
)
attention_fault(
    "heads.divided-by-kv",
    "heads",
    "Divides a query head's number by kv_num_heads instead of by the size of a group.",
    lambda c: with_operands(
        c, heads=lambda o: np.minimum(np.arange(len(o.heads)) // c.kv_num_heads, c.kv_num_heads - 1)
    ),
)
attention_fault(
    "heads.query-interleaved",
    "packing",
    "Unpacks query as (d_k, q_num_heads).",
    lambda c: with_operands(c, query=lambda o: interleaved(o.query)),
)
attention_fault(
    "heads.key-interleaved",
    "packing",
    "Unpacks key as (d_k, kv_num_heads).",
    lambda c: with_operands(c, key=lambda o: interleaved(o.key)),
)
attention_fault(
    "heads.value-interleaved",
    "packing",
    "Unpacks value as (d_v, kv_num_heads).",
    lambda c: with_operands(c, value=lambda o: interleaved(o.value)),
)
attention_fault(
    "heads.decay-interleaved",
    "decay",
    "Unpacks a decay for each key as (d_k, kv_num_heads).",
    lambda c: with_exponents(c, interleaved),
)
attention_fault(
    "heads.key-of-first",
    "heads",
    "Uses the first head's key for all heads.",
    lambda c: with_operands(c, key=lambda o: first_of(o.key, 2)),
)
attention_fault(
    "heads.value-of-first",
    "heads",
    "Uses the first head's value for all heads.",
    lambda c: with_operands(c, value=lambda o: first_of(o.value, 2)),
)


attention_fault(
    "heads.output-interleaved",
    "packing",
    "Packs output as (d_v, q_num_heads).",
    lambda c: scanned(c, lambda outputs, state, o: (outputs.swapaxes(2, 3).reshape(outputs.shape), state)),
)
attention_fault(
    "heads.output-by-head",
    "packing",
    "Leaves output as (B, q_num_heads, T, d_v) in memory.",
    lambda c: scanned(c, lambda outputs, state, o: (outputs.swapaxes(1, 2).reshape(outputs.shape), state)),
)

# Decay

attention_fault("decay.sign", "decay", "Takes exp(-g) for the decay.", lambda c: with_exponents(c, np.negative))
attention_fault(
    "decay.factor",
    "decay",
    "Takes decay itself for the factor, without exp.",
    lambda c: with_factors(c, lambda g: g),
)
attention_fault("decay.base-two", "decay", "Takes 2^g for the decay.", lambda c: with_factors(c, np.exp2))
attention_fault("decay.linear", "decay", "Takes 1 + g for the decay.", lambda c: with_factors(c, lambda g: 1 + g))
attention_fault(
    "decay.sigmoid",
    "decay",
    "Takes sigmoid(g) for the decay.",
    lambda c: with_factors(c, lambda g: 1 / (1 + np.exp(-g))),
)
attention_fault(
    "decay.twice",
    "decay",
    "Multiplies the state by the decay twice.",
    lambda c: with_exponents(c, lambda g: 2 * g),
)
attention_fault("decay.ignored", "decay", "Ignores decay.", lambda c: with_exponents(c, np.zeros_like))
attention_fault(
    "decay.first-key",
    "decay.per-key",
    "Uses the first key's decay for the whole head.",
    lambda c: with_exponents(c, lambda g: first_of(g, 3)),
)
attention_fault(
    "decay.mean",
    "decay.per-key",
    "Uses the mean of a head's decays for all of its keys.",
    lambda c: with_exponents(c, lambda g: np.repeat(g.mean(-1, keepdims=True), g.shape[-1], -1)),
)
attention_fault(
    "decay.first-head",
    "decay",
    "Uses the first head's decay for all heads.",
    lambda c: with_exponents(c, lambda g: first_of(g, 2)),
)
attention_fault(
    "decay.next-head",
    "decay",
    "Uses the next head's decay.",
    lambda c: with_exponents(c, lambda g: np.roll(g, -1, axis=2)),
)
attention_fault(
    "decay.late",
    "decay",
    "Uses the decay of the step before.",
    lambda c: with_exponents(c, lambda g: shifted(g, 1)),
)
attention_fault(
    "decay.early",
    "decay",
    "Uses the decay of the next step.",
    lambda c: with_exponents(c, lambda g: shifted(g, -1)),
)
attention_fault(
    "decay.first-step",
    "decay",
    "Does not let past_state decay in the first step.",
    lambda c: with_exponents(c, lambda g: np.where(np.arange(g.shape[1])[:, None, None] == 0, 0, g)),
)
attention_fault(
    "decay.cumulative",
    "decay",
    "Adds the exponents of all steps before to each step's own.",
    lambda c: with_exponents(c, lambda g: np.cumsum(g, axis=1)),
)
attention_fault(
    "decay.never-grows",
    "decay",
    "Takes decays above 0 for 0.",
    lambda c: with_exponents(c, lambda g: np.minimum(g, 0)),
)
attention_family(
    "decay.bounded-by-{}",
    (10, 5, 8, 16, 20, 30, 50, 80),
    "decay",
    "Takes decays below -{0} for -{0}.",
    lambda c, most: with_exponents(c, lambda g: np.maximum(g, -most)),
)


@attention_fault("decay.after-write", "decay", "Lets the state decay after it writes, what is new included.")
def decay_after_write(c: Attention) -> Attention:
    def step(s: Step) -> Written:
        written = s.value if s.beta is None else rate(s) * (s.value - retrieve(s.state, s.key))
        state = s.decay[..., None] * (s.state + outer(s.key, written))
        return Written(state, read(state, s), written)

    return with_step(c, step, decays(c.update_rule))


@attention_fault("decay.after-read", "decay", "Lets the state decay at the end of a step, after it reads.")
def decay_after_read(c: Attention) -> Attention:
    def step(s: Step) -> Written:
        made = advance(s._replace(decay=np.ones_like(s.decay)))
        return made._replace(state=s.decay[..., None] * made.state)

    return with_step(c, step, decays(c.update_rule))


@attention_fault(
    "decay.of-values",
    "decay.per-key",
    "Lets the columns of the state decay, d_v, instead of its rows, d_k.",
)
def decay_of_values(c: Attention) -> Attention:
    def step(s: Step) -> Written:
        decayed = np.resize(s.decay, (*s.decay.shape[:2], s.state.shape[3]))[..., None, :] * s.state
        if s.decay.shape[2] >= s.state.shape[3]:
            decayed = s.decay[..., None, : s.state.shape[3]] * s.state
        written = s.value if s.beta is None else rate(s) * (s.value - retrieve(decayed, s.key))
        return finished(s, decayed, written)

    return with_step(c, step, decays(c.update_rule) and c.decay is not None and c.decay.shape[2] != c.kv_num_heads)


# Beta and the delta rule

attention_fault("beta.ignored", "beta", "Ignores beta.", lambda c: with_rates(c, np.ones_like))
attention_fault(
    "beta.sigmoid",
    "beta",
    "Takes sigmoid(beta) for beta.",
    lambda c: with_rates(c, lambda b: 1 / (1 + np.exp(-b))),
)
attention_fault("beta.twice", "beta", "Multiplies by beta twice.", lambda c: with_rates(c, np.square))
attention_fault(
    "beta.bounded",
    "beta",
    "Bounds beta to [0, 1].",
    lambda c: with_rates(c, lambda b: np.clip(b, 0, 1)),
)
attention_fault(
    "beta.first-head",
    "beta",
    "Uses the first head's beta for all heads.",
    lambda c: with_rates(c, lambda b: first_of(b, 2)),
)
attention_fault(
    "beta.next-head",
    "beta",
    "Uses the next head's beta.",
    lambda c: with_rates(c, lambda b: np.roll(b, -1, axis=2)),
)
attention_fault(
    "beta.late",
    "beta",
    "Uses the beta of the step before.",
    lambda c: with_rates(c, lambda b: shifted(b, 1)),
)


def _delta(c: Attention, written: Callable[[Step, Array], Array]) -> Attention:
    """The node with another w, made of the step and P."""

    def step(s: Step) -> Written:
        decayed = s.decay[..., None] * s.state
        return finished(s, decayed, written(s, decayed))

    return with_step(c, step, corrects(c.update_rule))


attention_fault(
    "beta.value-only",
    "delta",
    "Multiplies by beta the value alone, not what the state holds for the key.",
    lambda c: _delta(c, lambda s, P: rate(s) * s.value - retrieve(P, s.key)),
)
attention_fault(
    "beta.retrieved-only",
    "delta",
    "Multiplies by beta what the state holds for the key alone, not the value.",
    lambda c: _delta(c, lambda s, P: s.value - rate(s) * retrieve(P, s.key)),
)
attention_fault(
    "delta.undecayed",
    "delta",
    "Corrects by the state before its decay.",
    lambda c: _delta(c, lambda s, P: rate(s) * (s.value - retrieve(s.state, s.key))),
)
attention_fault(
    "delta.decayed-twice",
    "delta",
    "Corrects by a state that has decayed twice.",
    lambda c: _delta(c, lambda s, P: rate(s) * (s.value - retrieve(s.decay[..., None] * P, s.key))),
)
attention_fault(
    "delta.added",
    "delta",
    "Adds what the state holds for the key to the value instead of subtracting it.",
    lambda c: _delta(c, lambda s, P: rate(s) * (s.value + retrieve(P, s.key))),
)
attention_fault(
    "delta.by-query",
    "delta",
    "Corrects by what the state holds for the query.",
    lambda c: _delta(c, lambda s, P: rate(s) * (s.value - retrieve(P, s.query[:, :: len(s.heads) // s.key.shape[1]]))),
)
attention_fault(
    "delta.keys-normalized",
    "delta",
    "Divides keys by their norm.",
    lambda c: with_operands(c, corrects(c.update_rule), key=lambda o: unit_rows(o.key)),
)
attention_fault(
    "delta.queries-normalized",
    "equations",
    "Divides queries by their norm.",
    lambda c: with_operands(c, query=lambda o: unit_rows(o.query)),
)

# Scale

attention_fault(
    "scale.ignored",
    "scale",
    "Ignores scale: multiplies by 1/sqrt(d_k) whatever it is.",
    lambda c: replace(c, scale=0.0) if c.scale else c,
)
attention_fault(
    "scale.no-default",
    "scale",
    "Does not scale where scale is left out.",
    lambda c: c if c.scale else replace(c, scale=1.0),
)
attention_fault(
    "scale.of-values",
    "scale",
    "Takes 1/sqrt(d_v) where scale is left out.",
    lambda c: c if c.scale else with_operands(c, scale=lambda o: default_scale(c.d_v)),
)
attention_fault(
    "scale.of-packed",
    "scale",
    "Takes 1 over the root of query's whole width where scale is left out.",
    lambda c: c if c.scale else with_operands(c, scale=lambda o: default_scale(c.query.shape[2])),
)
attention_fault(
    "scale.squared",
    "scale",
    "Multiplies by scale twice.",
    lambda c: with_operands(c, scale=lambda o: o.scale**2),
)
attention_fault(
    "scale.of-keys",
    "scale",
    "Multiplies keys by scale instead of what is read, so that the state holds it.",
    lambda c: with_operands(with_operands(c, key=lambda o: o.key * o.scale), scale=lambda o: 1.0),
)


@partial(
    fault_of_run,
    "linearattention.scale.zero",
    "scale",
    "Multiplies by a scale of 0 that is written down.",
    operators=("LinearAttention",),
    types=TYPES,
)
def scale_zero(compute: Compute, c: Described) -> Outputs:
    written = "scale" in compute.attributes and not compute.attributes["scale"]
    return compute(changed(c, lambda node: with_operands(node, scale=lambda o: 0.0)) if written else c)


# onnxruntime's own operator

_of_onnxruntime = partial(attention_fault, operators=("com.microsoft::LinearAttention",))


def _inverse(c: Attention, heads: Callable[[int, int], Array]) -> Attention:
    """Give every head of an inverse group another query head: of `heads` (output heads, query heads)."""

    def queries(o: Operands) -> Array:
        given = o.query[:, :, :: len(o.heads) // c.q_num_heads]
        return given[:, :, heads(len(o.heads), c.q_num_heads)]

    return with_operands(c, c.kv_num_heads > c.q_num_heads, query=queries)


_of_onnxruntime(
    "heads.inverse-modulo",
    "heads.inverse",
    "Lets head h of an inverse group be read by query head h mod q_num_heads.",
    lambda c: _inverse(c, lambda heads, queries: np.arange(heads) % queries),
)
_of_onnxruntime(
    "heads.inverse-first",
    "heads.inverse",
    "Lets all heads of inverse groups be read by the first query head.",
    lambda c: _inverse(c, lambda heads, queries: np.arange(heads) * 0),
)
_of_onnxruntime(
    "heads.inverse-clamped",
    "heads.inverse",
    "Lets head h of an inverse group be read by query head h, or the last one.",
    lambda c: _inverse(c, lambda heads, queries: np.minimum(np.arange(heads), queries - 1)),
)


def _shared_keys(c: Attention) -> Attention:
    """Give key-value head h key h mod the number of key's heads."""
    keys = c.key.shape[2] // max(c.d_k, 1)

    def modulo(o: Operands) -> Array:
        return o.key[:, :, :: c.kv_num_heads // keys][:, :, np.arange(c.kv_num_heads) % keys]

    return with_operands(c, 0 < keys < c.kv_num_heads, key=modulo)


_of_onnxruntime("key-heads.modulo", "key-heads", "Uses key h mod its number of heads for head h.", _shared_keys)
_of_onnxruntime(
    "unused.decay",
    "unused-inputs",
    "Lets the state decay wherever decay is there, whatever the rule.",
    lambda c: by_rule(by_rule(c, "linear", "gated"), "delta", "gated_delta") if c.decay is not None else c,
)
_of_onnxruntime(
    "unused.beta",
    "unused-inputs",
    "Corrects by the state wherever beta is there, whatever the rule.",
    lambda c: by_rule(by_rule(c, "linear", "delta"), "gated", "gated_delta") if c.beta is not None else c,
)
