"""Tests of LinearAttention: bounds hold for every conforming kernel, and for no wrong one and no fault."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import (
    FAULTS,
    Node,
    evaluate,
    expect,
    faults_of,
    operator_names,
    operator_of,
    run_fault,
)
from onnxspec.reference.numbers.bounded import Bounded
from onnxspec.reference.operators.linear_attention.recurrence import RULES, Attention

from .honest import KERNELS, tensor_cores
from .loops import by_loops
from .nodes import draw, draw_exact

Array = NDArray[Any]
TYPES = (
    ("float32", "float32"),
    ("float16", "float32"),
    ("float16", "float16"),
    ("bfloat16", "bfloat16"),
    ("float32", "float16"),
)

pytestmark = pytest.mark.skipif("LinearAttention" not in operator_names(), reason="the installed onnx lacks its schema")


def as_node(attention: Attention) -> tuple[Node, dict[str, Array]]:
    """Return the node of a drawn one, and its inputs."""
    attributes = {
        "q_num_heads": attention.q_num_heads,
        "kv_num_heads": attention.kv_num_heads,
        "update_rule": attention.update_rule,
        "scale": attention.scale,
    }
    names = ("query", "key", "value", "past_state", "decay", "beta")
    inputs = {name: array for name in names if (array := getattr(attention, name)) is not None}
    return Node("LinearAttention", 27, attributes, ("output", "present_state")), inputs


def expected(attention: Attention, accuracy: str = "standard") -> Mapping[str, Bounded]:
    """Return both outputs of a node, with bounds."""
    return {e.output: e.number for e in expect(*as_node(attention), {}, accuracy)}


def worst(numbers: Mapping[str, Bounded], returned: Mapping[str, Array]) -> float:
    """Return the largest error as a share of the bound; with a bound of 0, any error is infinite."""
    shares = []
    for output, number in numbers.items():
        error = np.abs(returned[output].astype(np.float64) - number.value)
        share = np.where(error == 0, 0.0, error / np.where(number.radius > 0, number.radius, 1e-300))
        share = share if number.doubt is None else share[~number.doubt]
        shares.append(np.where(np.isnan(share), np.inf, share).max(initial=0))
    return float(max(shares))


DRAWN = [(seed, *TYPES[0]) for seed in range(24)] + [(100 + seed, *TYPES[1 + seed % 4]) for seed in range(16)]
"""Seeds with their types."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "type", "state_type"), DRAWN)
def test_honest_kernels_are_within_the_bound(seed: int, type: str, state_type: str) -> None:
    node = draw(seed, type=type, state_type=state_type)
    numbers = expected(node)
    allowed = 0.5 if type == state_type == "float32" else 1.0
    for name, compute in KERNELS.items():
        assert worst(numbers, compute(node)) <= allowed, name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(4))
def test_tensor_cores_are_right_in_a_class_of_their_own(seed: int, half: str, type: str) -> None:
    node = draw(200 + seed, type=type, state_type=type)
    numbers = expected(node, {"float16": "f16-math", "bfloat16": "bf16-math"}[half])
    assert worst(numbers, tensor_cores(half)(node)) <= 1


@pytest.mark.parametrize("keys", ["alike", "positive", "one-hot"])
@pytest.mark.parametrize("T", [64, 200])
def test_stable_inverses_are_within_the_bound_where_keys_are_alike(T: int, keys: str) -> None:
    node = draw(7, T=T, keys=keys, rule="gated_delta", betas="one", decay="zero", widths=(16, 8))
    numbers = expected(node)
    for compute in KERNELS.values():
        assert worst(numbers, compute(node)) <= 0.5


@pytest.mark.parametrize("T", [1, 2, 5])
@pytest.mark.parametrize("rule", ["delta", "gated_delta"])
def test_a_product_with_the_matrix_of_a_step_is_within_the_bound(T: int, rule: str) -> None:
    node = draw(2, T=T, widths=(128, 4), rule=rule, keys="alike", past=True)
    numbers = expected(node)
    for name in ("dense", "dense-reversed"):
        assert worst(numbers, KERNELS[name](node)) <= 0.5


@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rule", ["linear", "delta"])
@pytest.mark.parametrize("seed", range(6))
def test_exact_cases_have_no_error_in_any_kernel(seed: int, rule: str, type: str) -> None:
    node = draw_exact(seed, rule, type)
    numbers = expected(node)
    if type == "float32":
        assert not any(number.radius.any() for number in numbers.values())
    for name, compute in KERNELS.items():
        returned = compute(node)
        for output, number in numbers.items():
            exact = number.radius == 0
            assert (returned[output].astype(np.float64) == number.value)[exact].all(), name


@pytest.mark.parametrize(
    "change",
    [
        {"scale": 0.0},
        {"scale": 0.3},
        {"update_rule": "gated_delta"},
        {"beta": "half"},
        {"key": "two"},
        {"value": "fraction"},
        {"value": "large"},
    ],
)
def test_data_that_round_are_not_exact(change: dict[str, Any]) -> None:
    node = draw_exact(2)
    changed = {
        "half": lambda: node.beta * 0 + np.float32(0.5),
        "two": lambda: node.key + np.float32(1),
        "fraction": lambda: node.value + np.float32(0.25),
        "large": lambda: node.value * np.float32(1 << 20),
    }
    change = {name: changed[value]() if value in changed else value for name, value in change.items()}
    if "update_rule" in change:
        change["decay"] = np.zeros((*node.beta.shape[:2], node.kv_num_heads), np.float32)
    assert expected(replace(node, **change))["output"].radius.all()


def test_bounds_are_narrow() -> None:
    """The bound relative to the signal is the rounding alone at one step, and a ten-thousandth at 64 steps."""
    for T, share in ((1, 1e-4), (64, 1e-3)):
        node = draw(3, T=T, keys="normal", rule="gated_delta", decay="mild", betas="unit", widths=(16, 8), past=True)
        number = expected(node)["output"]
        assert np.median(number.radius) < share * np.median(np.abs(number.value))


@pytest.mark.parametrize("rule", RULES)
def test_equations_are_the_documents(rule: str) -> None:
    for seed in range(4):
        node = draw(300 + seed, T=3 + seed, rule=rule, widths=(5, 3), B=2, heads=(4, 2))
        output, present = by_loops(node)
        returned = evaluate(*as_node(node))
        for name, numbers in {"output": output, "present_state": present}.items():
            np.testing.assert_allclose(returned[name], numbers, rtol=1e-12, atol=1e-13)


def test_infinite_decays_are_in_doubt() -> None:
    node = draw(5, T=5, rule="gated", per_head=True, past=True)
    number = expected(replace(node, decay=np.full_like(node.decay, 90)))["output"]
    assert number.doubt is not None
    assert number.doubt[:, -1].all()
    assert np.isfinite(number.radius).all()


def test_empty_sequences_hand_the_state_on() -> None:
    node = draw(6, T=0, past=True)
    numbers = expected(node)
    assert numbers["output"].value.shape == (*node.query.shape[:2], node.reads * node.d_v)
    assert (numbers["present_state"].value == node.past_state).all()


def test_a_flushing_device_may_take_small_inputs_for_zero() -> None:
    node = draw(8, T=3, type="float16", state_type="float16", rule="gated_delta", past=True, decay="mild")
    tiny = replace(node, value=(node.value * 1e-5).astype(node.value.dtype))
    flushed = replace(tiny, value=np.where(np.abs(tiny.value) < 2.0**-14, 0, tiny.value)).run()
    assert worst(expected(tiny, "flushing"), flushed) <= 1 < worst(expected(tiny), flushed)


# Faults


def _drawn(index: int) -> Attention:
    """Return a node on which many faults show."""
    steps, heads = (1, 2, 5, 17, 66, 130)[index % 6], ((4, 2), (6, 3), (2, 2), (3, 1))[index % 4]
    widths = ((6, 6), (9, 10), (3, 5), (130, 5))[index % 4 if index % 7 else 3]
    return draw(index, B=2, T=steps, heads=heads, widths=widths, past=True)


def test_every_fault_of_the_numbers_is_outside_the_bounds_somewhere() -> None:
    """`prove` covers the few that need more than one run, or special data."""
    faults = {
        fault.id: fault
        for fault in faults_of("LinearAttention", 27)
        if not fault.accepts and "float32" in fault.types and not fault.topic.startswith("session.")
    }
    elsewhere = {
        "linearattention.delta.keys-normalized",
        "linearattention.decay.bounded-by-10",
        "linearattention.scale.zero",
        "linearattention.output.of-another-type",
        "linearattention.present-state.of-another-type",
    }
    left = set(faults) - elsewhere
    for index in range(40):
        attention = _drawn(index)
        node, inputs = as_node(attention)
        numbers = expected(attention)
        for id in sorted(left):
            if worst(numbers, run_fault(faults[id], node, inputs)) > 8:
                left.discard(id)
    assert not left


def test_faults_leave_nodes_alone_on_which_they_do_not_bear() -> None:
    attention = draw(41, T=1, rule="linear", heads=(1, 1), B=1, past=False)
    node, inputs = as_node(attention)
    right = attention.run()
    for fault in faults_of("LinearAttention", 27):
        if ".decay." in fault.id or ".beta." in fault.id or ".chunks." in fault.id or ".past" in fault.id:
            if fault.topic.startswith("session."):
                continue
            returned = run_fault(fault, node, inputs)
            np.testing.assert_array_equal(returned["output"], right["output"].astype(np.float32), fault.id)


def test_two_faults_are_made_together() -> None:
    attention = draw(51, T=3, rule="gated", past=True, heads=(2, 2))
    node, inputs = as_node(attention)
    both = replace(attention, scale=1.0, decay=np.zeros_like(attention.decay)).run()["output"]
    chosen = [FAULTS["linearattention.decay.ignored"], FAULTS["linearattention.scale.no-default"]]
    node = replace(node, attributes={k: v for k, v in node.attributes.items() if k != "scale"})
    returned = operator_of("LinearAttention").answer(node, inputs, chosen)
    np.testing.assert_allclose(returned["output"], both.astype(np.float32), rtol=1e-6)
