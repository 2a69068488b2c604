"""Small models that tests make: one recurrent node, and what stands around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxspec.reference import CELLS, operator_version

T, N, I, H = 4, 2, 3, 5


def sizes_of(op: str, directions: int = 1) -> dict[str, tuple[int, ...]]:
    """By formal input, its shape."""
    gates = len(CELLS[op].gates)
    return {
        "X": (T, N, I),
        "W": (directions, gates * H, I),
        "R": (directions, gates * H, H),
        "B": (directions, 2 * gates * H),
    }


def weights_of(op: str, directions: int = 1, seed: int = 0) -> dict[str, NDArray[np.float32]]:
    generator = np.random.default_rng(seed)
    return {
        name: generator.uniform(-0.5, 0.5, shape).astype(np.float32)
        for name, shape in sizes_of(op, directions).items()
        if name != "X"
    }


def recurrent(op: str, inputs: Sequence[str] = ("X", "W", "R"), name: str = "rnn", **attributes: Any) -> NodeProto:
    return helper.make_node(op, list(inputs), ["Y"], name=name, **{"hidden_size": H, **attributes})


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def model_of(
    nodes: Sequence[NodeProto],
    inputs: Mapping[str, Sequence[int | str | None] | None],
    constants: Mapping[str, NDArray[Any]],
    opset: int = 14,
    outputs: Sequence[str] = ("Y",),
    kinds: Mapping[str, int] | None = None,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [value(name, shape, (kinds or {}).get(name, TensorProto.FLOAT)) for name, shape in inputs.items()],
        [value(name, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid(d, v) for d, v in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def one_node(op: str, version: int, lengths: Sequence[int] | None = None, **attributes: Any) -> onnx.ModelProto:
    """A legal model of one node but for what is asked for; `lengths` are a constant."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = weights_of(op, directions)
    inputs, constants = ["X", "W", "R"], {name: weights[name] for name in ("W", "R")}
    if lengths is not None:
        inputs += ["", "sequence_lens"]
        constants["sequence_lens"] = np.array(lengths, np.int32)
    node = recurrent(op, inputs, **attributes)
    if operator_version(op, version).required_outputs:
        node.output.append("Y_h")
    return model_of([node], {"X": (T, N, I)}, constants, version)
