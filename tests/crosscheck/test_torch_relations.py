"""The reference against PyTorch on drawn cases: those whose meaning torch.nn.LSTM, GRU and RNN share.

PyTorch's GRU is ONNX's with linear_before_reset; its RNN has tanh and ReLU; its LSTM has neither peepholes nor clip. As
everywhere in this folder its absence is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, strategies
from onnxspec.cases.specs.model import inputs_of
from onnxspec.reference import CELLS, evaluate

try:
    import torch
except ImportError as error:
    raise ImportError("tests/crosscheck needs PyTorch: run it as `tox -e crosscheck`") from error

torch.set_num_threads(1)  # nothing here is large enough for more

Arrays = Mapping[str, NDArray[Any]]

# Both sides work in float64; data is of ordinary size, or large enough to saturate.
RELATIVE = 1e-11

# The gate blocks of PyTorch by ONNX's letters: (i, f, g, o) for LSTM, (r, z, n) for GRU.
TORCH_GATES = {"LSTM": "ifco", "GRU": "rzh", "RNN": "i"}
MODULES = {"LSTM": torch.nn.LSTM, "GRU": torch.nn.GRU, "RNN": torch.nn.RNN}

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


def computed(spec: CaseSpec, inputs: Arrays) -> dict[str, NDArray[Any]]:
    """All outputs, in layout 0, by PyTorch; of a reverse node as the second half of a bidirectional one."""
    tensors = {n: a.astype(np.float64) for n, a in inputs.items() if n != "sequence_lens"}
    if spec.layout:
        tensors = {n: a.swapaxes(0, 1) if n == "X" or n.startswith("initial") else a for n, a in tensors.items()}
    T, N, I = tensors["X"].shape
    H, gates = spec.H, CELLS[spec.op].gates
    reverse = spec.direction == "reverse"
    if reverse:  # other numbers stand in the forward half, so that a mixed-up half is seen
        tensors = {n: a if n == "X" else np.concatenate([a[..., ::-1] / 2, a]) for n, a in tensors.items()}
    D = tensors["W"].shape[0]
    options: dict[str, Any] = {"bidirectional": D == 2, "bias": "B" in tensors, "dtype": torch.float64}
    if spec.op == "RNN" and spec.activations:
        options["nonlinearity"] = spec.activations[0].lower()
    module = MODULES[spec.op](I, H, **options)

    def blocks(array: NDArray[Any]) -> torch.Tensor:
        by_gate = dict(zip(gates, np.split(array, len(gates)), strict=True))
        return torch.from_numpy(np.concatenate([by_gate[gate] for gate in TORCH_GATES[spec.op]]))

    with torch.no_grad():
        for d in range(D):
            parameters = {"weight_ih": tensors["W"][d], "weight_hh": tensors["R"][d]}
            if "B" in tensors:
                parameters["bias_ih"], parameters["bias_hh"] = np.split(tensors["B"][d], 2)
            for name, value in parameters.items():
                getattr(module, f"{name}_l0{'_reverse' if d else ''}").copy_(blocks(value))
        names = ["h", *CELLS[spec.op].inner]
        states = [torch.from_numpy(tensors.get(f"initial_{n}", np.zeros((D, N, H))).copy()) for n in names]
        x: Any = torch.from_numpy(tensors["X"].copy())
        lengths = inputs.get("sequence_lens")
        if lengths is not None:
            counts = torch.from_numpy(lengths.astype(np.int64))
            x = torch.nn.utils.rnn.pack_padded_sequence(x, counts, enforce_sorted=False)
        y, last = module(x, tuple(states) if len(states) > 1 else states[0])
        if lengths is not None:
            y, _ = torch.nn.utils.rnn.pad_packed_sequence(y, total_length=T)
    outputs = {"Y": y.numpy().reshape(T, N, D, H).swapaxes(1, 2)}
    for name, state in zip(names, last if len(states) > 1 else [last], strict=True):
        outputs[f"Y_{name}"] = state.numpy()
    if reverse:
        outputs = {n: a[:, 1:] if n == "Y" else a[1:] for n, a in outputs.items()}
    return outputs


@pytest.mark.parametrize("op", sorted(BY_OPERATOR))
def test_the_reference_is_pytorch_where_they_mean_the_same(op: str) -> None:
    strategy = strategies.operator_cases(op, max_steps=8, max_rows=5, max_inputs=12, max_size=16, **BY_OPERATOR[op])

    @settings(max_examples=120, derandomize=True, database=None, deadline=None)
    @given(strategy)
    def check(spec: CaseSpec) -> None:
        # A bidirectional module has one function for both directions.
        assume(len(set(spec.activations or ("Tanh",))) == 1)
        inputs = inputs_of(spec)
        expected = computed(spec, inputs)
        for name, value in evaluate(spec.node, inputs).items():
            if spec.layout:
                value = value.transpose(1, 2, 0, 3) if name == "Y" else value.swapaxes(0, 1)
            np.testing.assert_allclose(value, expected[name], rtol=RELATIVE, atol=RELATIVE, err_msg=name)

    check()
