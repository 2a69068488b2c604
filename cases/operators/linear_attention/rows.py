"""Rows that define cases of LinearAttention: values to combine, and explicit cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .numbers import BETAS, DECAYS

_RULES = (None, "linear", "gated", "delta", "gated_delta")


def _row(**fields: Any) -> Mapping[str, Any]:
    return fields


_MODEL_HEADS: Mapping[str, Any] = {"kv_num_heads": 16, "group": 1, "d_k": 128, "d_v": 128, "batch_size": 1}

SMOKE = (
    *(_row(update_rule=rule, seq_length=3) for rule in _RULES[1:]),
    *(_row(update_rule=rule, seq_length=1, numbers="integers") for rule in ("linear", "delta")),
    *(_row(update_rule=rule, seq_length=65, numbers="integers", kv_num_heads=3) for rule in ("linear", "delta")),
    *(_row(seq_length=1, decay_form=form, decays="strong") for form in (0, 1)),
    _row(seq_length=70, decays="mild"),
    _row(seq_length=70, decays="mamba", decay_form=1, beta_form=1),
    _row(seq_length=17, kv_num_heads=1, group=4, decay_form=1),
    _row(kv_num_heads=3, group=3, d_k=6, d_v=6),
    _row(update_rule="gated", d_k=9, d_v=10, decay_form=1, kv_num_heads=3),
    _row(update_rule="delta", betas="two", d_v=9),
    _row(update_rule="delta", keys="free", seq_length=2),
    _row(decays="sixty", betas="negative", scale=-0.7),
    _row(decays="positive", betas="one", scale=0.0, chunk_size=16),
    _row(seq_length=0),
    _row(type="bfloat16", seq_length=33, type_S="float32"),
)
"""Cases of ``smoke`` in addition to the small ones."""

EDGES = (
    *(
        _row(update_rule=rule, seq_length=200, numbers="integers", keys="one-hot", kv_num_heads=heads, type=type)
        for rule in ("linear", "delta")
        for heads, type in ((1, "float32"), (3, "float16"), (3, "bfloat16"))
    ),
    *(
        _row(update_rule=rule, seq_length=length, numbers="integers", d_k=d_k, d_v=d_v)
        for rule in ("linear", "delta")
        for length, d_k, d_v in ((130, 16, 32), (17, 63, 33), (65, 64, 64), (3, 129, 5))
    ),
    *(
        _row(seq_length=length, type=type, type_S="float32", decays="mild", decay_form=form)
        for length, form in ((66, 0), (130, 1))
        for type in ("float16", "bfloat16", "float32")
    ),
    *(
        _row(seq_length=1, type=type, type_S="float32", decays=decays, decay_form=form, kv_num_heads=3)
        for type in ("float16", "bfloat16", "float32")
        for decays, form in (("sixty", 1), ("sixty", 0), ("mixed", 1), ("mamba", 0), ("strong", 1))
    ),
    *(_row(seq_length=130, keys="alike", betas="one", decays=decays, d_k=16, d_v=5) for decays in ("zero", "mild")),
    *(
        _row(seq_length=length, keys="free", update_rule=rule, type=type, decays=decays)
        for rule, length, decays in (("delta", 2, "mild"), ("delta", 3, "mild"), ("gated_delta", 2, "sixty"))
        for type in ("float32", "float16", "bfloat16")
    ),
    *(
        _row(update_rule=rule, seq_length=70, decays="mild", type=type, type_S="float32")
        for rule in ("delta", "gated")
        for type in ("float16", "bfloat16", "float32")
    ),
    *(_row(seq_length=0, type=type, type_S=state) for type, state in (("float16", ""), ("float32", "float16"))),
    _row(seq_length=0, absent=("past_state",)),
    _row(batch_size=0),
    _row(batch_size=0, update_rule="linear", absent=("past_state",)),
    _row(**_MODEL_HEADS, seq_length=1, type="float16", type_S="float32"),
    _row(**_MODEL_HEADS, seq_length=65, type="float16", type_S="float32"),
    _row(kv_num_heads=32, group=1, d_k=128, d_v=128, batch_size=1, seq_length=1),
    _row(kv_num_heads=1, group=1, d_k=64, d_v=64, seq_length=64),
    _row(kv_num_heads=2, group=1, d_k=272, d_v=32, seq_length=3),
    _row(kv_num_heads=1, group=8, d_k=256, d_v=32, seq_length=3),
)
"""Cases of ``core`` that the product of axes lacks: long exact cases, chunks in every type, sizes of models."""


AXES: Mapping[str, Sequence[Any]] = {
    # Lengths about 1, and below, at and above chunks of 16, 64 and 128.
    "seq_length": (5, 1, 2, 3, 15, 16, 17, 63, 64, 65, 128, 130, 200),
    "kv_num_heads": (2, 1, 3),
    "group": (2, 1, 3, 5, 8),
    # Widths in and outside blocks of 4, 8, 16, 32 and 64.
    "d_k": (4, 1, 3, 8, 15, 16, 33, 64, 130),
    "d_v": (3, 1, 5, 8, 31, 32, 64),
    "batch_size": (2, 1, 3),
    "update_rule": _RULES,
    "scale": (None, 0.0, 0.25, 1.0, -0.7),
    "chunk_size": (None, 1, 16, 0, -1, 1 << 40),
    "type_S": ("", "float32", "float16", "bfloat16"),
    "decay_form": (0, 1),
    "beta_form": (0, 1),
    "decays": tuple(DECAYS),
    "betas": tuple(BETAS),
    "keys": ("unit", "alike", "positive", "one-hot", "free"),
    "numbers": ("usual", "usual", "integers"),
}
"""Values that cases combine."""

ONNXRUNTIME_AXES: Mapping[str, Sequence[Any]] = {
    "query_sharing": (1, 2, 3),
    "key_sharing": (1, 2, 3),
    "unused": ("", "unused-decay", "unused-beta", "unused-both"),
}
"""Additional values for cases of onnxruntime's operator."""

ONNXRUNTIME_SMOKE = (
    _row(query_sharing=2, group=1, kv_num_heads=4),
    _row(query_sharing=2, group=1, kv_num_heads=4, key_sharing=2, d_k=16, d_v=32, seq_length=17),
    _row(key_sharing=3, kv_num_heads=3),
    _row(update_rule="linear", unused="unused-both", decays="strong"),
    _row(update_rule="delta", unused="unused-decay"),
    _row(update_rule="gated", unused="unused-beta"),
)
"""Additional ``smoke`` cases of onnxruntime's operator."""
