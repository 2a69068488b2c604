"""Case of LinearAttention as a value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....reference import FORMATS, OperatorVersion
from ...axes.generator import integers, uniform
from ...simple.spec import SimpleSpec


@dataclass(frozen=True)
class LinearAttentionSpec(SimpleSpec):
    """Fields of LinearAttention: sizes, attributes, and kinds of numbers.

    group
        Number of query heads of each key-value head.
    decay_form, beta_form
        Index of the shape in the document: 0 for one element a head, 1 for one each key, or a single one.
    type_S
        Type of the states; empty for that of the other tensors.
    keys
        ``unit``, ``alike``, ``positive`` and ``one-hot`` have norm 1; ``free`` keys are between -1 and 1.
    decays, betas
        Kinds of their numbers, see ``DECAYS`` and ``BETAS`` below.
    numbers
        ``integers`` for small integers, which no implementation rounds.
    """

    batch_size: int = 2
    seq_length: int = 5
    kv_num_heads: int = 2
    group: int = 2
    d_k: int = 4
    d_v: int = 3
    update_rule: str | None = None
    scale: float | None = None
    chunk_size: int | None = None
    type_S: str = ""  # noqa: N815 - the document's letter
    decay_form: int = 0
    beta_form: int = 0
    decays: str = "mild"
    betas: str = "unit"
    keys: str = "unit"

    op = "LinearAttention"
    version = 27

    @property
    def q_num_heads(self) -> int:
        return self.kv_num_heads * self.group

    @property
    def k_num_heads(self) -> int:
        return self.kv_num_heads

    @property
    def rule(self) -> str:
        """The update rule, or its default."""
        return self.update_rule or "gated_delta"

    @property
    def delta(self) -> bool:
        """Whether the rule is one of the delta rules."""
        return self.rule in ("delta", "gated_delta")

    @property
    def gated(self) -> bool:
        """Whether the rule has a decay."""
        return self.rule in ("gated", "gated_delta")


@dataclass(frozen=True)
class OnnxruntimeLinearAttentionSpec(LinearAttentionSpec):
    """Fields of onnxruntime's operator.

    query_sharing, key_sharing
        Number of key-value heads that share a query head, or a head of key.
    unused
        Inputs that are present although the rule does not use them: ``unused-decay``, ``unused-beta``, ``unused-both``.
    """

    query_sharing: int = 1
    key_sharing: int = 1
    unused: str = ""

    op = "com.microsoft::LinearAttention"
    version = 1

    @property
    def q_num_heads(self) -> int:
        return self.kv_num_heads * self.group // self.query_sharing

    @property
    def k_num_heads(self) -> int:
        return self.kv_num_heads // self.key_sharing

    def has(self, operator: OperatorVersion, name: str) -> bool:
        """Return whether an input is present."""
        used = {"decay": self.gated, "beta": self.delta}
        if name not in used:
            return super().has(operator, name)
        return used[name] or self.unused in (f"unused-{name}", "unused-both")


Array = NDArray[Any]


def _mixed(drawn: Array) -> Array:
    """Return zeros, with -90 for one element in eight."""
    return np.where(np.abs(drawn) < 1 / 8, -90.0, 0.0)


DECAYS: Mapping[str, Callable[[Array], Array]] = {
    "mild": lambda drawn: -np.abs(drawn) / 8,
    "strong": lambda drawn: -np.abs(drawn) * 4,
    "mamba": lambda drawn: -(drawn**4) * 8,
    "zero": np.zeros_like,
    "positive": lambda drawn: np.abs(drawn) / 32,
    "sixty": lambda drawn: np.where(drawn > 0.5, -60.0, -np.abs(drawn)),
    "mixed": _mixed,
}
"""Kinds of decays, as functions of numbers between -1 and 1.

``mamba`` is a power, near 0 and far from it as in Mamba. ``sixty`` erases half of the state. ``mixed`` has steps that
erase all of the state between steps that keep it.
"""

BETAS: Mapping[str, Callable[[Array], Array]] = {
    "unit": np.abs,
    "zero": np.zeros_like,
    "one": np.ones_like,
    "two": lambda drawn: np.abs(drawn) * 2,
    "negative": lambda drawn: drawn,
}
"""Kinds of betas, as functions of numbers between -1 and 1; ``two`` reaches 2 and ``negative`` reaches -1."""


def draw(spec: LinearAttentionSpec, name: str, shape: tuple[int, ...], key: str) -> Array:
    """Return the numbers of an input in float64, the same ones for the same key."""
    if spec.numbers == "integers":
        return _integers(spec, name, shape, key)
    drawn = uniform(key, shape, FORMATS[spec.type_of(name)].precision, 0)
    if name == "key":
        heads = drawn.reshape(*shape[:2], spec.k_num_heads, spec.d_k)
        return _key_heads(heads, spec.keys, key).reshape(shape)
    if name == "decay":
        return DECAYS[spec.decays](drawn)
    return BETAS[spec.betas](drawn) if name == "beta" else drawn


def _key_heads(drawn: Array, kind: str, key: str) -> Array:
    """Return keys (B, T, H, d_k) of a kind, from numbers between -1 and 1."""
    if kind == "one-hot":
        d_k, count = drawn.shape[3], int(np.prod(drawn.shape[:3]))
        positions = integers(f"{key}/places", count, 0, max(d_k - 1, 0)).reshape(drawn.shape[:3])
        signs = np.sign(drawn[..., :1])
        hot: Array = (np.arange(d_k) == positions[..., np.newaxis]) * signs
        return hot
    if kind == "free":
        return drawn
    if kind == "alike":
        drawn = drawn / 4 + np.where(np.arange(drawn.shape[3]) % 2, -1.0, 1.0)
    elif kind == "positive":
        drawn = np.abs(drawn)
    squares = np.zeros(drawn.shape[:3])
    for square in np.moveaxis(drawn * drawn, 3, 0):  # sequential sum: the same digits on every machine
        squares += square
    return drawn / np.sqrt(squares)[..., np.newaxis]


def _integers(spec: LinearAttentionSpec, name: str, shape: tuple[int, ...], key: str) -> Array:
    """Return small integers; for a delta rule, keys with one entry 1 or -1, and betas 0, 1 and 2."""
    count = int(np.prod(shape))
    if name == "beta":
        return integers(key, count, 0, 2).reshape(shape).astype(np.float64)
    if name == "key" and spec.delta:
        drawn = uniform(key, (*shape[:2], spec.k_num_heads, spec.d_k), 24, 0)
        return _key_heads(drawn, "one-hot", key).reshape(shape)
    most = 1 if name == "key" else 2
    return integers(key, count, -most, most).reshape(shape).astype(np.float64)
