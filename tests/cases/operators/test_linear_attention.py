"""Tests of the cases of LinearAttention: all can be built, invalid ones are invalid, and exact ones are exact."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import build_case
from onnxspec.cases.operators.linear_attention.family import (
    LINEAR_ATTENTION_FAMILY,
    ONNXRUNTIME_LINEAR_ATTENTION_FAMILY,
)
from onnxspec.cases.operators.linear_attention.spec import LinearAttentionSpec, OnnxruntimeLinearAttentionSpec
from onnxspec.reference import IllegalNode, Node, UnknownOperator, expect, operator_names, operator_of, resolve

OP = "LinearAttention"
OWN = "com.microsoft::LinearAttention"

pytestmark = pytest.mark.skipif("LinearAttention" not in operator_names(), reason="the installed onnx lacks its schema")


@pytest.fixture(scope="module")
def core() -> tuple[Any, ...]:
    return tuple(LINEAR_ATTENTION_FAMILY.profile("core", OP, 27))


def test_core_has_every_rule_and_session_and_invalid_models_of_many_kinds(core: tuple[Any, ...]) -> None:
    legal, broken = [spec for spec in core if not spec.illegal], [spec for spec in core if spec.illegal]
    assert min(Counter(spec.rule for spec in legal).values()) > 25
    assert {spec.session for spec in legal} >= {"one", "chain", "cut"}
    topics = {spec.illegal.partition(".")[0] for spec in broken}
    assert topics == {"attributes", "heads", "inputs", "outputs", "shapes", "types", "update-rule"}
    assert any(spec.dimensions == "all-symbolic" for spec in broken)


def test_cases_of_integers_have_no_radius(core: tuple[Any, ...]) -> None:
    exact = [spec for spec in core if spec.numbers == "integers" and not spec.illegal and spec.type == "float32"]
    assert len(exact) > 15
    for spec in exact:
        case = build_case(spec)
        for feed in case.trial.feeds:
            numbers = {e.output: e.number for e in expect(case.trial.node, feed.inputs, {})}
            if spec.type_S in ("", "float32"):
                assert not any(number.radius.any() for number in numbers.values()), spec.id


def test_cases_of_onnxruntimes_operator_go_together() -> None:
    own_core = ONNXRUNTIME_LINEAR_ATTENTION_FAMILY.profile("core", OWN, 1)
    legal = [spec for spec in own_core if not spec.illegal]
    assert all(ONNXRUNTIME_LINEAR_ATTENTION_FAMILY.goes_together(spec) for spec in legal)
    assert {spec.unused for spec in legal} == {"", "unused-decay", "unused-beta", "unused-both"}
    assert {(spec.query_sharing, spec.key_sharing) for spec in legal} >= {(1, 2), (2, 1), (2, 2), (3, 2)}
    broken = {spec.illegal for spec in own_core if spec.illegal}
    assert "heads.uneven" in broken
    assert not broken & {"heads.fewer-than-kv", "inputs.decay-with-linear", "shapes.key-of-one-head"}


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_inverse_groups_and_shared_keys_are_repeated_heads(rule: str) -> None:
    spec = OnnxruntimeLinearAttentionSpec(
        update_rule=rule, kv_num_heads=6, group=1, query_sharing=2, key_sharing=3, unused="unused-both"
    )
    inputs = dict(ONNXRUNTIME_LINEAR_ATTENTION_FAMILY.inputs(spec))
    assert {"decay", "beta"} <= inputs.keys()
    for name, times in {"query": 2, "key": 3}.items():
        heads = inputs[name].reshape(*inputs[name].shape[:2], -1, spec.d_k)
        inputs[name] = np.repeat(heads, times, axis=2).reshape(*inputs[name].shape[:2], -1)
    usual = LinearAttentionSpec(update_rule=rule, kv_num_heads=6, group=1)
    used = {name: inputs[name] for name in usual.given}
    expected = operator_of(OP).evaluate(usual.node, used)
    outputs = operator_of("LinearAttention", "com.microsoft").evaluate(
        spec.node, ONNXRUNTIME_LINEAR_ATTENTION_FAMILY.inputs(spec)
    )
    for name in ("output", "present_state"):
        np.testing.assert_array_equal(outputs[name], expected[name])


def test_heads_of_which_neither_is_a_multiple_are_illegal() -> None:
    spec = next(s for s in ONNXRUNTIME_LINEAR_ATTENTION_FAMILY.profile("core", OWN, 1) if s.illegal == "heads.uneven")
    trial = build_case(spec).trial
    with pytest.raises(IllegalNode, match="multiple of the other"):
        resolve(trial.node, trial.feeds[0].inputs)


def test_a_window_of_states_is_not_judged() -> None:
    spec = OnnxruntimeLinearAttentionSpec()
    node = Node("LinearAttention", 1, {**spec.node.attributes, "state_window": 2}, spec.node.outputs, "com.microsoft")
    with pytest.raises(UnknownOperator, match="state_window 2: only 0 is judged here"):
        resolve(node, ONNXRUNTIME_LINEAR_ATTENTION_FAMILY.inputs(spec))
