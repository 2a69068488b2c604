"""Equations of LinearAttention, as printed in its document, in float64.

Each key-value head has a state S (d_k, d_v). In a step the state decays to P = exp(g) S, then it is written, then read:

    w = v, or beta (v - P' k) for the delta rules
    S = P + k w'
    o = scale q' S

A query head reads the state of the key-value head of its group. Faults change the packed inputs, the unpacked operands,
or one step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

RULES = ("linear", "gated", "delta", "gated_delta")
"""The values of update_rule."""


def decays(rule: str) -> bool:
    """Return whether a rule has a decay."""
    return rule in ("gated", "gated_delta")


def corrects(rule: str) -> bool:
    """Return whether a rule writes the difference between the value and the state's value for the key."""
    return rule in ("delta", "gated_delta")


@dataclass(frozen=True)
class Operands:
    """Unpacked operands of the equations, in float64.

    query
        (B, T, R, d_k), one for each of the R heads of the output.
    key, value
        (B, T, H, d_k) and (B, T, H, d_v), for H key-value heads.
    decay
        (B, T, H, d_k), the factor exp(g) of every row of the state; ``exponent`` is g. 1 and 0 for rules without decay.
    beta
        (B, T, H); None for rules without beta.
    past
        (B, H, d_k, d_v).
    heads
        (R,), the key-value head whose state an output head reads.
    """

    query: Array
    key: Array
    value: Array
    exponent: Array
    decay: Array
    beta: Array | None
    past: Array
    heads: Array
    scale: float

    @property
    def steps(self) -> int:
        return int(self.query.shape[1])


class Step(NamedTuple):
    """Operands of one step: those of :class:`Operands` without the time axis, and the state before the step."""

    state: Array
    query: Array
    key: Array
    value: Array
    decay: Array
    beta: Array | None
    heads: Array
    scale: float


class Written(NamedTuple):
    """Results of one step: the state after it, the output (B, R, d_v), and w (B, H, d_v)."""

    state: Array
    output: Array
    written: Array


Advance = Callable[[Step], Written]


def retrieve(state: Array, key: Array) -> Array:
    """Return S' k of every head, (B, H, d_v)."""
    product: Array = (key[..., None, :] @ state)[..., 0, :]
    return product


def retrieve_in_order(state: Array, key: Array) -> Array:
    """Return S' k of every head, summed in a fixed order, so that every machine gives the same digits."""
    total = np.zeros((*key.shape[:-1], state.shape[-1]))
    for i in range(key.shape[-1]):
        total += key[..., i, None] * state[..., i, :]
    return total


def outer(key: Array, written: Array) -> Array:
    """Return k w' of every head, (B, H, d_k, d_v)."""
    product: Array = key[..., None] * written[..., None, :]
    return product


def read(state: Array, step: Step, retrieve: Callable[[Array, Array], Array] = retrieve) -> Array:
    """Return scale q' S, (B, R, d_v); each output head reads the state of its group."""
    output: Array = step.scale * retrieve(state[:, step.heads], step.query)
    return output


def advance(step: Step, retrieve: Callable[[Array, Array], Array] = retrieve) -> Written:
    """Return the results of one step by the document's equations."""
    decayed = step.decay[..., None] * step.state
    written = step.value
    if step.beta is not None:
        written = step.beta[..., None] * (step.value - retrieve(decayed, step.key))
    state = decayed + outer(step.key, written)
    return Written(state, read(state, step, retrieve), written)


def step_of(operands: Operands, t: int, state: Array) -> Step:
    """Return the operands of step t, with `state` as the state before it."""
    beta = None if operands.beta is None else operands.beta[:, t]
    return Step(
        state,
        operands.query[:, t],
        operands.key[:, t],
        operands.value[:, t],
        operands.decay[:, t],
        beta,
        operands.heads,
        operands.scale,
    )


def run_steps(operands: Operands, advance: Advance = advance) -> tuple[Array, Array]:
    """Return the outputs (B, T, R, d_v) and the last state (B, H, d_k, d_v)."""
    batch, steps, reads, _ = operands.query.shape
    outputs = np.zeros((batch, steps, reads, operands.value.shape[-1]))
    state = operands.past
    for t in range(steps):
        state, outputs[:, t], _ = advance(step_of(operands, t, state))
    return outputs, state


Scan = Callable[[Operands, Advance], tuple[Array, Array]]


def unpack(packed: Array, heads: int) -> Array:
    """Return a packed tensor (B, T, heads * d) as (B, T, heads, d) in float64."""
    batch, steps, width = packed.shape
    return packed.astype(np.float64).reshape(batch, steps, heads, width // heads)


def default_scale(d_k: int) -> float:
    """Return the scale of a node whose scale is absent or 0."""
    return float(1 / np.sqrt(d_k))


@dataclass(frozen=True)
class Attention:
    """A resolved node with its inputs.

    query, key, value, past_state, decay, beta
        The inputs as given; None for absent inputs.
    q_num_heads, kv_num_heads, update_rule, scale, chunk_size
        The attributes, with their defaults.
    prepare, advance, scan
        The change of the unpacked operands, the equations of one step, and the loop over steps. Faults replace these.
    """

    query: Array
    key: Array
    value: Array
    q_num_heads: int
    kv_num_heads: int
    past_state: Array | None = None
    decay: Array | None = None
    beta: Array | None = None
    update_rule: str = "gated_delta"
    scale: float = 0.0
    chunk_size: int = 64
    prepare: Callable[[Operands], Operands] = lambda operands: operands
    advance: Advance = advance
    scan: Scan = run_steps

    @property
    def reads(self) -> int:
        """Number of heads of the output."""
        return max(self.q_num_heads, self.kv_num_heads)

    @property
    def d_k(self) -> int:
        """Width of a query and of a key."""
        return int(self.query.shape[2]) // self.q_num_heads

    @property
    def d_v(self) -> int:
        """Width of a value."""
        return int(self.value.shape[2]) // self.kv_num_heads

    def _keys(self) -> Array:
        """Return the key of every key-value head; adjacent heads share a key where there are fewer keys."""
        heads = self.key.shape[2] // self.d_k if self.d_k else self.kv_num_heads
        keys = unpack(self.key, heads)
        return keys if heads == self.kv_num_heads else np.repeat(keys, self.kv_num_heads // heads, axis=2)

    def operands(self) -> Operands:
        """Return the operands, unpacked."""
        batch, steps, _ = self.query.shape
        H, R, d_k = self.kv_num_heads, self.reads, self.d_k
        query, key, value = unpack(self.query, self.q_num_heads), self._keys(), unpack(self.value, H)
        exponent = np.zeros((batch, steps, H, d_k))
        if decays(self.update_rule) and self.decay is not None:
            exponent = np.broadcast_to(unpack(self.decay, H), exponent.shape)
        beta = None
        if corrects(self.update_rule):
            values = np.ones(1) if self.beta is None else self.beta.astype(np.float64)
            beta = np.broadcast_to(values, (batch, steps, H))
        past = np.zeros((batch, H, d_k, self.d_v))
        if self.past_state is not None:
            past = self.past_state.astype(np.float64)
        queries = np.arange(R) // (R // self.q_num_heads)
        heads = np.arange(R) // (R // H)
        scale = float(np.float32(self.scale)) or default_scale(d_k)
        operands = Operands(query[:, :, queries], key, value, exponent, np.exp(exponent), beta, past, heads, scale)
        return self.prepare(operands)

    def run(self) -> dict[str, Array]:
        """Return both outputs in float64, by name."""
        outputs, state = self.scan(self.operands(), self.advance)
        return {"output": pack(outputs), "present_state": state}

    def prepared(self, change: Callable[[Operands], Operands]) -> Attention:
        """Return this node with one more change of its unpacked operands."""
        before = self.prepare
        return replace(self, prepare=lambda operands: change(before(operands)))


def pack(outputs: Array) -> Array:
    """Return outputs (B, T, R, d_v) as (B, T, R * d_v)."""
    batch, steps, reads, width = outputs.shape
    return outputs.reshape(batch, steps, reads * width)
