"""Tests of nodes: definitions of each version are accepted, all else is refused, and nothing is ignored."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxspec.reference import IllegalNode, Node, UnknownOperator, configure, evaluate

Inputs = dict[str, Any]
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def inputs(
    T: int = 2, N: int = 3, I: int = 4, H: int = 5, D: int = 1, dtype: Any = np.float32, gates: int = 4
) -> Inputs:
    draw = np.random.default_rng(0).normal
    return {
        "X": draw(size=(T, N, I)).astype(dtype),
        "W": draw(size=(D, gates * H, I)).astype(dtype),
        "R": draw(size=(D, gates * H, H)).astype(dtype),
    }


@pytest.mark.parametrize(
    ("op", "version", "attributes"),
    [
        *(("LSTM", version, {name: value}) for version, name, value in [
            (1, "layout", 0), (7, "layout", 1), (7, "output_sequence", 1), (14, "output_sequence", 0),
            (14, "linear_before_reset", 1), (22, "Direction", "forward"),
        ]),
        *(("GRU", version, {name: 0}) for version, name in [
            (1, "linear_before_reset"), (3, "layout"), (7, "layout"), (7, "output_sequence"), (14, "input_forget"),
        ]),
        *(("RNN", version, {name: 0}) for version, name in [
            (1, "layout"), (7, "output_sequence"), (14, "input_forget"), (14, "linear_before_reset"),
        ]),
    ],
)  # fmt: skip
def test_attributes_that_a_version_does_not_define_are_refused(op: str, version: int, attributes: Inputs) -> None:
    with pytest.raises(IllegalNode, match="defines no attribute"):
        Node(op, version, attributes, ("Y_h",))


# `tests/reference/documents/test_clauses.py` has one node of each topic, in every version.
@pytest.mark.parametrize(
    ("op", "attributes", "topic"),
    [
        ("GRU", {"direction": "foward"}, "direction"),
        ("GRU", {"activations": ["Sigmoid", "Tanh", "Tanh"]}, "activations"),
        ("GRU", {"activations": ["Sigmoid"]}, "activations"),
        ("GRU", {"activations": ["Sigmoid", "Tanh", "Sigmoid", "Tanh"]}, "activations"),
        ("GRU", {"activation_alpha": [1.0, 2.0, 3.0]}, "activation-alpha"),
        ("RNN", {"activations": ["Tanh", "Tanh"]}, "activations"),
        ("RNN", {"activation_beta": [1.0, 2.0]}, "activation-beta"),
        ("RNN", {"layout": 2}, "layout"),
        ("LSTM", {"activations": ["Sigmoid", "Tanh"]}, "activations"),
        ("LSTM", {"activations": ["Sigmoid", "Tanh", "Tanh"], "direction": "bidirectional"}, "shapes"),
        ("LSTM", {"activation_alpha": [1.0, 2.0, 3.0, 4.0]}, "activation-alpha"),
        ("LSTM", {"clip": float("nan")}, "clip"),
        ("LSTM", {"hidden_size": 4}, "hidden-size"),
    ],
)
def test_values_that_the_document_does_not_allow_are_refused(op: str, attributes: Inputs, topic: str) -> None:
    with pytest.raises(IllegalNode, match=f"{op}-14") as caught:
        configure(Node(op, 14, attributes), inputs(gates=GATES[op]))
    assert caught.value.clause == f"{op.lower()}.{topic}"


@pytest.mark.parametrize("op", ["GRU", "RNN"])
def test_there_is_no_cell_state(op: str) -> None:
    given = inputs(gates=GATES[op])
    for name, shape in {"initial_c": (1, 3, 5), "P": (1, 15)}.items():
        with pytest.raises(IllegalNode, match=f"no input '{name}' is defined"):
            evaluate(Node(op, 14), {**given, name: np.zeros(shape, np.float32)})
    with pytest.raises(IllegalNode, match="defines no output 'Y_c'"):
        Node(op, 14, {}, ("Y_c",))
    # clip has no cell output to bound
    assert configure(Node(op, 14, {"clip": 1.0}), given).open_questions == frozenset()


def test_an_output_that_a_version_demands_must_be_asked_for() -> None:
    with pytest.raises(IllegalNode, match="GRU-1 demands output Y_h") as caught:
        Node("GRU", 1, {}, ("Y", ""))
    assert caught.value.clause == "gru.outputs"


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("W", np.zeros((1, 20, 3), np.float32)),
        ("R", np.zeros((1, 16, 5), np.float32)),
        ("R", None),
        ("B", np.zeros((1, 20), np.float32)),
        ("P", np.zeros((1, 20), np.float32)),
        ("initial_h", np.zeros((3, 1, 5), np.float32)),
        ("initial_c", np.zeros((1, 3, 4), np.float32)),
        ("sequence_lens", np.zeros(2, np.int32)),
        ("sequence_lens", np.array([1, 2, 3], np.int32)),
        ("sequence_lens", np.array([1, 2, -1], np.int32)),
        ("sequence_lens", np.array([1, 2, 2], np.int64)),
        ("B", np.zeros((1, 40), np.float64)),
        ("Z", np.zeros((1, 40), np.float32)),
        ("X", np.zeros((2, 3), np.float32)),
    ],
)
def test_inputs_that_do_not_fit_are_refused(name: str, array: Any) -> None:
    with pytest.raises(IllegalNode, match=name):
        evaluate(Node("LSTM", 14), {**inputs(), name: array})


def test_bfloat16_comes_with_version_22() -> None:
    evaluate(Node("LSTM", 22), inputs(dtype=ml_dtypes.bfloat16))
    with pytest.raises(IllegalNode, match="not bfloat16"):
        evaluate(Node("LSTM", 14), inputs(dtype=ml_dtypes.bfloat16))


def test_operator_versions_are_exact() -> None:
    with pytest.raises(UnknownOperator, match="versions are 1, 7, 14, 22"):
        Node("LSTM", 8)
    with pytest.raises(UnknownOperator, match="there are: LSTM"):
        Node("Gru", 1)


def test_an_empty_string_keeps_the_place_of_an_absent_output() -> None:
    node = Node("LSTM", 14, {}, ("", "", "Y_c"))
    assert set(evaluate(node, inputs())) == {"Y_c"}
    with pytest.raises(IllegalNode, match="no output 'Y_x'"):
        Node("LSTM", 14, {}, ("Y_x",))


def test_none_stands_for_an_absent_input() -> None:
    node = Node("LSTM", 14)
    given = inputs()
    assert (evaluate(node, {**given, "B": None, "P": None})["Y"] == evaluate(node, given)["Y"]).all()


def test_a_node_cannot_be_changed() -> None:
    attributes = {"hidden_size": 5}
    node = Node("LSTM", 14, attributes)
    attributes["hidden_size"] = 6
    assert node.attributes["hidden_size"] == 5
    with pytest.raises(TypeError):
        node.attributes["hidden_size"] = 6  # type: ignore[index]
