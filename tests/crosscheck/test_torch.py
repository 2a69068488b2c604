"""LSTM, GRU and RNN against torch.nn, in float64: drawn cases whose meaning both share.

PyTorch's GRU is ONNX's with linear_before_reset; the default form is compared where the two forms are the same. Its RNN
has tanh and ReLU; its LSTM has neither peepholes nor clip.

PyTorch is heavy and no dependency of this project: this folder runs in the tox environment ``crosscheck``, which
installs it. There its absence is an error and never a reason to skip.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, strategies
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import CELLS, Node, evaluate, versions_of

try:
    import torch
except ImportError as error:
    raise ImportError("tests/crosscheck needs PyTorch: run it as `tox -e crosscheck`") from error

torch.set_num_threads(1)  # nothing here is large enough for more

Arrays = dict[str, NDArray[Any]]

# Both sides work in float64; data is of ordinary size, or large enough to saturate.
RELATIVE = 1e-11

# The gate blocks of PyTorch by ONNX's letters: (i, f, g, o) for LSTM, (r, z, n) for GRU.
TORCH_GATES = {"LSTM": "ifco", "GRU": "rzh", "RNN": "i"}

SHARED: dict[str, Any] = {
    "clip": [None],
    "data": ["dense", "small", "large", "huge", "one-sign"],
    # PyTorch packs no row of length 0.
    "lengths": ["absent", "full", "short", "ragged"],
}
BY_OPERATOR: dict[str, dict[str, Any]] = {
    "LSTM": {"activations": [], "only": {**SHARED, "peepholes": [False], "input_forget": [None, 0]}},
    "GRU": {"activations": [], "only": {**SHARED, "linear_before_reset": [1, 2]}},
    "RNN": {"activations": ["Tanh", "Relu"], "only": SHARED},
}


def by_torch(node: Node, inputs: Arrays) -> Arrays:
    """Return all outputs of a node as PyTorch computes them."""
    tensors = {n: a.astype(np.float64) for n, a in inputs.items() if n != "sequence_lens"}
    layout, reverse = node.attributes.get("layout", 0), node.attributes.get("direction") == "reverse"
    if layout:
        tensors = {n: a.swapaxes(0, 1) if n == "X" or n.startswith("initial") else a for n, a in tensors.items()}
    if reverse:  # PyTorch has none: half of a bidirectional run, with other numbers in the forward half
        tensors = {n: a if n == "X" else np.concatenate([a[..., ::-1] / 2, a]) for n, a in tensors.items()}
    T, N, I = tensors["X"].shape
    D, _, H = tensors["R"].shape
    gates = CELLS[node.op_type].gates
    options: dict[str, Any] = {"bidirectional": D == 2, "bias": "B" in tensors, "dtype": torch.float64}
    if node.op_type == "RNN":
        options["nonlinearity"] = node.attributes.get("activations", ["Tanh"])[0].lower()
    module = getattr(torch.nn, node.op_type)(I, H, **options)

    def blocks(array: NDArray[Any]) -> torch.Tensor:
        by_gate = dict(zip(gates, np.split(array, len(gates)), strict=True))
        return torch.from_numpy(np.concatenate([by_gate[gate] for gate in TORCH_GATES[node.op_type]]))

    with torch.no_grad():
        for d in range(D):
            parameters = {"weight_ih": tensors["W"][d], "weight_hh": tensors["R"][d]}
            if "B" in tensors:
                parameters["bias_ih"], parameters["bias_hh"] = np.split(tensors["B"][d], 2)
            for name, value in parameters.items():
                getattr(module, f"{name}_l0{'_reverse' if d else ''}").copy_(blocks(value))
        # PyTorch takes all initial states or none.
        names = ["h", *CELLS[node.op_type].inner]
        states = [torch.from_numpy(tensors.get(f"initial_{n}", np.zeros((D, N, H))).copy()) for n in names]
        x: Any = torch.from_numpy(tensors["X"].copy())
        lengths = inputs.get("sequence_lens")
        if lengths is not None:
            counts = torch.from_numpy(lengths.astype(np.int64))
            x = torch.nn.utils.rnn.pack_padded_sequence(x, counts, enforce_sorted=False)
        y, last = module(x, tuple(states) if len(states) > 1 else states[0])
        if lengths is not None:
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=T)
    # PyTorch joins the directions in the last axis, [T, N, D*H]; ONNX has them before the batch, [T, D, N, H].
    outputs = {"Y": y.numpy().reshape(T, N, D, H).swapaxes(1, 2)}
    for name, state in zip(names, last if len(states) > 1 else [last], strict=True):
        outputs[f"Y_{name}"] = state.numpy()
    if reverse:
        outputs = {n: a[:, 1:] if n == "Y" else a[1:] for n, a in outputs.items()}
    if layout:
        outputs = {n: a.transpose(2, 0, 1, 3) if n == "Y" else a.swapaxes(0, 1) for n, a in outputs.items()}
    return outputs


def assert_equal(node: Node, inputs: Arrays, expected: Arrays) -> None:
    for name, value in evaluate(node, inputs).items():
        assert value.shape == expected[name].shape
        np.testing.assert_allclose(value, expected[name], rtol=RELATIVE, atol=RELATIVE, err_msg=name)


@pytest.mark.parametrize("op", sorted(BY_OPERATOR))
def test_the_reference_is_pytorch_where_they_mean_the_same(op: str) -> None:
    """The draws have every version, direction and layout, ragged lengths, and any optional inputs."""
    strategy = strategies.operator_cases(op, max_steps=12, max_rows=5, max_inputs=12, max_size=16, **BY_OPERATOR[op])

    @settings(max_examples=200, derandomize=True, database=None, deadline=None)
    @given(strategy)
    def check(spec: CaseSpec) -> None:
        # A bidirectional module has one function for both directions.
        assume(len(set(spec.activations or ("Tanh",))) == 1)
        inputs = dict(inputs_of(spec))
        assert_equal(spec.node, inputs, by_torch(spec.node, inputs))

    check()


def with_diagonal_rh(direction: str) -> Arrays:
    """Return inputs whose Rh is diagonal and whose Rbh is zero: (r (.) H) Rh^T is then r (.) (H Rh^T)."""
    sizes: dict[str, Any] = {"T": 5, "N": 3, "I": 3, "H": 4, "bias": True, "initial": "h", "lengths": "ragged"}
    made = inputs_of(CaseSpec("GRU", 14, "float64", direction=direction, **sizes))
    inputs = {name: array.copy() for name, array in made.items()}
    inputs["R"][:, 8:] *= np.eye(4)
    inputs["B"][:, 20:] = 0
    return inputs


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("version", versions_of("GRU"))
def test_the_default_form_where_both_are_the_same(version: int, direction: str) -> None:
    inputs = with_diagonal_rh(direction)
    attributes = {"hidden_size": 4, "direction": direction, **({"output_sequence": 1} if version < 7 else {})}
    for form in ({}, {"linear_before_reset": 0}) if version > 1 else ({},):
        node = Node("GRU", version, {**attributes, **form}, ("Y", "Y_h"))
        assert_equal(node, inputs, by_torch(node, inputs))


def test_the_default_form_does_not_touch_the_recurrent_bias() -> None:
    # By the default form Rbh is one more bias: PyTorch gets it as part of Wbh.
    inputs = with_diagonal_rh("forward")
    moved = {**inputs, "B": inputs["B"].copy()}
    inputs["B"][:, 20:] = [0.5, -0.25, 0.75, 1.0]
    moved["B"][:, 8:12] += inputs["B"][:, 20:]
    node = Node("GRU", 14, {"hidden_size": 4}, ("Y", "Y_h"))
    expected = by_torch(node, moved)
    assert_equal(node, inputs, expected)
    assert np.abs(by_torch(node, inputs)["Y"] - expected["Y"]).max() > 1e-3
