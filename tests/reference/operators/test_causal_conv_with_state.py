"""Tests of CausalConvWithState: values by hand, bounds that conforming kernels keep, and forbidden nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.reference import (
    FAULTS,
    FORMATS,
    IllegalNode,
    Node,
    compare,
    evaluate,
    expect,
    operator_names,
    resolve,
    run_fault,
)

pytestmark = pytest.mark.skipif(
    "CausalConvWithState" not in operator_names(), reason="the installed onnx lacks its schema"
)

Array = NDArray[Any]
BOTH = ("output", "present_state")


def node(**attributes: Any) -> Node:
    return Node("CausalConvWithState", 27, attributes, BOTH)


def tensors(
    type: str = "float32", N: int = 2, C: int = 3, L: int = 6, k: int = 4, without: tuple[str, ...] = (), seed: int = 0
) -> dict[str, Array]:
    generator = np.random.default_rng(seed)
    shapes = {"input": (N, C, L), "weight": (C, 1, k), "bias": (C,), "past_state": (N, C, k - 1)}
    dtype = FORMATS[type].dtype
    return {n: generator.normal(size=shape).astype(dtype) for n, shape in shapes.items() if n not in without}


def by_loops(inputs: dict[str, Array], activation: str = "none") -> dict[str, Array]:
    """Return the outputs by the document, one number at a time."""
    x, weight = (inputs[name].astype(np.float64) for name in ("input", "weight"))
    (N, C, L), k = x.shape, weight.shape[2]
    past = inputs.get("past_state", np.zeros((N, C, k - 1))).astype(np.float64)
    bias = inputs.get("bias", np.zeros(C)).astype(np.float64)
    output, state = np.zeros((N, C, L)), np.zeros((N, C, k - 1))
    for n in range(N):
        for c in range(C):
            line = [*past[n, c], *x[n, c]]
            for t in range(L):
                total = bias[c] + sum(weight[c, 0, j] * line[t + j] for j in range(k))
                output[n, c, t] = total if activation == "none" else total / (1 + np.exp(-total))
            state[n, c] = line[len(line) - (k - 1) :] if k > 1 else []
    return {"output": output, "present_state": state}


@pytest.mark.parametrize("activation", ["none", "silu", "swish"])
@pytest.mark.parametrize(("L", "k"), [(6, 4), (1, 4), (0, 4), (2, 5), (3, 1), (9, 2)])
@pytest.mark.parametrize("without", [(), ("bias",), ("past_state",), ("bias", "past_state")])
def test_values_are_those_of_the_document(L: int, k: int, without: tuple[str, ...], activation: str) -> None:
    inputs = tensors(L=L, k=k, without=without)
    values, must = evaluate(node(activation=activation), inputs), by_loops(inputs, activation)
    for name in BOTH:
        assert values[name].shape == must[name].shape
        assert np.allclose(values[name], must[name], rtol=1e-13, atol=1e-15)


def honest(inputs: dict[str, Array], type: str, activation: str, *, backwards: bool, stored: bool) -> dict[str, Array]:
    """Return the outputs of a kernel in float32, which may add backwards, and may store sums in the tensors' type."""
    dtype = FORMATS[type].dtype

    def store(array: Array) -> Array:
        return array.astype(dtype).astype(np.float32) if stored else array

    single = {name: array.astype(np.float32) for name, array in inputs.items()}
    x, weight = single["input"], single["weight"]
    k = weight.shape[2]
    line = np.concatenate([single["past_state"], x], axis=2)
    total = np.zeros_like(x)
    for j in range(k)[:: -1 if backwards else 1]:
        total = total + line[:, :, j : j + x.shape[2]] * weight[:, :, j].reshape(1, -1, 1)
    total = store(store(total) + single["bias"].reshape(1, -1, 1))
    if activation != "none":
        total = total * store(np.float32(1) / (np.float32(1) + np.exp(-total)))
    return {"output": total.astype(dtype), "present_state": line[:, :, x.shape[2] :].astype(dtype)}


@pytest.mark.parametrize("type", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_honest_kernels_are_within_the_bounds(type: str, activation: str) -> None:
    worst = 0.0
    for seed in range(40):
        inputs = tensors(type, C=5, L=9, k=1 + seed % 8, seed=seed)
        for backwards in (False, True):
            for stored in (False, True):
                got = honest(inputs, type, activation, backwards=backwards, stored=stored)
                for expectation in expect(node(activation=activation), inputs, got):
                    worst = max(worst, compare(expectation, got[expectation.output]).worst)
    assert worst <= 1
    assert worst > 0.05  # bounds that no kernel comes near to would prove nothing


def test_numbers_that_overflow_are_not_judged() -> None:
    inputs = tensors("float16") | {"input": np.full((2, 3, 6), 60000, np.float16)}
    (output, state) = expect(node(), inputs, {})
    assert output.number.doubt is not None
    assert output.number.doubt.any()
    assert state.number.doubt is None


def test_present_state_is_a_copy() -> None:
    (_, state) = expect(node(activation="silu"), tensors(), {})
    assert not state.number.radius.any()
    assert state.clause == "causalconvwithstate.present-state"


# Changed inputs: a shape, or a type that has changed, or None for a missing input.
@pytest.mark.parametrize(
    ("op", "attributes", "changed", "clause"),
    [
        ("CausalConvWithState", {"activation": "SILU"}, {}, "activation"),
        ("CausalConvWithState", {}, {"past_state": (2, 3, 4)}, "shapes"),
        ("CausalConvWithState", {}, {"past_state": (1, 3, 3)}, "shapes"),
        ("CausalConvWithState", {}, {"weight": (3, 2, 4)}, "shapes"),
        ("CausalConvWithState", {}, {"weight": (3, 4)}, "shapes"),
        ("CausalConvWithState", {}, {"bias": (4,)}, "shapes"),
        ("CausalConvWithState", {}, {"weight": None}, "inputs"),
        *(
            ("CausalConvWithState", {}, dict.fromkeys(names, type), "types")
            for type in ("float64", "int32")
            for names in (("input", "weight", "bias", "past_state"), ("bias",))
        ),
        ("com.microsoft::CausalConvWithState", {"dilation": 0}, {}, "dilation"),
        ("com.microsoft::CausalConvWithState", {"dilation": 2}, {}, "shapes"),
        ("com.microsoft::CausalConvWithState", {"channels_last": 1}, {}, "shapes"),
        ("com.microsoft::CausalConvWithState", {"dilation": "1"}, {}, "attributes"),
    ],
)
def test_what_the_documents_forbid_names_its_clause(
    op: str, attributes: dict[str, Any], changed: dict[str, Any], clause: str
) -> None:
    inputs: dict[str, Any] = tensors()
    for name, change in changed.items():
        made = np.ones(change, np.float32) if isinstance(change, tuple) else change
        inputs[name] = inputs[name].astype(made) if isinstance(made, str) else made
    made_node = dilated(**attributes) if op == DILATED else node(**attributes)
    with pytest.raises(IllegalNode) as raised:
        resolve(made_node, inputs)
    assert raised.value.clause == f"{op.lower().replace('::', '.')}.{clause}"


DILATED = "com.microsoft::CausalConvWithState"


def dilated(**attributes: Any) -> Node:
    return Node("CausalConvWithState", 1, attributes, BOTH, "com.microsoft")


@pytest.mark.parametrize("dilation", [1, 2, 3])
def test_dilated_weights_are_weights_with_zeros_between(dilation: int) -> None:
    inputs = tensors(k=3, without=("past_state",))
    spread = np.zeros((3, 1, 2 * dilation + 1), np.float32)
    spread[:, :, ::dilation] = inputs["weight"]
    inputs["past_state"] = np.random.default_rng(1).normal(size=(2, 3, 2 * dilation)).astype(np.float32)
    values, must = evaluate(dilated(dilation=dilation), inputs), by_loops({**inputs, "weight": spread})
    for name in BOTH:
        assert np.allclose(values[name], must[name], rtol=1e-13, atol=1e-15)


def test_channels_last_is_the_same_in_another_layout() -> None:
    inputs = tensors()
    turned = {n: a.swapaxes(1, 2) if n in ("input", "past_state") else a for n, a in inputs.items()}
    first, last = evaluate(dilated(), inputs), evaluate(dilated(channels_last=1), turned)
    for name in BOTH:
        assert np.array_equal(first[name], last[name].swapaxes(1, 2))
    radii = [e.number.radius for e in expect(dilated(channels_last=1), turned, {})]
    assert [radius.shape for radius in radii] == [(2, 6, 3), (2, 3, 3)]


def test_it_has_the_faults_of_the_operator_that_it_extends() -> None:
    fault = FAULTS["causalconvwithstate.kernel.flipped"]
    assert fault.applies(DILATED, 1)
    assert fault.clause(DILATED) == "com.microsoft.causalconvwithstate.equations"
    assert not FAULTS["com.microsoft.causalconvwithstate.dilation.ignored"].applies("CausalConvWithState", 27)


# Faults that are derived from the operator's form


def test_each_input_output_and_choice_has_its_faults() -> None:
    derived = {
        *(f"{name}.ignored" for name in ("bias", "past-state")),
        *(f"{name}.first-row" for name in ("input", "past-state")),
        *(f"{name}.{end}" for name in ("input", "weight", "bias", "past-state") for end in ("kept", "overwritten")),
        *(f"{n}.{end}" for n in ("output", "present-state") for end in ("zero", "shifted", "of-another-type")),
        *(f"activation.{end}" for end in ("silu-as-none", "swish-as-none", "none-as-silu")),
        *(f"accepts.{topic}" for topic in ("attributes", "inputs", "outputs", "types", "shapes", "activation")),
    }
    assert {f"causalconvwithstate.{end}" for end in derived} <= FAULTS.keys()


def with_fault(fault: str, inputs: dict[str, Array], memory: dict[str, Any] | None = None) -> Array:
    """Return the output of a node with silu by an implementation with a derived fault."""
    fault = f"causalconvwithstate.{fault}"
    return run_fault(FAULTS[fault], node(activation="silu"), inputs, memory=memory)["output"]


@pytest.mark.parametrize(
    ("fault", "right"),
    [
        ("bias.ignored", lambda inputs: by_loops({n: a for n, a in inputs.items() if n != "bias"}, "silu")),
        ("input.first-row", lambda inputs: by_loops({**inputs, "input": inputs["input"][[0, 0]]}, "silu")),
        ("activation.silu-as-none", by_loops),
        ("output.zero", lambda inputs: {"output": 0 * inputs["input"]}),
        ("output.shifted", lambda inputs: {"output": np.roll(by_loops(inputs, "silu")["output"], 1, -1)}),
    ],
)
def test_a_derived_fault_is_what_it_says(fault: str, right: Any) -> None:
    inputs = tensors()
    np.testing.assert_allclose(with_fault(fault, inputs), right(inputs)["output"], rtol=1e-5, atol=1e-6)


def test_derived_faults_of_types_and_memory() -> None:
    assert with_fault("output.of-another-type", tensors()).dtype == np.float16
    memory: dict[str, Any] = {}
    first, second = tensors(), tensors(seed=1)
    with_fault("weight.kept", first, memory)
    kept = by_loops({**second, "weight": first["weight"]}, "silu")["output"]
    np.testing.assert_allclose(with_fault("weight.kept", second, memory), kept, rtol=1e-5, atol=1e-6)
    right = by_loops(first, "silu")["output"]
    np.testing.assert_allclose(with_fault("input.overwritten", first), right, rtol=1e-5, atol=1e-6)
    assert not first["input"].any()
