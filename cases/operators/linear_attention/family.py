"""The family of LinearAttention's cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ....reference import Node, resolve
from ...simple.family import SimpleFamily
from ...specs.family import register
from .spec import BETAS, DECAYS, LinearAttentionSpec, OnnxruntimeLinearAttentionSpec, draw
from .violations import VIOLATIONS

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


Array = NDArray[Any]

_HEAVY = 1 << 18
"""Multiplications of one step's state times steps, above which the sizes of a case are reduced."""

_LONG = 3
"""Number of steps above which keys have norm 1 under a delta rule; otherwise the state grows without end."""


class LinearAttentionFamily(SimpleFamily):
    """Cases of LinearAttention."""

    operators = ("LinearAttention",)
    spec: type[LinearAttentionSpec] = LinearAttentionSpec
    axes = AXES
    smoke: Sequence[Mapping[str, Any]] = SMOKE
    carried = MappingProxyType({"past_state": "present_state"})
    sequence = "seq_length"
    edges: Sequence[Mapping[str, Any]] = (*SMOKE, *EDGES)
    forbidden = VIOLATIONS

    def profile(self, name: str, op: str, version: int) -> Iterable[Any]:
        """Return the cases of a profile. ``smoke`` has additional rows, and one invalid model in eight."""
        cases = tuple(super().profile(name, op, version))
        if name != "smoke":
            return cases
        rows = {self.settled(replace(self.spec(), **row)) for row in self.smoke}
        core = tuple(super().profile("core", op, version))
        chosen = (spec for spec in core if replace(spec, seed=0) in rows)
        broken = [spec for spec in core if spec.illegal][::8]
        return tuple(dict.fromkeys((*cases, *chosen, *broken)))

    def legal(self, spec: Any) -> Any:
        """Return the legal case nearest to a spec."""
        if spec.numbers == "integers":
            spec = _exact(spec)
        if not spec.gated:
            spec = replace(spec, decays="mild", decay_form=0)
        if not spec.delta:
            spec = replace(spec, betas="unit", beta_form=0)
        elif spec.keys == "free" and spec.seq_length > _LONG:
            spec = replace(spec, keys="unit")
        if "past_state" in spec.absent:
            # A state that starts at zero and stays there tests nothing.
            spec = replace(spec, type_S="", betas="unit" if spec.betas == "zero" else spec.betas)
        if spec.type_S == spec.type:
            spec = replace(spec, type_S="")
        return _lighter(spec)

    def draw(self, spec: Any, name: str, shape: tuple[int, ...], key: str) -> Array:
        """Return the numbers of an input in float64."""
        return draw(spec, name, shape, key)

    def node_features(self, node: Node, inputs: Mapping[str, Array]) -> frozenset[str]:
        """Return features of a node with its inputs, including heads, groups, steps and the shapes of decay."""
        features = set(super().node_features(node, inputs))
        queries, keys = (int(node.attributes[name]) for name in ("q_num_heads", "kv_num_heads"))
        batch, steps, _ = inputs["query"].shape
        decay, beta = inputs.get("decay"), inputs.get("beta")
        features_present = {
            "several-heads": max(queries, keys) > 1,
            "grouped": queries > keys,
            "several-steps": steps > 1,
            "several-rows": batch > 1,
            "decay-per-key": decay is not None and decay.shape[2] != keys,
            "beta-single": beta is not None and beta.shape[2] != keys,
            "long": steps > 64,
        }
        return frozenset(features | {feature for feature, is_there in features_present.items() if is_there})


def _exact(spec: LinearAttentionSpec) -> LinearAttentionSpec:
    """Return a case of small integers, without decay, which is never exact, and with a power of two as scale."""
    rule = {"gated": "linear", "gated_delta": "delta"}.get(spec.rule, spec.rule)
    scale = spec.scale if spec.scale in (0.25, 1.0) else 0.5
    return replace(
        spec,
        update_rule=rule,
        keys="one-hot" if rule == "delta" else "free",
        scale=scale,
        d_k=max(spec.d_k, 4),
        betas="unit",
    )


def _lighter(spec: LinearAttentionSpec) -> LinearAttentionSpec:
    """Return the case with smaller sizes if it would take long. Sizes of models are kept (`edges`)."""

    def work(one: LinearAttentionSpec) -> int:
        return max(one.seq_length, 1) * max(one.batch_size, 1) * one.q_num_heads * one.d_k * one.d_v

    if spec.kv_num_heads >= 16 or (spec.group == 1 and spec.d_k in (64, 272)):
        return spec
    for changes in ({"batch_size": 1}, {"group": 2}, {"group": 1}, {"kv_num_heads": 1}, {"d_v": 5}, {"d_k": 16}):
        if work(spec) <= _HEAVY:
            break
        lighter = {name: min(value, getattr(spec, name)) for name, value in changes.items()}
        spec = replace(spec, **lighter)
    return spec


class OnnxruntimeLinearAttentionFamily(LinearAttentionFamily):
    """Cases of LinearAttention of onnxruntime's contrib domain."""

    operators = ("com.microsoft::LinearAttention",)
    spec = OnnxruntimeLinearAttentionSpec
    axes = MappingProxyType({**AXES, **ONNXRUNTIME_AXES})
    smoke = (*SMOKE, *ONNXRUNTIME_SMOKE)
    edges = (*SMOKE, *ONNXRUNTIME_SMOKE, *EDGES)

    def legal(self, spec: Any) -> Any:
        """Return the legal case nearest to a spec: numbers of shared heads divide kv_num_heads."""
        least = math.lcm(spec.query_sharing, spec.key_sharing)
        if spec.query_sharing > 1:
            spec = replace(spec, group=1)
        if spec.kv_num_heads % least:
            spec = replace(spec, kv_num_heads=least)
        spec = super().legal(spec)
        if spec.kv_num_heads % least:
            spec = replace(spec, query_sharing=1, key_sharing=1)
        used = {"decay": spec.gated, "beta": spec.delta}
        unused = [name for name in used if not used[name] and spec.unused in (f"unused-{name}", "unused-both")]
        return replace(spec, unused="unused-both" if len(unused) == 2 else "".join(f"unused-{name}" for name in unused))

    def node_features(self, node: Node, inputs: Mapping[str, Array]) -> frozenset[str]:
        """Return features of a node with its inputs, including shared heads and unused inputs."""
        c: Any = resolve(node, inputs)
        queries, heads, keys = (c.sizes[name] for name in ("q_num_heads", "kv_num_heads", "k_num_heads"))
        rule = c.attributes["update_rule"]
        features_present = {
            "inverse-groups": queries < heads,
            "shared-keys": keys < heads,
            "unused-inputs": any(
                name in inputs and rule not in needed.values for name, needed in c.operator.rules.needed.items()
            ),
        }
        features = super().node_features(node, inputs)
        return features | {feature for feature, is_there in features_present.items() if is_there}


LINEAR_ATTENTION_FAMILY = register(LinearAttentionFamily())
ONNXRUNTIME_LINEAR_ATTENTION_FAMILY = register(OnnxruntimeLinearAttentionFamily())
