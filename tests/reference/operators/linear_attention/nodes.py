"""Nodes of LinearAttention for tests: drawn over rules, heads, sizes, decays and kinds of keys."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference.numbers.accuracy import FORMATS
from onnxspec.reference.operators.linear_attention.recurrence import RULES, Attention, corrects, decays

Array = NDArray[Any]

DECAYS = ("mild", "strong", "mamba", "zero", "mixed", "positive")
KEYS = ("normal", "alike", "positive", "one-hot")


def exponents(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    """Return exponents g of a kind."""
    uniform = random.uniform(0, 1, shape)
    return {
        "mild": -0.1 * uniform,
        "strong": -6 * uniform,
        "mamba": -np.exp(random.normal(-3, 2, shape)).clip(0, 8),
        "zero": 0 * uniform,
        "mixed": np.where(uniform < 0.1, -20.0, 0.0),
        "positive": 0.02 * uniform,
    }[kind]


def keys(random: np.random.Generator, kind: str, shape: tuple[int, ...]) -> Array:
    """Return keys of norm 1, (B, T, H, d_k)."""
    drawn = random.normal(size=shape)
    if kind == "alike":
        drawn = random.normal(size=(*shape[:1], 1, *shape[2:])) + 0.3 * drawn
    elif kind == "positive":
        drawn = np.abs(drawn)
    elif kind == "one-hot":
        drawn = np.eye(shape[3])[random.integers(0, shape[3], shape[:3])]
    return drawn / np.maximum(np.linalg.norm(drawn, axis=-1, keepdims=True), 1e-9)


def draw(seed: int, **fixed: Any) -> Attention:
    """Return a node by its number."""
    random = np.random.default_rng(seed)

    def one(name: str, values: Any) -> Any:
        value = values[random.integers(len(values))]
        return fixed.get(name, value)

    rule, T = one("rule", RULES), one("T", (1, 2, 3, 5, 15, 16, 17, 33, 63, 64, 65, 130, 200))
    B, (Hq, H) = one("B", (1, 2)), one("heads", ((1, 1), (2, 2), (4, 2), (3, 1), (3, 3)))
    d_k, d_v = one("widths", ((1, 1), (3, 5), (8, 8), (15, 4), (16, 8), (32, 3), (64, 2)))
    type, state_type = one("type", ("float32",)), one("state_type", ("float32",))
    T_type, S_type = FORMATS[type].dtype, FORMATS[state_type].dtype
    k = keys(random, one("keys", KEYS), (B, T, H, d_k)).reshape(B, T, H * d_k)
    decay = beta = None
    if decays(rule):
        per_head = one("per_head", (True, False))
        decay = exponents(random, one("decay", DECAYS), (B, T, H * (1 if per_head else d_k))).astype(T_type)
    if corrects(rule):
        values = {
            "unit": random.uniform(0, 1, (B, T, H)),
            "one": np.ones((B, T, H)),
            "two": random.uniform(0, 2, (B, T, H)),
        }
        beta = values[one("betas", tuple(values))][..., : one("beta_width", (H, H, 1))].astype(T_type)
    past = random.normal(size=(B, H, d_k, d_v)).astype(S_type) if one("past", (True, False)) else None
    return Attention(
        random.normal(size=(B, T, Hq * d_k)).astype(T_type),
        k.astype(T_type),
        random.normal(size=(B, T, H * d_v)).astype(T_type),
        Hq,
        H,
        past,
        decay,
        beta,
        rule,
        one("scale", (0.0, 1.0, 0.25, -0.7)),
        one("chunk_size", (64, 1, 16, 0, 1 << 40)),
    )


def draw_exact(seed: int, rule: str = "delta", type: str = "float32") -> Attention:
    """Return a node of small integers, in which nothing is rounded."""
    random = np.random.default_rng(seed)
    B, (Hq, H) = 2, ((1, 1), (4, 2), (3, 3))[seed % 3]
    T, d_k, d_v = (1, 3, 17, 64, 65, 200)[seed % 6], (4, 8, 5, 16)[seed % 4], 3
    dtype = FORMATS[type].dtype

    def integers(most: int, *shape: int) -> Array:
        return random.integers(-most, most + 1, shape).astype(dtype)

    hot = np.eye(d_k)[random.integers(0, d_k, (B, T, H))] * random.choice((-1, 1), (B, T, H, 1))
    key = hot.reshape(B, T, -1) if rule == "delta" else integers(1, B, T, H * d_k)
    beta = integers(1, B, T, H) * 0 + random.integers(0, 3, (B, T, H)).astype(dtype) if rule == "delta" else None
    past = integers(3, B, H, d_k, d_v)
    return Attention(
        integers(2, B, T, Hq * d_k), key.astype(dtype), integers(3, B, T, H * d_v), Hq, H, past, None, beta, rule, 0.5
    )
