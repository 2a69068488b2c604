"""Small models for tests: one recurrent node and its surrounding graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxspec.conformance.checking.check import check_model
from onnxspec.reference import CELLS, operator_version

T, N, I, H = 4, 2, 3, 5


def sizes_of(op: str, directions: int = 1) -> dict[str, tuple[int, ...]]:
    """Return the shape of each formal input."""
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


def recurrent(
    op: str,
    inputs: Sequence[str] = ("X", "W", "R"),
    name: str = "rnn",
    outputs: Sequence[str] = ("Y",),
    **attributes: Any,
) -> NodeProto:
    return helper.make_node(op, list(inputs), list(outputs), name=name, **{"hidden_size": H, **attributes})


def value(name: str, shape: Sequence[int | str | None] | None, kind: int = TensorProto.FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)


def branch(nodes: Sequence[NodeProto], output: str) -> onnx.GraphProto:
    """Return a graph without inputs, for an If."""
    return helper.make_graph(list(nodes), "inner", [], [value(output, None)])


SAME = branch([helper.make_node("Identity", ["X"], ["same"])], "same")


def choice(then: onnx.GraphProto, other: onnx.GraphProto = SAME, name: str = "If", output: str = "Y") -> NodeProto:
    """Return an If on c."""
    return helper.make_node("If", ["c"], [output], name=name, then_branch=then, else_branch=other)


def scan(nodes: Sequence[NodeProto], output: str = "Y") -> NodeProto:
    """Return a Scan that runs nodes on each x of Xs."""
    body = helper.make_graph(list(nodes), "body", [value("x", (T, N, I))], [value(output, None)])
    return helper.make_node("Scan", ["Xs"], ["Y"], name="scan", body=body, num_scan_inputs=1)


def loop(nodes: Sequence[NodeProto], carried: str, output: str = "Y") -> NodeProto:
    """Return a Loop of M iterations that runs nodes on x, which is X and then `carried` of the last iteration."""
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["go"], ["on"])],
        "body",
        [value("k", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), value("x", (T, N, I))],
        [value("on", (), TensorProto.BOOL), value(carried, None), value(output, None)],
    )
    return helper.make_node("Loop", ["M", "", "X"], ["last", "Y"], name="loop", body=body)


_KINDS = {"c": TensorProto.BOOL, "lens": TensorProto.INT32, "others": TensorProto.INT32}
"""Element types of inputs by their names here, where these are not float32."""


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
    kinds = {**_KINDS, **(kinds or {})}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [value(name, shape, kinds.get(name, TensorProto.FLOAT)) for name, shape in inputs.items()],
        [value(name, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opsets = [helper.make_opsetid(d, v) for d, v in {"": opset, **(domains or {})}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8, functions=list(functions))


def one_node(op: str, version: int, lengths: Sequence[int] | None = None, **attributes: Any) -> onnx.ModelProto:
    """Return a model of one node that is legal unless the arguments break it; `lengths` are a constant."""
    directions = 2 if attributes.get("direction") == "bidirectional" else 1
    weights = weights_of(op, directions)
    inputs, constants = ["X", "W", "R"], {name: weights[name] for name in ("W", "R")}
    if lengths is not None:
        inputs += ["", "sequence_lens"]
        constants["sequence_lens"] = np.array(lengths, np.int32)
    outputs = ["Y", "Y_h"] if operator_version(op, version).required_outputs else ["Y"]
    node = recurrent(op, inputs, outputs=outputs, **attributes)
    return model_of([node], {"X": (T, N, I)}, constants, version)


def assert_no_internal_error(model: onnx.ModelProto) -> None:
    """Assert that a model with any form of nodes around /rnn is checked."""
    checked = check_model(model)
    assert "/rnn" in dict(checked.nodes)
    assert not any(unchecked.internal_error for unchecked in checked.unchecked), checked.unchecked


def of_quark(domain: str, prefix: str) -> onnx.ModelProto:
    """Return an ExtendedLSTM as AMD Quark writes it: with its own operators before each input and after Y."""
    weights, scale = weights_of("LSTM", 2), np.float32(0.0003)
    names = (f"{prefix}QuantizeLinear", f"{prefix}DequantizeLinear")
    quantize, dequantize = (partial(helper.make_node, name, domain=domain) for name in names)
    held = {"scale": np.array(scale), "zero": np.array(32768, np.uint16)}
    held |= {n: (np.rint(weights[n] / scale) + 32768).astype(np.uint16) for n in "WRB"}
    attributes = {
        f"{n}_{part}": value for n in "xwrby" for part, value in (("scale", float(scale)), ("zero_point", 32768))
    }
    nodes = [
        quantize(["X", "scale", "zero"], ["X_levels"]),
        dequantize(["X_levels", "scale", "zero"], ["X_number"]),
        *(dequantize([name, "scale", "zero"], [f"{name}_number"]) for name in "WRB"),
        recurrent(f"{prefix}LSTM", [f"{name}_number" for name in "XWRB"], direction="bidirectional", **attributes),
        quantize(["Y", "scale", "zero"], ["Y_levels"]),
        dequantize(["Y_levels", "scale", "zero"], ["back"]),
    ]
    nodes[5].domain = domain
    return model_of(nodes, {"X": (T, 1, I)}, held, 17, outputs=("back",), domains={domain: 1})
