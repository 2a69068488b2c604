"""Second derivation of LinearAttention: the printed equations, head by head and step by step in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference.operators.linear_attention.recurrence import Attention

Array = NDArray[Any]


def by_loops(node: Attention) -> tuple[Array, Array]:
    """Return both outputs, for q_num_heads a multiple of kv_num_heads."""
    B, T, _ = node.query.shape
    Hq, H = node.q_num_heads, node.kv_num_heads
    query = node.query.reshape(B, T, Hq, -1).astype(float)
    key, value = (array.reshape(B, T, H, -1).astype(float) for array in (node.key, node.value))
    scale = query.shape[3] ** -0.5 if node.scale == 0 else float(np.float32(node.scale))
    output = np.zeros((B, T, Hq, value.shape[3]))
    present = (
        np.zeros((B, H, key.shape[3], value.shape[3])) if node.past_state is None else node.past_state.astype(float)
    )
    for b, h in np.ndindex(B, H):
        S = present[b, h]
        for t in range(T):
            k, w = key[b, t, h], value[b, t, h]
            if node.update_rule in ("gated", "gated_delta"):
                exponents = node.decay[b, t].astype(float).reshape(H, -1)[h]  # one a head, or one a key
                S = np.exp(exponents)[:, np.newaxis] * S
            if node.update_rule in ("delta", "gated_delta"):
                rates = node.beta[b, t].astype(float)  # one a head, or one for all
                w = rates[h % len(rates)] * (w - k @ S)
            S = S + np.outer(k, w)
            for head in range(h * (Hq // H), (h + 1) * (Hq // H)):
                output[b, t, head] = scale * (query[b, t, head] @ S)
        present[b, h] = S
    return output.reshape(B, T, -1), present
