"""A model compared with results of PyTorch or Keras: right exports, and mistakes planted into them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, helper, numpy_helper

from onnxspec.conformance.comparing.comparison import Comparison, ComparisonError, compare

from ..miniatures import Finished

DATA = Path(__file__).with_name("data")
NAMES = sorted(path.stem for path in DATA.glob("*.onnx"))


def arrays(name: str, side: str) -> dict[str, Array]:
    with np.load(DATA / f"{name}.npz") as archive:
        return {key.removeprefix(f"{side}."): archive[key] for key in archive.files if key.startswith(f"{side}.")}


def compared(model: Path, name: str) -> Comparison:
    return compare(model, arrays(name, "in"), arrays(name, "out"))


@pytest.mark.parametrize("name", NAMES)
def test_right_models_are_confirmed(name: str) -> None:
    comparison = compared(DATA / f"{name}.onnx", name)
    assert comparison.agrees
    assert str(comparison).startswith("the model computes these results")
    assert all(tensor.difference < 1e-6 for tensor in comparison.tensors)


Spoil = Callable[[ModelProto, NodeProto], None]
Array = np.ndarray


def recurrent(model: ModelProto) -> list[NodeProto]:
    return [node for node in model.graph.node if node.op_type in ("LSTM", "GRU", "RNN")]


def returned(model: Path, fed: dict[str, Array]) -> dict[str, Array]:
    """Return the outputs of a model on onnxruntime, by name."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return dict(zip((output.name for output in session.get_outputs()), session.run(None, fed), strict=True))


def set_attribute(name: str, value: object) -> Spoil:
    def spoil(model: ModelProto, node: NodeProto) -> None:
        kept = [attribute for attribute in node.attribute if attribute.name != name]
        del node.attribute[:]
        node.attribute.extend([*kept, *([helper.make_attribute(name, value)] if value is not None else [])])

    return spoil


def change_inputs(*places: int, change: Callable[[Array], Array]) -> Spoil:
    """Return a function that replaces constant inputs of the node by changed ones."""

    def spoil(model: ModelProto, node: NodeProto) -> None:
        constants = {tensor.name: tensor for tensor in model.graph.initializer}
        constants |= {n.output[0]: n.attribute[0].t for n in model.graph.node if n.op_type == "Constant"}
        for place in places:
            array = np.ascontiguousarray(change(numpy_helper.to_array(constants[node.input[place]])))
            node.input[place] = f"{node.name or node.output[0]}_{place}_changed"
            model.graph.initializer.append(numpy_helper.from_array(array, node.input[place]))

    return spoil


def reorder(*order: int, places: tuple[int, ...] = (1, 2, 3), directions: slice = slice(None)) -> Spoil:
    """Return a function that reorders the blocks of W, R and B; of B in both halves."""

    def change(array: Array) -> Array:
        halves = 2 if array.ndim == 2 else 1
        blocks = array.reshape(len(array), halves, len(order), -1)[directions]
        changed = array.copy()
        changed[directions] = blocks[:, :, list(order)].reshape(changed[directions].shape)
        return changed

    return change_inputs(*places, change=change)


def both(*spoils: Spoil) -> Spoil:
    return lambda model, node: [spoil(model, node) for spoil in spoils][-1]


def connect(**inputs: int) -> Spoil:
    """Return a function that connects inputs with names, by `name=position`; a name of underscores is empty."""

    def spoil(model: ModelProto, node: NodeProto) -> None:
        for name, position in inputs.items():
            node.input[position] = name.strip("_")

    return spoil


def reshaped(array: Array) -> Array:
    """Reshape the framework's kernel instead of transposing it."""
    return np.ascontiguousarray(array.swapaxes(1, 2)).reshape(array.shape)


WIDER = change_inputs(1, change=lambda W: W * np.float32(1.5))
PYTORCH_ORDER = reorder(0, 2, 3, 1)
OF_PYTORCH = "in the order i, f, c, o (PyTorch's and Keras' order)"

MISTAKES: dict[str, tuple[str, Spoil, str]] = {
    "linear-before-reset": ("gru", set_attribute("linear_before_reset", 0), "linear_before_reset = 1"),
    "pytorch-gates-lstm": ("lstm", PYTORCH_ORDER, f"the blocks of W, R and B {OF_PYTORCH}"),
    "pytorch-gates-gru": (
        "gru", reorder(1, 0, 2), "the blocks of W, R and B in the order r, z, h (PyTorch's order)",
    ),
    "pytorch-gates-backward": (
        "lstm-bidirectional",
        reorder(0, 2, 3, 1, directions=slice(1, 2)),
        "the backward direction's blocks in the order i, f, c, o",
    ),
    "only-r-reordered": ("lstm", reorder(0, 2, 3, 1, places=(2,)), f"the blocks of R {OF_PYTORCH}"),
    "bias-halves": (
        "gru", change_inputs(3, change=lambda B: np.roll(B, 15, axis=1)), "the bias halves Wb and Rb exchanged",
    ),
    "forget-bias": (
        "lstm",
        change_inputs(3, change=lambda B: B + np.repeat(np.float32([0, 0, 1, 0, 0, 0, 0, 0]), 5)),
        "the bias of the forget gate lower by 1",
    ),
    "directions-exchanged": (
        "lstm-bidirectional",
        change_inputs(1, 2, 3, change=lambda array: array[::-1]),
        "the weights of the two directions exchanged",
    ),
    "direction": ("lstm", set_attribute("direction", "reverse"), "direction = forward"),
    "clip": ("lstm", set_attribute("clip", 0.2), "no clip"),
    "relu-lost": ("rnn", set_attribute("activations", None), "Relu in place of Tanh"),
    "hard-sigmoid": (
        "gru", set_attribute("activations", ["HardSigmoid", "Tanh"]), "the default activation functions",
    ),
    "input-forget": ("lstm", set_attribute("input_forget", 1), "input_forget = 0"),
    "recurrent-reshaped": ("lstm", change_inputs(2, change=reshaped), "R transposed from its values in order"),
    "recurrent-blocks-transposed": (
        "gru",
        change_inputs(2, change=lambda R: R.reshape(1, 3, 5, 5).swapaxes(2, 3).reshape(1, 15, 5)),
        "each gate's block of R transposed",
    ),
    "states-exchanged": ("lstm-states", connect(c0=5, h0=6), "initial_h and initial_c exchanged"),
    "cell-state-lost": ("lstm-states", connect(_=6), "initial_c from the model's input c0"),
    "states-lost": (
        "lstm-states",
        connect(_=5, __=6),
        "initial_h from the model's input h0 and initial_c from the model's input c0",
    ),
    "gates-beside-states": ("lstm-states", PYTORCH_ORDER, f"the blocks of W, R and B {OF_PYTORCH}"),
    "lengths-lost": ("gru-packed", connect(_=4), "sequence_lens from the model's input lengths"),
    "linear-before-reset-beside-lengths": (
        "gru-packed", set_attribute("linear_before_reset", 0), "linear_before_reset = 1",
    ),
    "kernel-of-keras-reshaped": (
        "keras-lstm", change_inputs(1, change=reshaped), "W transposed from its values in order",
    ),
    "hard-sigmoid-of-keras": (
        "keras-lstm-hard",
        set_attribute("activation_alpha", None),
        "HardSigmoid (alpha 1/6, beta 0.5) in place of HardSigmoid of the gates",
    ),
    "sigmoid-for-hard-sigmoid": (
        "keras-lstm-hard",
        both(set_attribute("activations", None), set_attribute("activation_alpha", None)),
        "HardSigmoid (alpha 1/6, beta 0.5) in place of Sigmoid of the gates",
    ),
    "reset-before": ("keras-gru-v1", set_attribute("linear_before_reset", 1), "linear_before_reset = 0"),
}  # fmt: skip


def spoiled(path: Path, name: str, spoil: Spoil, nodes: slice = slice(1)) -> Path:
    """Write a model with a mistake in its first recurrent node, or in others, and return its path."""
    model = onnx.load(DATA / f"{name}.onnx")
    for node in recurrent(model)[nodes]:
        spoil(model, node)
    onnx.save(model, path / "model.onnx")
    return path / "model.onnx"


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_planted_mistake_is_named(mistake: str, tmp_path: Path) -> None:
    name, spoil, message = MISTAKES[mistake]
    comparison = compared(spoiled(tmp_path, name, spoil), name)
    assert not comparison.agrees
    assert [message in match.words for match in comparison.matches] == [True], str(comparison)
    assert comparison.matches[0].difference < 1e-5
    assert str(comparison).startswith(f"the model computes other numbers; with {comparison.matches[0].words} it would")


@pytest.mark.parametrize(
    ("name", "fed", "words"),
    [
        ("lstm-states", {"h0": np.zeros((1, 3, 5), "f4"), "c0": np.zeros((1, 3, 5), "f4")},
         "initial_h and initial_c of zero at /layer/LSTM"),
        ("lstm-states", {"c0": np.zeros((1, 3, 5), "f4")}, "initial_c of zero at /layer/LSTM"),
        ("gru-packed", {"lengths": np.array([6, 6, 6])},
         "all steps of every row, without sequence_lens at /layer/GRU"),
    ],
)  # fmt: skip
def test_a_framework_that_ran_without_states_or_lengths_is_named(name: str, fed: dict[str, Array], words: str) -> None:
    path = DATA / f"{name}.onnx"
    results = returned(path, {**arrays(name, "in"), **fed})
    assert [match.words for match in compare(path, arrays(name, "in"), results).matches] == [words]


def test_all_changes_that_fit_are_named(tmp_path: Path) -> None:
    """The framework has no biases: Rb is 0 in the model, so that dropping Rb alone changes nothing."""
    results = returned(spoiled(tmp_path, "gru", change_inputs(3, change=np.zeros_like)), arrays("gru", "in"))
    spoil = change_inputs(3, change=lambda B: 0 * B + np.repeat(np.float32([0.5, 0]), B.shape[1] // 2))
    comparison = compare(spoiled(tmp_path, "gru", spoil), arrays("gru", "in"), results)
    matches = {match.words.removesuffix(" at /layer/GRU") for match in comparison.matches}
    assert matches == {"no bias", "Rb alone as the bias"}
    assert "with each of 2 single changes it would compute these results" in str(comparison)


@pytest.mark.parametrize("name", ["lstm-stacked", "lstm-stacked-dynamo"])
def test_the_same_mistake_in_two_layers_is_one_change(name: str, tmp_path: Path) -> None:
    (match,) = compared(spoiled(tmp_path, name, PYTORCH_ORDER, slice(None)), name).matches
    assert match.words.startswith("the blocks of W, R and B in the order i, f, c, o")
    assert " at " in match.words


def test_a_mistake_that_no_change_explains_is_not_named(tmp_path: Path) -> None:
    spoil = both(WIDER, set_attribute("linear_before_reset", 0))
    comparison = compared(spoiled(tmp_path, "gru", spoil), "gru")
    assert comparison.matches == ()
    assert "none of" in str(comparison)
    assert "give outputs of the recurrent nodes" in str(comparison)


def test_results_of_the_node_itself_tell_the_first_node_that_differs(tmp_path: Path) -> None:
    name = "gru-bidirectional"
    (node,) = recurrent(onnx.load(DATA / f"{name}.onnx"))
    results = {node.output[0]: arrays(name, "out")["output"]}
    path = spoiled(tmp_path, name, WIDER)
    assert compare(path, arrays(name, "in"), results).first == (node.name or node.output[0])


def test_layouts_of_frameworks_are_recognized() -> None:
    name = "gru-bidirectional"
    (node,) = recurrent(onnx.load(DATA / f"{name}.onnx"))
    Y, h = (arrays(name, "out")[key] for key in ("output", "h"))  # batch first, directions in the last axis of Y
    rows = len(Y)
    for tensor, array, layout in (
        (node.output[0], Y, "batch first, directions in the last axis"),
        (node.output[0], Y.swapaxes(0, 1), "directions in the last axis"),
        (node.output[1], h, ""),
        (node.output[1], h.swapaxes(0, 1), "batch first"),
        (node.output[1], h.swapaxes(0, 1).reshape(rows, -1), "directions in the last axis"),
        ("output", Y.swapaxes(0, 1), "first two axes exchanged"),
        ("output", Y[None], "without axes of one"),
    ):
        comparison = compare(DATA / f"{name}.onnx", arrays(name, "in"), {tensor: array})
        assert comparison.agrees
        assert comparison.tensors[0].layout == layout


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        ({"y": np.ones((3, 6, 4), "f4")}, {}, "the model has no input y; it has x"),
        ({}, {}, "no array is given for the model's input x"),
        (None, {}, "no results are given"),
        (None, {"nothing": np.ones(1, "f4")}, "computes no tensor named 'nothing'"),
        (None, {"output": np.ones((2, 2), "f4")}, "output of the results has shape (2, 2)"),
        (None, {"output": np.ones((3, 6, 5), "i4")}, "output of the results is int32"),
    ],
)
def test_arrays_that_do_not_fit_are_one_line(inputs: object, outputs: dict[str, Array], message: str) -> None:
    arguments = arrays("lstm", "in") if inputs is None else inputs
    with pytest.raises(ComparisonError) as error:
        compare(DATA / "lstm.onnx", arguments, outputs)  # type: ignore[arg-type]
    assert message in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "message"), [("in.npz", "is no ONNX model"), ("none", r"none does not exist")])
def test_a_file_that_is_no_model_is_one_line(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "in.npz").write_bytes(b"no model")
    with pytest.raises(ComparisonError, match=message):
        compare(tmp_path / name, {}, {})


@pytest.mark.parametrize("calls", [{"A": "A"}, {"A": "B", "B": "A"}, {f"F{k}": f"F{k + 1}" for k in range(30)}])
def test_functions_that_call_each_other_without_end_are_one_line(calls: dict[str, str], tmp_path: Path) -> None:
    model = onnx.load(DATA / "lstm.onnx")
    opsets = [helper.make_opsetid("local", 1)]
    for name, called in calls.items():
        body = [helper.make_node(called, ["x"], [y], domain="local") for y in ("t", "y")]
        model.functions.append(helper.make_function("local", name, ["x"], ["y"], body, opsets))
    model.functions.append(
        helper.make_function("local", "F30", ["x"], ["y"], [helper.make_node("Neg", ["x"], ["y"])], opsets)
    )
    model.graph.node.append(helper.make_node(next(iter(calls)), ["x"], ["more"], domain="local"))
    model.opset_import.extend(opsets)
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(ComparisonError, match="has functions that call themselves, or each other too often"):
        compared(tmp_path / "model.onnx", "lstm")


def test_missing_external_data_is_named_with_its_file(tmp_path: Path) -> None:
    model = onnx.load(DATA / "lstm.onnx")
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    assert compared(tmp_path / "model.onnx", "lstm").agrees
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ComparisonError, match=r"model\.onnx cannot be read: .* is missing: .w\.bin."):
        compared(tmp_path / "model.onnx", "lstm")


def test_a_default_of_an_input_is_replaced_by_the_given_array(tmp_path: Path) -> None:
    """In models of IR version 3 weights are inputs; the default may also feed a node that is not recurrent."""
    model = onnx.load(DATA / "gru.onnx")
    model.graph.initializer.append(numpy_helper.from_array(np.float32([0]), "scale"))
    model.graph.input.append(helper.make_tensor_value_info("scale", 1, [1]))
    model.graph.node.append(helper.make_node("Mul", ["output", "scale"], ["scaled"]))
    model.graph.output[0].name = "scaled"
    onnx.save(model, tmp_path / "model.onnx")
    results = {"scaled": 2 * arrays("gru", "out")["output"]}
    inputs = {**arrays("gru", "in"), "scale": np.float32([2])}
    assert compare(tmp_path / "model.onnx", inputs, results).agrees


def test_the_command_answers_by_its_exit_code(inside: Callable[..., Finished], tmp_path: Path) -> None:
    np.savez(tmp_path / "in.npz", x=arrays("gru", "in")["x"])
    np.savez(tmp_path / "out.npz", output=arrays("gru", "out")["output"])
    np.savez(tmp_path / "other.npz", output=np.zeros((3, 6, 3), np.float32))
    (tmp_path / "broken.npz").write_bytes(b"PK")
    for inputs, outputs, code, message in (
        ("in", "out", 0, "the model computes these results\n"),
        ("in", "other", 1, "the model computes other numbers"),
        ("out", "out", 2, "onnxspec: the model has no input output; it has x\n"),
        ("broken", "out", 2, "onnxspec: "),
    ):
        done = inside("compare", DATA / "gru.onnx", f"{inputs}.npz", f"{outputs}.npz")
        assert done.code == code
        assert (done.out + done.err).startswith(message)
