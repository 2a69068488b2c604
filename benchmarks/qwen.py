"""Writer of a model of the Qwen3.5 kind, with random weights: layers of CausalConvWithState and LinearAttention.

    python -m benchmarks.qwen OUT.onnx [--layers 8] [--microsoft]

Sizes are those of the smallest models: hidden size 1024, 16 heads of 128 x 128, a convolution of 4 positions over 6144
channels. With ``--microsoft`` the nodes are onnxruntime's own, and 16 heads of query and key serve 32 of value.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

HIDDEN, HEADS, WIDTH, KERNEL = 1024, 16, 128, 4


@dataclass
class Graph:
    """Builder of a graph."""

    domain: str
    value_heads: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    inputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    outputs: list[onnx.ValueInfoProto] = field(default_factory=list)
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def node(self, op: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> str:
        """Add a node, named after its first output; return that name."""
        self.nodes.append(helper.make_node(op, inputs, outputs, name=outputs[0], **attributes))
        return outputs[0]

    def weight(self, name: str, array: NDArray[Any]) -> str:
        """Add an initializer; return its name."""
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def matrix(self, name: str, rows: int, columns: int) -> str:
        """Add a random matrix that preserves the magnitude of its factor; return its name."""
        array = self.random.normal(size=(rows, columns), scale=rows**-0.5)
        return self.weight(name, array.astype(np.float32))

    def state(self, name: str, shape: Sequence[Any]) -> tuple[str, str]:
        """Add a state: an input, and the output that takes its place; return both names."""
        for kind, values in (("past", self.inputs), ("present", self.outputs)):
            values.append(helper.make_tensor_value_info(f"{kind}.{name}", TensorProto.FLOAT, shape))
        return f"past.{name}", f"present.{name}"


def layer(g: Graph, number: int, x: str) -> str:
    """Add a layer, and return the name of its output for x (B, T, HIDDEN)."""
    at = f"layers.{number}."
    values = g.value_heads * WIDTH
    channels = 2 * HEADS * WIDTH + values
    normal = g.node("RMSNormalization", [x, g.weight(at + "norm", np.ones(HIDDEN, np.float32))], [at + "normal"])
    mixed = g.node("MatMul", [normal, g.matrix(at + "qkv.weight", HIDDEN, channels)], [at + "qkv"])
    first = g.node("Transpose", [mixed], [at + "channels_first"], perm=[0, 2, 1])
    past, present = g.state(at + "conv", ("batch", channels, KERNEL - 1))
    kernel = g.random.normal(size=(channels, 1, KERNEL), scale=0.5).astype(np.float32)
    inputs = [first, g.weight(at + "conv.weight", kernel), "", past]
    conv = g.node("CausalConvWithState", inputs, [at + "conv", present], activation="silu", domain=g.domain)
    last = g.node("Transpose", [conv], [at + "channels_last"], perm=[0, 2, 1])
    sizes = g.weight(at + "sizes", np.array([HEADS * WIDTH, HEADS * WIDTH, values]))
    query, key, value = (at + name for name in ("query", "key", "value"))
    g.node("Split", [last, sizes], [query, key, value], axis=2)
    heads = g.weight(at + "heads", np.array([0, 0, -1, WIDTH]))
    packed = g.weight(at + "packed", np.array([0, 0, HEADS * WIDTH]))
    unit = []
    for name in (query, key):
        split = g.node("Reshape", [name, heads], [name + ".heads"])
        scaled = g.node("LpNormalization", [split], [name + ".unit"], axis=3, p=2)
        unit.append(g.node("Reshape", [scaled, packed], [name + ".packed"]))
    steps = g.node("MatMul", [normal, g.matrix(at + "decay.weight", HIDDEN, g.value_heads)], [at + "steps"])
    decay = g.node("Neg", [g.node("Softplus", [steps], [at + "softplus"])], [at + "decay"])
    rates = g.node("MatMul", [normal, g.matrix(at + "beta.weight", HIDDEN, g.value_heads)], [at + "rates"])
    beta = g.node("Sigmoid", [rates], [at + "beta"])
    past, present = g.state(at + "attention", ("batch", g.value_heads, WIDTH, WIDTH))
    attended = g.node(
        "LinearAttention",
        [*unit, value, past, decay, beta],
        [at + "attention", present],
        domain=g.domain,
        q_num_heads=HEADS,
        kv_num_heads=g.value_heads,
        update_rule="gated_delta",
    )
    gate = g.node("MatMul", [normal, g.matrix(at + "gate.weight", HIDDEN, values)], [at + "gate"])
    gated = g.node("Mul", [attended, g.node("Sigmoid", [gate], [at + "opened"])], [at + "gated"])
    added = g.node("MatMul", [gated, g.matrix(at + "out.weight", values, HIDDEN)], [at + "out"])
    return g.node("Add", [x, added], [at + "x"])


def qwen(layers: int, microsoft: bool) -> onnx.ModelProto:
    g = Graph("com.microsoft" if microsoft else "", 2 * HEADS if microsoft else HEADS)
    g.inputs.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", "steps", HIDDEN)))
    x = "x"
    for number in range(layers):
        x = layer(g, number, x)
    g.outputs.insert(0, helper.make_tensor_value_info(x, TensorProto.FLOAT, ("batch", "steps", HIDDEN)))
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid("com.microsoft", 1)]
    graph = helper.make_graph(g.nodes, "qwen", g.inputs, g.outputs, g.weights)
    return helper.make_model(graph, opset_imports=opsets if microsoft else [helper.make_opsetid("", 27)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--microsoft", action="store_true")
    options = parser.parse_args()
    onnx.save(qwen(options.layers, options.microsoft), options.out)


if __name__ == "__main__":
    main()
