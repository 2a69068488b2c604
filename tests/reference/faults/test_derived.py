"""Tests of faults that are derived from the form of an operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxspec.reference import FAULTS, Node, evaluate, operator_names, run_fault

pytestmark = pytest.mark.skipif(
    "CausalConvWithState" not in operator_names(), reason="the installed onnx lacks its schema"
)

PREFIX = "causalconvwithstate"
OUTPUTS = ("output", "present_state")


def node(**attributes: Any) -> Node:
    return Node("CausalConvWithState", 27, attributes, OUTPUTS)


def tensors(seed: int = 0) -> dict[str, Any]:
    generator = np.random.default_rng(seed)
    shapes = {"input": (2, 3, 6), "weight": (3, 1, 4), "bias": (3,), "past_state": (2, 3, 3)}
    return {name: generator.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_each_input_output_and_choice_has_its_faults() -> None:
    derived = {
        *(f"{name}.ignored" for name in ("bias", "past-state")),
        *(f"{name}.first-row" for name in ("input", "past-state")),
        *(f"{name}.{end}" for name in ("input", "weight", "bias", "past-state") for end in ("kept", "overwritten")),
        *(f"{n}.{end}" for n in ("output", "present-state") for end in ("zero", "shifted", "of-another-type")),
        *(f"activation.{end}" for end in ("silu-as-none", "swish-as-none", "none-as-silu")),
        *(f"accepts.{topic}" for topic in ("attributes", "inputs", "outputs", "types", "shapes", "activation")),
    }
    assert {f"{PREFIX}.{end}" for end in derived} <= FAULTS.keys()


def outputs(fault: str, inputs: dict[str, Any], memory: dict[str, Any] | None = None) -> dict[str, Any]:
    return dict(run_fault(FAULTS[f"{PREFIX}.{fault}"], node(activation="silu"), inputs, memory=memory))


def test_an_ignored_input_is_one_that_is_not_there() -> None:
    inputs = tensors()
    without = evaluate(node(activation="silu"), {name: array for name, array in inputs.items() if name != "bias"})[
        "output"
    ]
    assert np.allclose(outputs("bias.ignored", inputs)["output"], without)


def test_the_first_row_stands_for_all() -> None:
    got = outputs("input.first-row", tensors() | {"past_state": np.zeros((2, 3, 3), np.float32)})["output"]
    assert np.array_equal(got[0], got[1])


def test_outputs_are_zero_moved_on_or_of_another_type() -> None:
    right = evaluate(node(activation="silu"), tensors())["output"].astype(np.float32)
    assert not outputs("output.zero", tensors())["output"].any()
    assert np.array_equal(outputs("output.shifted", tensors())["output"], np.roll(right, 1, -1))
    assert outputs("output.of-another-type", tensors())["output"].dtype == np.float16


def test_a_value_is_taken_for_the_default() -> None:
    plain = evaluate(node(), tensors())["output"]
    assert np.allclose(outputs("activation.silu-as-none", tensors())["output"], plain)


def test_an_input_of_the_first_run_is_kept_in_its_session() -> None:
    memory: dict[str, Any] = {}
    first, second = tensors(), tensors(1)
    outputs("weight.kept", first, memory)
    must = evaluate(node(activation="silu"), {**second, "weight": first["weight"]})["output"]
    assert np.allclose(outputs("weight.kept", second, memory)["output"], must)


def test_the_callers_memory_is_overwritten_after_the_run() -> None:
    inputs = tensors()
    right = evaluate(node(activation="silu"), inputs)["output"]
    assert np.allclose(outputs("input.overwritten", inputs)["output"], right)
    assert not inputs["input"].any()
