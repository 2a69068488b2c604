"""Missing weights that a model refers to: ``run MODEL``, pytest and ``check`` end with one line.

Unknowable weights are random, and every answer says so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxspec

from ..checking.nodes import I, N, T, model_of, recurrent, weights_of
from ..miniatures import Inside

GRU = weights_of("GRU")
X = {"X": (T, N, I)}
NAMES = ("W", "R", "B")
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 19000000\n"


def gru(constants: Mapping[str, Any] = {name: GRU[name] for name in NAMES}, **inputs: Any) -> onnx.ModelProto:
    return model_of([recurrent("GRU", ("X", *NAMES), name="gru")], {**X, **inputs}, constants)


def with_external(folder: Path, change: Callable[[bytes], bytes] = bytes) -> None:
    """Write a GRU whose weights are in another file, one after the other; the file is changed, or left out if empty."""
    folder.mkdir(parents=True, exist_ok=True)
    model, data = gru(), b""
    for tensor in model.graph.initializer:
        entries = {"location": "w.bin", "offset": str(len(data)), "length": str(len(tensor.raw_data))}
        data += tensor.raw_data
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=value)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    if content := change(data):
        (folder / "w.bin").write_bytes(content)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda data: b"", "external data of 'W' is missing: 'w.bin'"),
        (lambda data: data[:-1], "external data of 'B' is cut off: 'w.bin' has 599 bytes"),
        (lambda data: POINTER, "external data of 'W' is not here: 'w.bin' is a Git LFS pointer (git lfs pull)"),
        (None, "is a Git LFS pointer, not a model (git lfs pull)"),
    ],
    ids=["missing", "short", "pointer for data", "pointer for model"],
)
def test_weights_that_are_not_there_end_the_command(
    inside: Inside, tmp_path: Path, change: Callable[[bytes], bytes] | None, reason: str
) -> None:
    with_external(tmp_path / "broken", change or bytes)
    if change is None:
        (tmp_path / "broken" / "model.onnx").write_bytes(POINTER)
    run = inside("run", "broken/model.onnx", "--out", "run")
    assert run.code == 2, run.out
    assert run.err.startswith("onnxspec: broken/model.onnx ")
    assert reason in run.err
    assert run.err.count("\n") == 1
    assert not (tmp_path / "run").exists()
    check = inside("check", "broken/model.onnx")
    assert check.code == 2
    assert reason in check.out
    assert "nothing wrong" not in check.out
    with pytest.raises(onnxspec.UnreadableModel, match=r"broken/model\.onnx"):
        onnxspec.check(tmp_path / "broken" / "model.onnx")


def test_weights_beside_the_model_are_read_through_links(inside: Inside, tmp_path: Path) -> None:
    """Caches of model hubs store files under other names and link to them."""
    store, snapshot = tmp_path / "blobs", tmp_path / "snapshot"
    with_external(store)
    snapshot.mkdir()
    for name, kept in (("model.onnx", "0f3a"), ("w.bin", "77c1")):
        (store / name).rename(store / kept)
        (snapshot / name).symlink_to(store / kept)
    done = inside("run", "snapshot/model.onnx", "--out", "run", "--target", "onnx-reference")
    assert done.code == 0, done.err
    assert "W, R and B from the model)" in done.out


def computed() -> onnx.ModelProto:
    """Return a model whose W is computed by an operator that is not folded."""
    model = gru()
    model.graph.initializer[0].name = "W0"
    node = helper.make_node("Softmax", ["W0"], ["W"])
    model.graph.node.insert(0, node)
    return model


def sparse() -> onnx.ModelProto:
    model = gru()
    values, indices = np.ones(1, np.float32), np.array([[0, 0, 0]], np.int64)
    tensor = helper.make_sparse_tensor(
        numpy_helper.from_array(values, "W"), numpy_helper.from_array(indices, "places"), [1, *GRU["W"].shape[1:]]
    )
    del model.graph.initializer[0]
    model.graph.sparse_initializer.append(tensor)
    return model


def with_weights_fed() -> onnx.ModelProto:
    """Return a model whose W is an input."""
    return gru({name: GRU[name] for name in "RB"}, W=GRU["W"].shape)


@pytest.mark.parametrize("made", [computed, sparse, with_weights_fed], ids=lambda made: made.__name__)
def test_weights_that_are_made_up_are_named(
    inside: Inside, tmp_path: Path, made: Callable[[], onnx.ModelProto]
) -> None:
    (tmp_path / "model.onnx").write_bytes(made().SerializeToString())
    done = inside("run", "model.onnx", "--out", "run", "--target", "onnx-reference")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    data = f"random data, 3 runs, all of seq_length {T} and batch_size {N}; R and B from the model, W made up"
    assert f"  /gru  GRU-14  ({data})" in lines
    assert "  Of these cases: the one checked case is correct, with random weights" in lines
    page = (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")
    assert "the one checked case is correct, with random weights" in page
    assert "R and B from the model, W made up" in page
    outcome = onnxspec.run("onnx-reference", case=f"{tmp_path}/run/cases/gru")
    assert "with random weights" in str(outcome)
    assert outcome.conforms


def test_weights_that_are_captured_are_not_made_up(inside: Inside, tmp_path: Path) -> None:
    onnx.save(computed(), tmp_path / "model.onnx")
    np.savez(tmp_path / "data.npz", X=np.zeros((T, N, I), np.float32))
    done = inside("run", "model.onnx", "--inputs", "data.npz", "--out", "run", "--target", "onnx-reference")
    assert "  /gru  GRU-14  (your data, one run; W, R and B from the model)" in done.out.splitlines()
    assert "random weights" not in done.out


def test_weights_that_are_defaults_of_inputs_are_the_models(inside: Inside, tmp_path: Path) -> None:
    """Exporters list initializers as inputs too: they are used if no value is fed."""
    onnx.save(gru(**{name: GRU[name].shape for name in NAMES}), tmp_path / "model.onnx")
    done = inside("run", "model.onnx", "--out", "run", "--target", "onnx-reference")
    data = f"random data, 3 runs, all of seq_length {T} and batch_size {N}; W, R and B from the model"
    assert f"  /gru  GRU-14  ({data})" in done.out.splitlines()
    assert "random weights" not in done.out + (tmp_path / "run/report/index.html").read_text(encoding="utf-8")
    case = tmp_path / "run" / "cases" / "gru"
    fed = [numpy_helper.to_array(onnx.load_tensor(path)) for path in sorted(case.glob("test_data_set_1/input_*.pb"))]
    np.testing.assert_array_equal(fed[1], GRU["W"])


def test_a_tensor_that_does_not_fill_its_shape_is_not_replaced(inside: Inside, tmp_path: Path) -> None:
    model = gru()
    model.graph.initializer[0].raw_data = model.graph.initializer[0].raw_data[:-4]
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    done = inside("run", "model.onnx", "--out", "run")
    assert done.code == 2
    assert "/gru  GRU: W cannot be read" in done.err
