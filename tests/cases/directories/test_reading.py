"""Tests of models of one node that are read back into the reference's inputs."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec.cases import build_case, features_of, profile
from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.cases.directories.reading import NotOneNode
from onnxspec.reference import IllegalNode, operator_version

from ...recurrent import recurrent_versions


def lstm(inputs: list[str], outputs: list[str], domain: str = "", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node("LSTM", inputs, outputs, domain=domain, hidden_size=2, **attributes)


def model_of(
    nodes: list[onnx.NodeProto],
    fed: tuple[str, ...] = ("x", "w", "r"),
    shown: tuple[str, ...] = ("y",),
    constants: tuple[onnx.TensorProto, ...] = (),
    opset: int = 14,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in fed],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in shown],
        list(constants),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(("op", "version"), list(recurrent_versions()))
def test_every_model_of_ours_is_read_back(op: str, version: int) -> None:
    for spec in profile("smoke", op, version):
        case = build_case(spec)
        for trial in case.trials:
            read = read_model(trial.model)
            assert (read.node.op_type, read.node.since_version) == (op, version)
            assert read.node.outputs == trial.node.outputs == tuple(read.outputs)
            assert read.node.attributes.keys() == trial.node.attributes.keys()
            bound, expected = read.bind(trial.feeds[-1].fed), trial.feeds[-1].inputs
            assert bound.keys() == expected.keys()
            for name, array in bound.items():
                assert (array.dtype, array.tobytes()) == (expected[name].dtype, expected[name].tobytes())


def test_an_operator_by_its_former_name_is_the_same_operator() -> None:
    old = next(spec for spec in profile("core", "ExtendedLSTM", 1) if "old-domain" in features_of(spec))
    trial = build_case(old).trial
    assert onnx.load_model_from_string(trial.model).graph.node[0].op_type == "VitisLSTM"
    node = read_model(trial.model).node
    assert (node.domain, node.op_type, node.since_version) == ("com.amd.quark", "ExtendedLSTM", 1)


@pytest.mark.parametrize(
    ("opset", "version"), [(1, 1), (6, 1), (7, 7), (13, 7), (14, 14), (21, 14), (22, 22), (99, 22)]
)
def test_an_opset_means_the_newest_version_that_it_has(opset: int, version: int) -> None:
    read = read_model(model_of([lstm(["x", "w", "r"], ["y"])], opset=opset))
    assert read.node.operator == operator_version("LSTM", version)


def test_names_and_placeholders() -> None:
    node = lstm(
        ["x", "w", "r", "", "", "h"], ["", "last", "cell"], domain="ai.onnx", activations=["Relu", "Tanh", "Tanh"]
    )
    read = read_model(model_of([node], ("h", "x", "w", "r"), ("cell", "last")))
    assert read.inputs == {"X": "x", "W": "w", "R": "r", "initial_h": "h"}
    # In the graph's order, in which a runtime returns them.
    assert list(read.outputs.items()) == [("Y_c", "cell"), ("Y_h", "last")]
    assert read.node.outputs == ("Y_c", "Y_h")
    assert read.node.attributes == {"hidden_size": 2, "activations": ["Relu", "Tanh", "Tanh"]}


def test_an_output_that_the_graph_does_not_show_is_not_asked_for() -> None:
    read = read_model(model_of([lstm(["x", "w", "r"], ["y", "h"])]))
    assert read.outputs == {"Y": "y"}


def test_constants_of_every_kind() -> None:
    weight = np.arange(8, dtype=np.float32).reshape(1, 8, 1)
    half = TensorProto(name="r", data_type=TensorProto.BFLOAT16, dims=(1, 8, 2))
    half.raw_data = weight.repeat(2, -1).astype(ml_dtypes.bfloat16).tobytes()
    constant = helper.make_node("Constant", [], ["b"], value=numpy_helper.from_array(weight.reshape(1, 8).repeat(2, 1)))
    node = lstm(["x", "w", "r", "b"], ["y"])
    read = read_model(model_of([constant, node], ("x", "w"), constants=(numpy_helper.from_array(weight, "w"), half)))
    assert set(read.constants) == {"W", "R", "B"}
    assert read.constants["R"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(read.constants["R"].astype(np.float32), weight.repeat(2, -1))
    # An initializer that is an input as well is the input's default.
    assert read.inputs == {"X": "x", "W": "w"}
    x = np.zeros((1, 1, 1), np.float32)
    np.testing.assert_array_equal(read.bind({"x": x})["W"], weight)
    np.testing.assert_array_equal(read.bind({"x": x, "w": -weight})["W"], -weight)
    with pytest.raises(KeyError, match="no array for x"):
        read.bind({})


OUTSIDE = TensorProto(name="w", data_type=1, dims=(1, 8, 1), data_location=TensorProto.EXTERNAL)
BROKEN = TensorProto(name="w", data_type=1, dims=(1, 8, 1), raw_data=b"123")
PLAIN = lstm(["x", "w", "r"], ["y"])


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (b"\xff\xff", "these bytes are no ONNX model"),
        (b"", "the graph holds no recurrent node"),
        (model_of([PLAIN, helper.make_node("Relu", ["y"], ["z"])]), "Relu is no operator that is judged here"),
        (model_of([helper.make_node("Relu", ["x"], ["y"])]), "Relu is no operator that is judged here"),
        (model_of([lstm(["x", "w", "r"], ["y"], domain="else.where")]), "else.where::LSTM is no operator"),
        (onnx.ModelProto(graph=model_of([PLAIN]).graph), "imports no opset of domain ''"),
        (model_of([PLAIN], ("x", "w")), "nothing in the graph gives 'r'"),
        (model_of([PLAIN], shown=("y", "x")), "the graph's output 'x' is no output of its recurrent nodes"),
        (model_of([PLAIN], shown=("y", "y")), "shows an output twice"),
        (model_of([lstm(["x", "w", "r", *("",) * 5, "q"], ["y"])]), "inputs are 8 at most, not 9"),
        (model_of([PLAIN], ("x", "r"), constants=(OUTSIDE,)), "'w' stands in another file"),
        (model_of([PLAIN], ("x", "r"), constants=(BROKEN,)), "'w' holds a tensor that is cut off"),
        (model_of([PLAIN, helper.make_node("Constant", [], ["w"], value_string="s")], ("x", "r")), "holds no tensor"),
    ],
)
def test_what_is_not_one_node(model: Any, message: str) -> None:
    with pytest.raises(NotOneNode, match=message) as caught:
        read_model(model)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("attributes", [{"layuot": 1}, {"clip": 1}, {"output_sequence": 1}])
def test_attributes_that_the_version_does_not_define(attributes: dict[str, Any]) -> None:
    with pytest.raises(IllegalNode):
        read_model(model_of([lstm(["x", "w", "r"], ["y"], **attributes)]))
