"""Tests that kernels of LinearAttention with deliberate errors are outside the bounds, and so is every fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    resolve,
    run_fault,
)
from onnxspec.reference.operators.linear_attention.recurrence import Attention

from .honest import KERNELS, Head, kernel
from .nodes import draw
from .test_linear_attention_bounds import expected, ratio

Array = NDArray[Any]

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


def test_a_node_is_computed_and_bounded_by_the_operator() -> None:
    attention = draw(21, type="float16", state_type="float32", past=True, T=5, rule="gated_delta")
    node, inputs = as_node(attention)
    returned = KERNELS["fused"](attention)
    for expectation in expect(node, inputs, returned):
        assert ratio(expectation.number, returned[expectation.output]) <= 1
    assert resolve(node, inputs).dtype_of("present_state") == np.float32  # type: ignore[attr-defined]
    np.testing.assert_array_equal(evaluate(node, inputs)["output"], attention.run()["output"])


def _undecayed(h: Head) -> None:
    """Correct by the state before its decay in the delta rule."""
    for t in range(h.T):
        w = h.b[t] * (h.v[t] - h.k[t] @ h.S)
        h.S = np.exp(h.g[t])[:, None] * h.S + np.outer(h.k[t], w)
        h.o[:, t] = h.scale * (h.q[:, t] @ h.S)


def _read_before(h: Head) -> None:
    for t in range(h.T):
        state = np.exp(h.g[t])[:, None] * h.S
        h.o[:, t] = h.scale * (h.q[:, t] @ state)
        h.S = state + np.outer(h.k[t], h.b[t] * (h.v[t] - h.k[t] @ state))


def _restarted(h: Head, length: int = 64) -> None:
    for t in range(h.T):
        state = np.exp(h.g[t])[:, None] * (h.S * np.float32(t % length > 0 or t == 0))
        h.S = state + np.outer(h.k[t], h.b[t] * (h.v[t] - h.k[t] @ state))
        h.o[:, t] = h.scale * (h.q[:, t] @ h.S)


WRONG: Mapping[str, Callable[[Head], None]] = {"undecayed": _undecayed, "before": _read_before, "restart": _restarted}


@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("name", "T"), [("undecayed", 1), ("undecayed", 3), ("before", 3), ("restart", 70)])
def test_wrong_kernels_are_outside_the_bounds(name: str, T: int, type: str) -> None:
    decay = "mild" if name == "restart" else "strong"
    attention = draw(31, T=T, rule="gated_delta", decay=decay, type=type, state_type="float32", past=True)
    returned = kernel(WRONG[name])(attention)
    assert max(ratio(number, returned[output]) for output, number in expected(attention).items()) > 8


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
            returned = run_fault(faults[id], node, inputs)
            if max(ratio(number, returned[output]) for output, number in numbers.items()) > 8:
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
