"""Conforming implementations of LinearAttention in the style of kernels.

They compute in float32, each with its own order of operations. A kernel takes a node and returns both outputs, rounded
to their types. Kernels that work on one head at a time do so here as well, so they share only the meaning of the
operands with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference.numbers.accuracy import FORMATS
from onnxspec.reference.operators.linear_attention.recurrence import Attention

Array = NDArray[Any]
Outputs = dict[str, Array]
Rounding = Callable[[Array], Array]
f32 = np.float32
LOG2_E = f32(1.4426950408889634)


class Head:
    """Numbers of one sequence and one key-value head in float32.

    They are q (G, T, d_k), k, g (T, d_k), v (T, d_v), b (T,), the state S (d_k, d_v), and the arrays of the results.
    """

    def __init__(self, node: Attention, row: int, head: int, outputs: Outputs) -> None:
        d_k, d_v, G = node.d_k, node.d_v, node.reads // node.kv_num_heads
        T = node.query.shape[1]
        packed = node.query[row].astype(f32).reshape(T, node.q_num_heads, d_k)
        self.q = packed[:, head * G : (head + 1) * G].swapaxes(0, 1)
        self.k = node.key[row].astype(f32).reshape(T, -1, d_k)[:, head]
        self.v = node.value[row].astype(f32).reshape(T, -1, d_v)[:, head]
        self.g = np.zeros((T, d_k), f32)
        if "gated" in node.update_rule:
            g = node.decay[row].astype(f32).reshape(T, node.kv_num_heads, -1)[:, head]
            self.g = np.broadcast_to(g, (T, d_k)).copy()
        self.per_head = "gated" in node.update_rule and node.decay.shape[2] == node.kv_num_heads
        self.delta = "delta" in node.update_rule
        self.b = np.ones(T, f32)
        if self.delta:
            self.b = node.beta[row].astype(f32)[:, head if node.beta.shape[2] > 1 else 0]
        self.S = np.zeros((d_k, d_v), f32)
        if node.past_state is not None:
            self.S = node.past_state[row, head].astype(f32)
        self.scale = f32(node.scale) if node.scale else f32(1) / np.sqrt(f32(d_k))
        self.T, self.d_k, self.d_v, self.G = T, d_k, d_v, G
        self.o = np.zeros((G, T, d_v), f32)
        self._place = row, head, outputs

    def store(self) -> None:
        row, head, outputs = self._place
        T, width = self.T, self.d_v
        for g in range(self.G):
            at = (head * self.G + g) * width
            outputs["output"][row, :, at : at + width] = self.o[g].reshape(T, width)
        outputs["present_state"][row, head] = self.S


def kernel(compute: Callable[[Head], None]) -> Callable[[Attention], Outputs]:
    """Return the kernel of a function that computes one head."""

    def run(node: Attention) -> Outputs:
        B, T, _ = node.query.shape
        outputs = {
            "output": np.zeros((B, T, node.reads * node.d_v), f32),
            "present_state": np.zeros((B, node.kv_num_heads, node.d_k, node.d_v), f32),
        }
        with np.errstate(all="ignore"):
            for row in range(B):
                for head in range(node.kv_num_heads):
                    one = Head(node, row, head, outputs)
                    compute(one)
                    one.store()
        past = node.query if node.past_state is None else node.past_state
        types = {"output": node.query.dtype, "present_state": past.dtype}
        return {name: FORMATS[types[name].name].nearest(a.astype(np.float64)) for name, a in outputs.items()}

    return run


def _sequential(h: Head, order: Callable[[int], Iterator[int]] = lambda n: iter(range(n))) -> None:
    """Compute step by step, adding up products one by one."""
    for t in range(h.T):
        if h.g.any():
            h.S = np.exp(h.g[t])[:, None] * h.S
        w = h.v[t]
        if h.delta:
            r = np.zeros(h.d_v, f32)
            for i in order(h.d_k):
                r = r + h.k[t, i] * h.S[i]
            w = h.b[t] * (w - r)
        h.S = h.S + h.k[t][:, None] * w
        for g in range(h.G):
            o = np.zeros(h.d_v, f32)
            for i in order(h.d_k):
                o = o + h.q[g, t, i] * h.S[i]
            h.o[g, t] = o * h.scale


def _fused(h: Head) -> None:
    """Read the state before writing it, with queries that are scaled first, and add the difference."""
    for t in range(h.T):
        d = np.exp(h.g[t])
        w = h.v[t]
        if h.delta:
            w = h.b[t] * (w - (d * h.k[t]) @ h.S)
        for g in range(h.G):
            q = h.q[g, t] * h.scale
            h.o[g, t] = (d * q) @ h.S + (q @ h.k[t]) * w
        h.S = d[:, None] * h.S + np.outer(h.k[t], w)


def _dense(h: Head, order: Callable[[int], Iterator[int]] = lambda n: iter(range(n))) -> None:
    """Multiply the state by the matrix (I - beta k k') exp(g) of each step, adding up products one by one."""
    for t in range(h.T):
        step = np.eye(h.d_k, dtype=f32)
        if h.delta:
            step = step - h.b[t] * np.outer(h.k[t], h.k[t])
        step = step * np.exp(h.g[t])
        state = np.zeros_like(h.S)
        for i in order(h.d_k):
            state = state + step[:, i, None] * h.S[i]
        h.S = state + np.outer(h.b[t] * h.k[t], h.v[t])
        h.o[:, t] = (h.q[:, t] @ h.S) * h.scale


def _lanes(h: Head, width: int = 8) -> None:
    """Compute step by step with the state transposed and sums in lanes.

    Exponentials have base 2, and beta is multiplied into both sides.
    """
    state = h.S.T.copy()
    padded = -(-h.d_k // width) * width

    def dot(rows: Array, x: Array) -> Array:
        terms = np.zeros((len(rows), padded), f32)
        terms[:, : h.d_k] = rows * x
        lanes = np.zeros((len(rows), width), f32)
        for at in range(0, padded, width):
            lanes = lanes + terms[:, at : at + width]
        while lanes.shape[1] > 1:
            half = lanes.shape[1] // 2
            lanes = lanes[:, :half] + lanes[:, half:]
        return lanes[:, 0]

    for t in range(h.T):
        state = state * np.exp2(h.g[t] * LOG2_E)
        w = h.v[t]
        if h.delta:
            w = h.b[t] * h.v[t] - dot(state, h.b[t] * h.k[t])
        state = state + np.outer(w, h.k[t])
        for g in range(h.G):
            h.o[g, t] = h.scale * dot(state, h.q[g, t])
    h.S = state.T.copy()


def solve_rows(A: Array, rhs: Array, rounding: Rounding) -> Array:
    """Return w of (I + A) w = rhs for a strictly lower A, by substitution."""
    w = np.zeros_like(rhs)
    for t in range(len(A)):
        w[t] = rhs[t] - A[t, :t] @ w[:t]
    return w


def inverse_rows(A: Array) -> Array:
    """Return (I + A)^-1, computed row by row."""
    n = len(A)
    inverse = np.eye(n, dtype=f32)
    for t in range(1, n):
        inverse[t, :t] = -(A[t, :t] @ inverse[:t, :t])
    return inverse


def inverse_blocks(A: Array, block: int = 16) -> Array:
    """Return (I + A)^-1: diagonal blocks row by row, and pairs of blocks beside each other by products."""
    n = len(A)
    if n <= block:
        return inverse_rows(A)
    half = -(-n // 2 // block) * block
    first, second = inverse_blocks(A[:half, :half], block), inverse_blocks(A[half:, half:], block)
    inverse = np.zeros_like(A)
    inverse[:half, :half], inverse[half:, half:] = first, second
    inverse[half:, :half] = -(second @ A[half:, :half] @ first)
    return inverse


def by_inverse(A: Array, rhs: Array, rounding: Rounding, invert: Callable[[Array], Array] = inverse_rows) -> Array:
    """Return (I + A)^-1 rhs, with the inverse computed first."""
    return rounding(invert(A)) @ rounding(rhs)


Decayed = Callable[[Head, Array, slice], tuple[Array, Array]]


def pairs(h: Head, G: Array, chunk: slice) -> tuple[Array, Array]:
    """Return k_t' Gamma(t, s) k_s and q_t' Gamma(t, s) k_s of a chunk, with a separate decay for every pair."""
    difference = np.exp(np.minimum(G[:, None] - G[None], 0 if (h.g <= 0).all() else 80))
    return np.einsum("ti,si,tsi->ts", h.k[chunk], h.k[chunk], difference), np.einsum(
        "gti,si,tsi->gts", h.q[:, chunk], h.k[chunk], difference
    )


def split(h: Head, G: Array, chunk: slice) -> tuple[Array, Array]:
    """Return the same as `pairs`, with the decay divided between both factors, about the middle of the chunk."""
    middle = G[len(G) // 2]
    k, q = h.k[chunk] * np.exp(G - middle), h.q[:, chunk] * np.exp(G - middle)
    other = (h.k[chunk] * np.exp(middle - G)).T
    return k @ other, q @ other


def _chunked(
    h: Head,
    length: int = 64,
    solve: Callable[[Array, Array, Rounding], Array] = solve_rows,
    decayed: Decayed = pairs,
    rounding: Rounding = lambda x: x,
    two_solutions: bool = False,
    base: Callable[[Array], Array] = np.exp,
) -> None:
    """Compute chunk by chunk, in the WY form. `rounding` is applied to every operand of a matrix product."""
    r = rounding
    for begin in range(0, h.T, length):
        chunk = slice(begin, min(begin + length, h.T))
        k, v, b = h.k[chunk], h.v[chunk], h.b[chunk]
        G = np.cumsum(h.g[chunk], axis=0, dtype=f32)
        if h.per_head or not h.g.any():
            decay = base(np.minimum(G[:, None, 0] - G[None, :, 0], 80))
            KK, QK = (r(k) @ r(k).T) * decay, (r(h.q[:, chunk]) @ r(k).T) * decay
        else:
            KK, QK = decayed(h, G, chunk)
        k_decayed, q_decayed = k * base(G), h.q[:, chunk] * base(G)
        w = v
        if h.delta:
            A = np.tril(b[:, None] * KK, -1)
            if two_solutions:
                both = solve(A, np.concatenate([b[:, None] * v, b[:, None] * k_decayed], axis=1), r)
                w = both[:, : h.d_v] - r(both[:, h.d_v :]) @ r(h.S)
            else:
                w = solve(A, b[:, None] * (v - r(k_decayed) @ r(h.S)), r)
        inner = np.tril(np.ones((len(G), len(G)), f32)) * QK
        for g in range(h.G):
            h.o[g, chunk] = h.scale * (r(q_decayed[g]) @ r(h.S) + r(inner[g]) @ r(w))
        k_end = k * base(np.minimum(G[-1] - G, 80))
        h.S = base(G[-1])[:, None] * h.S + r(k_end).T @ r(w)


def base_two(x: Array) -> Array:
    """Return exp(x) as 2^(x log2 e)."""
    return np.exp2(x * LOG2_E)


def to_type(name: str) -> Rounding:
    """Return the function that rounds to a type and back to float32."""
    return lambda x: x.astype(FORMATS[name].dtype).astype(f32)


def _backwards(n: int) -> Iterator[int]:
    return reversed(range(n))


KERNELS: dict[str, Callable[[Attention], Outputs]] = {
    "sequential": kernel(_sequential),
    "reversed": kernel(partial(_sequential, order=_backwards)),
    "fused": kernel(_fused),
    "dense": kernel(_dense),
    "dense-reversed": kernel(partial(_dense, order=_backwards)),
    "lanes": kernel(_lanes),
    "chunks-64": kernel(_chunked),
    "chunks-48-inverse": kernel(partial(_chunked, length=48, solve=by_inverse)),
    "chunks-64-two-solutions": kernel(partial(_chunked, solve=by_inverse, two_solutions=True)),
    "chunks-128-blocks": kernel(
        partial(_chunked, length=128, solve=partial(by_inverse, invert=inverse_blocks), base=base_two)
    ),
    "chunks-32-split": kernel(partial(_chunked, length=32, decayed=split)),
    "triton": kernel(
        partial(
            _chunked,
            solve=partial(by_inverse, invert=inverse_blocks),
            two_solutions=True,
            decayed=split,
            base=base_two,
            length=64,
        )
    ),
}
"""Kernels that are right in class `standard`."""


def tensor_cores(type: str) -> Callable[[Attention], Outputs]:
    """Return a chunked kernel for tensor cores: operands of matrix products are rounded to a half type."""
    solve = partial(by_inverse, invert=inverse_blocks)
    return kernel(partial(_chunked, solve=solve, rounding=to_type(type), two_solutions=True))
