"""Second derivation of LinearAttention: scalar loops over the printed equations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference.operators.linear_attention.recurrence import Attention

Array = NDArray[Any]


def by_loops(node: Attention) -> tuple[Array, Array]:
    """Return both outputs, for q_num_heads a multiple of kv_num_heads."""
    B, T, _ = node.query.shape
    Hq, H = node.q_num_heads, node.kv_num_heads
    d_k, d_v = node.query.shape[2] // Hq, node.value.shape[2] // H
    scale = 1 / math.sqrt(d_k) if node.scale == 0 else float(np.float32(node.scale))
    output, present = np.zeros((B, T, Hq * d_v)), np.zeros((B, H, d_k, d_v))
    for b in range(B):
        for h in range(H):
            S = [
                [0.0 if node.past_state is None else float(node.past_state[b, h, i, j]) for j in range(d_v)]
                for i in range(d_k)
            ]
            for t in range(T):
                k = [float(node.key[b, t, h * d_k + i]) for i in range(d_k)]
                factor = [1.0] * d_k
                if node.update_rule in ("gated", "gated_delta"):
                    wide = node.decay.shape[2] != H
                    factor = [math.exp(float(node.decay[b, t, h * d_k + i if wide else h])) for i in range(d_k)]
                for j in range(d_v):
                    new = float(node.value[b, t, h * d_v + j])
                    if node.update_rule in ("delta", "gated_delta"):
                        rate = float(node.beta[b, t, 0 if node.beta.shape[2] == 1 else h])
                        new = rate * (new - sum(factor[i] * S[i][j] * k[i] for i in range(d_k)))
                    for i in range(d_k):
                        S[i][j] = factor[i] * S[i][j] + k[i] * new
                for head in range(h * (Hq // H), (h + 1) * (Hq // H)):
                    for j in range(d_v):
                        products = (float(node.query[b, t, head * d_k + i]) * S[i][j] for i in range(d_k))
                        output[b, t, head * d_v + j] = scale * sum(products)
            present[b, h] = S
    return output, present
