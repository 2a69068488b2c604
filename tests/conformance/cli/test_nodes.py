"""``onnxspec run MODEL``: every node by its path, on several targets, and exit codes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from ..checking.nodes import I, N, T, model_of, recurrent, weights_of
from ..miniatures import Inside, complaints, read_results

GRU = weights_of("GRU")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a model of two layers; onnx's reference evaluator ignores the activations of the first."""
    first = recurrent("GRU", ("X", "W", "R", "B"), name="encoder/first", activations=["Sigmoid", "Relu"])
    first.output[0] = "y"
    squeeze = helper.make_node("Squeeze", ["y", "axis"], ["x"])
    second = recurrent("GRU", ("x", "W2", "R"), name="encoder/second")
    constants = {name: GRU[name] for name in ("W", "R", "B")}
    constants |= {"axis": np.array([1], np.int64), "W2": GRU["R"]}
    model = model_of([first, squeeze, second], {"X": (T, N, I)}, constants)
    onnx.save(model, tmp_path / "model.onnx")
    np.savez(tmp_path / "data.npz", X=np.linspace(-1, 1, T * N * I, dtype=np.float32).reshape(T, N, I))
    return tmp_path


def test_nodes_are_reported_by_path_with_the_first_that_is_wrong(inside: Inside, folder: Path) -> None:
    # The list of known failures excuses no node of a model.
    targets = ("--target", "onnxruntime", "--target", "onnx-reference")
    done = inside("run", "model.onnx", "--inputs", "data.npz", "--out", "run", *targets)
    assert complaints(done.err) == []
    lines = done.out.splitlines()
    nodes = lines[lines.index("nodes of the model") + 1 :]
    assert nodes[0] == "  /encoder/first  GRU-14  (your data, one run; W, R and B from the model)"
    assert nodes[1] == "    onnxruntime: pass"
    assert nodes[2].startswith("    onnx-reference: wrong: ")
    assert nodes[3].startswith("      explained by: Ignores the attribute activations")
    assert nodes[4].startswith("      known: The attribute activations is ignored")
    assert nodes[5].startswith("      what to do: Use the operator's default functions")
    assert nodes[6:9] == [
        "  /encoder/second  GRU-14  (your data, one run; W and R from the model)",
        "    onnxruntime: pass",
        "    onnx-reference: pass",
    ]
    # Consecutive layers are also judged together: the second from the target's result of the first.
    together = "  /encoder/first + /encoder/second  GRU-14 + GRU-14"
    assert nodes[9] == f"{together}  (your data, one run; W, R and B from the model)"
    assert "  first wrong node on onnx-reference: /encoder/first" in nodes
    assert "  only recurrent nodes were tested" in nodes
    assert "  Of these cases: 2 of 3 checked cases fail" in lines
    assert not [line for line in lines if line.startswith("  Accepts")]
    assert done.code == 1
    assert (folder / "run" / "report" / "index.html").is_file()
    assert "encoder.first" in (folder / "run" / "report" / "index.html").read_text(encoding="utf-8")
    # Its cases can be explained and run by themselves.
    case = folder / "run" / "cases" / "encoder.first"
    explained = inside("explain", case, "--target", "onnx-reference")
    assert explained.code == 0, explained.err
    assert "gru.activations" in explained.out
    again = inside("run", "--case", "./run/cases", "--out", "again")
    assert again.code == 0, again.err
    assert "3 pass" in again.out


SHARING_R = """
import onnxruntime
from onnx.backend.base import Backend, BackendRep


class Prepared(BackendRep):
    def __init__(self, model):
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])

    def run(self, inputs, **options):
        names = [given.name for given in self._session.get_inputs()]
        return self._session.run(None, dict(zip(names, inputs)))


class Fusing(Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **options):
        layers = [node for node in model.graph.node if node.op_type == "GRU"]
        for layer in layers:
            layer.input[2] = layers[0].input[2]
        return Prepared(model)

    @classmethod
    def supports_device(cls, device):
        return True
"""


def test_nodes_that_are_right_alone_and_wrong_together(inside: Inside, tmp_path: Path) -> None:
    """A backend fuses three layers and gives all of them the R of the first: the first wrong node is the second."""
    (tmp_path / "fusing.py").write_text(SHARING_R, encoding="utf-8")
    nodes, constants, last = [], {"axis": np.array([1], np.int64), "W0": GRU["W"]}, "X"
    for k in range(3):
        nodes.append(recurrent("GRU", (last, f"W{k}", f"R{k}"), f"layer{k}", linear_before_reset=1))
        nodes[-1].output[0] = f"y{k}"
        last = f"x{k}"
        nodes.append(helper.make_node("Squeeze", [f"y{k}", "axis"], [last]))
        constants |= {f"R{k}": GRU["R"] * (k + 1) / 3, f"W{k + 1}": GRU["R"]}
    onnx.save(model_of(nodes, {"X": (T, N, I)}, constants, outputs=[last]), tmp_path / "model.onnx")
    done = inside("run", "model.onnx", "--out", "run", "--target", "backend:fusing")
    assert done.code == 1, done.out
    lines = done.out.splitlines()
    assert lines.count("    backend:fusing: pass") == 3
    (together,) = [line for line in lines if "right alone: " in line]
    assert together.startswith("    backend:fusing: wrong together, though each is right alone: /layer1: Y[")
    first = "/layer1, which is right alone, together with /layer0 and /layer2"
    assert f"  first wrong node on backend:fusing: {first}" in lines


def test_a_node_that_does_not_run_there_is_an_answer_no(inside: Inside, tmp_path: Path) -> None:
    """A user who deploys a model needs to know whether it runs: onnxruntime does not load a GRU without hidden_size."""
    first = recurrent("LSTM", ("X", "W", "R"), name="first")
    squeeze = helper.make_node("Squeeze", ["Y", "axis"], ["x"])
    second = recurrent("GRU", ("x", "W2", "R2"), name="second", linear_before_reset=1)
    second.output[0] = "y"
    del second.attribute[:-1]
    lstm = weights_of("LSTM")
    constants = {"W": lstm["W"], "R": lstm["R"], "axis": np.array([1], np.int64), "W2": GRU["R"], "R2": GRU["R"]}
    onnx.save(model_of([first, squeeze, second], {"X": (T, N, I)}, constants, outputs=("y",)), tmp_path / "model.onnx")
    done = inside("run", "model.onnx", "--out", "run")
    assert done.code == 1, done.out
    lines = done.out.splitlines()
    assert "  Of these cases: 2 of 3 not supported, the one checked case is correct" in lines
    assert not [line for line in lines if "list of known failures" in line]  # which excuses nothing here
    # The two together are refused because of the second; the first is not blamed.
    sizes = f"3 runs, all of seq_length {T} and batch_size {N}"
    together = f"  /first + /second  LSTM-14 + GRU-14  (random data, {sizes}; W and R from the model)"
    assert lines[lines.index(together) + 1 :][:3] == [
        "    onnxruntime: unsupported, as /second is alone",
        "  not supported by onnxruntime: /second",
        "  only recurrent nodes were tested",
    ]
    (refusal,) = [line for line in lines if line.startswith("  unsupported")]
    assert refusal.startswith("  unsupported  nodes with no hidden_size (2 cases, GRU, LSTM, float32): ")
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert "2 of 3 not supported" in page
    assert "Right, 1 judged" not in page
    features = {row["case"]: row["features"] for row in read_results(tmp_path / "run")}
    assert "linear_before_reset" in features["second"]
    assert "linear_before_reset" not in features["first+second"]  # it is listed under LSTM, which has no such attribute


def test_an_illegal_node_is_an_answer_no_and_a_target_that_is_not_there_judges_nothing(
    inside: Inside, tmp_path: Path
) -> None:
    wrong = recurrent("GRU", name="wrong", hidden_size=2 * 5)
    right = recurrent("GRU", name="right")
    wrong.output[0], constants = "y", {name: GRU[name] for name in ("W", "R")}
    onnx.save(model_of([wrong, right], {"X": (T, N, I)}, constants, outputs=("y", "Y")), tmp_path / "model.onnx")
    done = inside("run", "model.onnx", "--out", "run")
    assert done.code == 1
    assert "  not run: /wrong" in done.out.splitlines()
    gone = inside("run", "model.onnx", "--target", "backend:no.such.module", "--out", "gone")
    assert gone.code == 3
    assert "were tested" not in gone.out


def test_cases_can_be_kept_and_only_then_outputs_are_computed(inside: Inside, folder: Path) -> None:
    """Computing outputs takes most of the time, and the judgement does not use them."""
    done = inside("run", "model.onnx", "--keep", "kept", "--out", "run")
    assert done.code == 0, done.err
    assert f"(random data, 3 runs, all of seq_length {T} and batch_size {N}; W, R and B from the model)" in done.out
    assert sorted(path.name for path in (folder / "kept").iterdir()) == [
        "encoder.first",
        "encoder.first+encoder.second",
        "encoder.second",
        "nodes.json",
    ]
    assert len([*(folder / "kept").glob("*/test_data_set_2/output_0.pb")]) == 3
    resumed = inside("run", "model.onnx", "--keep", "kept", "--out", "run", "--resume")
    assert resumed.code == 0, resumed.err
    assert inside("run", "model.onnx", "--out", "plain").code == 0
    assert len([*(folder / "plain" / "cases").glob("*/test_data_set_*/input_0.pb")]) == 9
    assert not [*(folder / "plain" / "cases").glob("*/test_data_set_*/output_*.pb")]
