"""Tests of the error bounds of LinearAttention: they hold for every conforming kernel, and for no wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference.numbers.accuracy import budget
from onnxspec.reference.numbers.bounded import Bounded
from onnxspec.reference.operators.linear_attention.bounds import bound, costs_of, returned_radius
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


def expected(node: Attention, accuracy: str = "standard") -> Mapping[str, Bounded]:
    """Return both outputs of a node, with bounds."""
    T = node.query.dtype.name
    S = T if node.past_state is None else node.past_state.dtype.name
    radii = bound(node, costs_of(accuracy, T))
    return {
        "output": _number(radii.output, radii.output_radius, accuracy, T),
        "present_state": _number(radii.state, radii.state_radius, accuracy, S),
    }


def _number(value: Array, radius: Array, accuracy: str, type: str) -> Bounded:
    radius = returned_radius(value, radius, accuracy, type)
    doubt = ~np.isfinite(radius)
    values = (np.where(doubt, 0.0, each) for each in (value, radius))
    return Bounded(*values, budget(accuracy, type), doubt if doubt.any() else None)


def ratio(number: Bounded, returned: Array) -> float:
    """Return the largest error as a share of the bound; with a bound of 0, any error is infinite."""
    error = np.abs(returned.astype(np.float64) - number.value)
    error = error if number.doubt is None else error[~number.doubt]
    radius = number.radius if number.doubt is None else number.radius[~number.doubt]
    shares = np.where(error == 0, 0.0, error / np.where(radius > 0, radius, 1e-300))
    return float(np.where(np.isnan(shares), np.inf, shares).max(initial=0))


DRAWN = [(seed, *TYPES[0]) for seed in range(24)] + [(100 + seed, *TYPES[1 + seed % 4]) for seed in range(16)]
"""Seeds with their types."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("seed", "type", "state_type"), DRAWN)
def test_honest_kernels_are_within_the_bound(seed: int, type: str, state_type: str) -> None:
    node = draw(seed, type=type, state_type=state_type)
    numbers = expected(node)
    allowed = 0.5 if type == state_type == "float32" else 1.0
    for name, kernel in KERNELS.items():
        returned = kernel(node)
        for output, number in numbers.items():
            assert ratio(number, returned[output]) <= allowed, (name, output)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("half", ["float16", "bfloat16"])
@pytest.mark.parametrize("seed", range(4))
def test_tensor_cores_are_right_in_a_class_of_their_own(seed: int, half: str, type: str) -> None:
    node = draw(200 + seed, type=type, state_type=type)
    numbers = expected(node, {"float16": "f16-math", "bfloat16": "bf16-math"}[half])
    returned = tensor_cores(half)(node)
    assert max(ratio(number, returned[output]) for output, number in numbers.items()) <= 1


@pytest.mark.parametrize("keys", ["alike", "positive", "one-hot"])
@pytest.mark.parametrize("T", [64, 200])
def test_stable_inverses_are_within_the_bound_where_keys_are_alike(T: int, keys: str) -> None:
    node = draw(7, T=T, keys=keys, rule="gated_delta", betas="one", decay="zero", widths=(16, 8))
    numbers = expected(node)
    for kernel in KERNELS.values():
        assert max(ratio(number, kernel(node)[output]) for output, number in numbers.items()) <= 0.5


@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("rule", ["linear", "delta"])
@pytest.mark.parametrize("seed", range(6))
def test_exact_cases_have_no_error_in_any_kernel(seed: int, rule: str, type: str) -> None:
    node = draw_exact(seed, rule, type)
    numbers = expected(node)
    if type == "float32":
        assert not any(number.radius.any() for number in numbers.values())
    for name, kernel in KERNELS.items():
        returned = kernel(node)
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
        returned = node.run()
        np.testing.assert_allclose(returned["output"], output, rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(returned["present_state"], present, rtol=1e-12, atol=1e-13)


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
    for output, number in expected(tiny, "flushing").items():
        assert ratio(number, flushed[output]) <= 1
    assert max(ratio(number, flushed[output]) for output, number in expected(tiny).items()) > 1
