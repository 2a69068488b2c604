"""The family of LinearAttention's cases."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ....reference import Node, resolve
from ...simple.family import SimpleFamily
from ...specs.family import register
from .spec import LinearAttentionSpec, OnnxruntimeLinearAttentionSpec, draw
from .violations import VIOLATIONS

Array = NDArray[Any]

_HEAVY = 1 << 18
"""Multiplications of one step's state times steps, above which the sizes of a case are reduced."""

_LONG = 3
"""Number of steps above which keys have norm 1 under a delta rule; otherwise the state grows without end."""


class LinearAttentionFamily(SimpleFamily):
    """Cases of LinearAttention."""

    operators = ("LinearAttention",)
    spec: type[LinearAttentionSpec] = LinearAttentionSpec
    axes: Mapping[str, Sequence[Any]] = MappingProxyType(
        {
            # Lengths about 1, and below, at and above chunks of 16, 64 and 128.
            "seq_length": (5, 1, 2, 3, 15, 16, 17, 63, 64, 65, 128, 130, 200),
            "kv_num_heads": (2, 1, 3),
            # Widths in and outside blocks of 4, 8, 16, 32 and 64.
            "d_k": (4, 1, 3, 8, 15, 16, 33, 64, 130),
            "d_v": (3, 1, 5, 8, 31, 32, 64),
            "batch_size": (2, 1, 3),
        }
    )
    carried = MappingProxyType({"past_state": "present_state"})
    sequence = "seq_length"
    forbidden = VIOLATIONS

    def legal(self, spec: Any) -> Any:
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
    """Return the case with smaller sizes if it would take long. Sizes of models are kept."""

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
