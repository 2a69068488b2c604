"""Tests of test-case directories: written, read back, and read as other tools write them, invalid ones included."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.directories.directory import (
    ATOL,
    RTOL,
    DataSet,
    DirectoryError,
    find_directories,
    read_directory,
    write_directory,
)
from onnxspec.cases.directories.manifest import data_sets_of

from ...recurrent import recurrent_versions

CORE = [spec for op, version in recurrent_versions() for spec in profile("core", op, version)]


def first(**wanted: Any) -> CaseSpec:
    """Return the first case of core that has these values."""
    return next(s for s in CORE if all(getattr(s, name) == value for name, value in wanted.items()))


WRITTEN = {
    **{kind: first(type=kind, version=22) for kind in ("float16", "bfloat16", "float32", "float64")},
    "initializers": first(weights="initializer", bias=True, type="float32"),
    "inputs": CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, peepholes=True, initial="all"),
    "lengths": first(lengths="ragged", layout=1, direction="bidirectional"),
    "one output": first(outputs=("", "", "Y_c")),
    "not the second": next(s for s in CORE if s.outputs == ("Y", "", "Y_c")),
    "other data before": first(reruns="data"),
    "other sizes before": first(reruns="sizes"),
    "nothing": first(N=0),
    "special values": first(data="nan-row"),
}


def tensor_files(folder: Path, kind: str) -> list[Path]:
    """Return the files of the inputs, or of the outputs, of the first data set, in the order of their numbers."""
    count = len([*(folder / "test_data_set_0").glob(f"{kind}_*.pb")])
    return [folder / "test_data_set_0" / f"{kind}_{number}.pb" for number in range(count)]


@pytest.mark.parametrize("spec", WRITTEN.values(), ids=WRITTEN)
def test_what_is_written_is_read_back_bit_for_bit(spec: CaseSpec, tmp_path: Path) -> None:
    trial = build_case(spec).trial
    data_sets = data_sets_of(trial)
    folder = tmp_path / "test_it"
    written = write_directory(folder, trial.model, data_sets)
    assert sorted(written) == sorted(p for p in folder.rglob("*") if p.is_file())
    graph = onnx.load(folder / "model.onnx").graph
    for kind, values in (("input", graph.input), ("output", graph.output)):
        names = [TensorProto.FromString(p.read_bytes()).name for p in tensor_files(folder, kind)]
        assert names == [value.name for value in values]
    read = read_directory(folder)
    assert read.model == trial.model
    opset = onnx.load_model_from_string(trial.model).opset_import[0].version
    assert (read.graph, read.opset, read.shown) == ("case", opset, trial.node.outputs)
    assert (read.rtol, read.atol) == (RTOL, ATOL)
    assert len(read.data_sets) == len(trial.feeds)
    for got, feed, data in zip(read.data_sets, trial.feeds, data_sets, strict=True):
        assert list(got.inputs) == list(feed.fed)
        assert list(got.outputs) == list(trial.node.outputs)
        for arrays, expected in ((got.inputs, feed.fed), (got.outputs, data.outputs)):
            for name, array in expected.items():
                assert arrays[name].dtype == array.dtype
                assert arrays[name].shape == array.shape
                assert arrays[name].tobytes() == array.tobytes()
    for array in read.data_sets[-1].outputs.values():
        assert array.dtype.name == spec.type


def test_a_folder_is_not_written_twice(tmp_path: Path) -> None:
    write_directory(tmp_path / "test_it", b"", [])
    with pytest.raises(FileExistsError):
        write_directory(tmp_path / "test_it", b"", [])


# Directories of other tools

Y = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(opset: int = 17, initializers: Any = (), default: bool = False) -> onnx.ModelProto:
    """Return the model out = X + W, where W is an input or a constant."""
    values = {n: helper.make_tensor_value_info(n, TensorProto.FLOAT, (2, 3)) for n in ("X", "W", "out")}
    inputs = [values["X"], *([values["W"]] if default or not initializers else [])]
    graph = helper.make_graph(
        [helper.make_node("Add", ["X", "W"], ["out"])], "sum", inputs, [values["out"]], initializer=list(initializers)
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def vendor(folder: Path, proto: onnx.ModelProto | None = None, **tensors: Any) -> Path:
    """Write a directory as another tool may write it: ``input_0=...``, ``output_0=...``."""
    data_set = folder / "test_data_set_0"
    data_set.mkdir(parents=True)
    (folder / "model.onnx").write_bytes((proto or model()).SerializeToString())
    for name, tensor in tensors.items():
        tensor = numpy_helper.from_array(tensor) if isinstance(tensor, np.ndarray) else tensor
        (data_set / f"{name}.pb").write_bytes(tensor.SerializeToString())
    return folder


NAMED = {"input_0": numpy_helper.from_array(Y, "W"), "input_1": numpy_helper.from_array(Y + 1, "X")}
DEFAULT = model(initializers=[numpy_helper.from_array(Y, "W")], default=True)


@pytest.mark.parametrize(
    ("proto", "tensors", "inputs", "outputs"),
    [
        (None, {"input_0": Y, "input_1": Y + 1, "output_0": Y}, {"X": Y, "W": Y + 1}, ["out"]),
        (None, NAMED, {"X": Y + 1, "W": Y}, []),
        (DEFAULT, {"input_0": Y}, {"X": Y}, []),
        (DEFAULT, {"input_0": Y, "input_1": Y + 1}, {"X": Y, "W": Y + 1}, []),
    ],
    ids=["by position", "by the names of the graph", "a constant", "a constant that is an input too"],
)
def test_tensors_go_by_name_or_position(
    proto: Any, tensors: dict[str, Any], inputs: dict[str, Any], outputs: list[str], tmp_path: Path
) -> None:
    read = read_directory(vendor(tmp_path / "a", proto, **tensors))
    assert (read.graph, read.opset, read.shown) == ("sum", 17, ("out",))
    (data,) = read.data_sets
    assert {n: a.tolist() for n, a in data.inputs.items()} == {n: a.tolist() for n, a in inputs.items()}
    assert (list(data.inputs), list(data.outputs)) == (list(inputs), outputs)


def test_data_sets_stand_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    data = [DataSet({"X": Y + k, "W": Y}, {"out": Y}) for k in range(12)]
    write_directory(tmp_path / "a", model().SerializeToString(), data)
    assert [d.inputs["X"][0, 0] for d in read_directory(tmp_path / "a").data_sets] == list(range(12))


def test_a_model_of_another_name_stands_for_model_onnx(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "resnet", input_0=Y, input_1=Y)
    (folder / "model.onnx").rename(folder / "resnet50.onnx")
    assert read_directory(folder).graph == "sum"


@pytest.mark.parametrize("raw", [True, False])
def test_bfloat16_and_float16_in_either_form(raw: bool, tmp_path: Path) -> None:
    numbers = np.array([1.5, -0.1, 3e38, np.inf, 1e-40])
    for kind, number in ((np.dtype(ml_dtypes.bfloat16), TensorProto.BFLOAT16), (np.dtype("f2"), TensorProto.FLOAT16)):
        with np.errstate(over="ignore"):
            array = numbers.astype(kind)
        tensor = TensorProto(name="X", data_type=number, dims=array.shape)
        if raw:
            tensor.raw_data = array.tobytes()
        else:
            tensor.int32_data.extend(array.view(np.uint16).tolist())
        folder = vendor(tmp_path / kind.name, input_0=tensor, input_1=Y)
        got = read_directory(folder).data_sets[0].inputs["X"]
        assert got.dtype == kind
        assert got.tobytes() == array.tobytes()


def test_a_tolerance_of_its_own(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "a", input_0=Y, input_1=Y)
    (folder / "data.json").write_text('{"rtol": 0.25, "model_name": "x"}')
    assert (read_directory(folder).rtol, read_directory(folder).atol) == (0.25, ATOL)
    for text in ("[", "[]", '{"rtol": "wide"}', '{"atol": -1}', '{"rtol": NaN}', "[" * 100_000):
        (folder / "data.json").write_text(text)
        with pytest.raises(DirectoryError, match=r"^a/data\.json: "):
            read_directory(folder)


# External data


def external(name: str, location: str, **entries: object) -> TensorProto:
    """Return a tensor like Y whose numbers are in an external file, according to its fields."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=Y.shape, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def test_external_data_in_the_folder_is_taken_in(tmp_path: Path) -> None:
    proto = model(initializers=[external("W", "weights/w.bin", offset=8, length=24)])
    constant = helper.make_node("Constant", [], ["unused"], value=external("", "weights/w.bin", length=24))
    proto.graph.node.insert(0, constant)
    folder = vendor(tmp_path / "a", proto, input_0=external("X", "x.bin"))
    (folder / "weights").mkdir()
    (folder / "weights" / "w.bin").write_bytes(b"\0" * 8 + Y.tobytes() + b"more")
    (folder / "test_data_set_0" / "x.bin").write_bytes((Y + 1).tobytes())
    read = read_directory(folder)
    graph = onnx.load_model_from_string(read.model).graph
    np.testing.assert_array_equal(numpy_helper.to_array(graph.initializer[0]), Y)
    assert graph.node[0].attribute[0].t.raw_data == b"\0" * 8 + Y.tobytes()[:16]
    np.testing.assert_array_equal(read.data_sets[0].inputs["X"], Y + 1)


@pytest.mark.parametrize("location", ["{outside}", "../secret.bin", "a/../../secret.bin", "link.bin", "..\\secret.bin"])
@pytest.mark.parametrize("where", ["model", "data"])
def test_external_data_outside_the_folder_is_refused(location: str, where: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.bin"
    secret.write_bytes(Y.tobytes())
    location = location.format(outside=secret)
    if where == "data" and location.startswith(("../", "a/")):
        location = f"../{location}"
    proto = model(initializers=[external("W", location)]) if where == "model" else model()
    tensors = {"input_0": external("X", location), "input_1": Y} if where == "data" else {"input_0": Y}
    folder = vendor(tmp_path / "case", proto, **tensors)
    for directory in (folder, folder / "test_data_set_0"):
        (directory / "a").mkdir()
        if os.name == "posix":
            (directory / "link.bin").symlink_to(secret)
    with pytest.raises(DirectoryError, match="outside the folder") as refused:
        read_directory(folder)
    assert str(refused.value).startswith("case/")


@pytest.mark.parametrize(
    ("entries", "complaint"),
    [
        ({"location": "none.bin"}, "missing"),
        ({"location": ""}, "names no file"),
        ({"location": "w.bin", "offset": 4}, r"cut off|broken"),
        ({"location": "w.bin", "length": 25}, "cut off"),
        ({"location": "w.bin", "length": 20}, r"cut off|broken"),
        ({"location": "w.bin", "offset": -1}, "offset '-1'"),
        ({"location": "w.bin", "length": "9" * 30}, "length"),
        ({"location": "."}, "missing"),
    ],
)
def test_external_data_that_does_not_hold_the_tensor(entries: Any, complaint: str, tmp_path: Path) -> None:
    folder = vendor(tmp_path / "case", input_0=external("X", **entries), input_1=Y)
    (folder / "test_data_set_0" / "w.bin").write_bytes(Y.tobytes())
    with pytest.raises(DirectoryError, match=complaint):
        read_directory(folder)


# Invalid directories


def broken(folder: Path) -> str:
    """Return the message, one line, with which reading a directory fails."""
    with pytest.raises(DirectoryError) as caught:
        read_directory(folder)
    text = str(caught.value)
    assert text.isprintable()
    assert folder.name in text
    return text


def test_truncated_protobufs(tmp_path: Path) -> None:
    trial = build_case(WRITTEN["bfloat16"]).trial
    folder = tmp_path / "case"
    write_directory(folder, trial.model, data_sets_of(trial))
    for path in (folder / "model.onnx", folder / "test_data_set_0" / "input_0.pb"):
        content = path.read_bytes()
        cuts = range(0, len(content), max(len(content) // 60, 1))
        for cut in cuts:
            path.write_bytes(content[:cut])
            assert path.name in broken(folder)
        path.write_bytes(b"\xff" * 40)
        assert path.name in broken(folder)
        path.write_bytes(content)
    assert read_directory(folder).model == trial.model


def sequence_model() -> onnx.ModelProto:
    proto = model()
    proto.graph.input[0].type.Clear()
    proto.graph.input[0].type.sequence_type.elem_type.tensor_type.elem_type = TensorProto.FLOAT
    return proto


def numbers(**fields: Any) -> TensorProto:
    return TensorProto(**{"data_type": TensorProto.FLOAT, "dims": (2, 3), "raw_data": Y.tobytes(), **fields})


FLOATS_OF_8 = numbers(data_type=TensorProto.FLOAT8E4M3FN, raw_data=b"\0" * 6)
NO_TEXT = model().SerializeToString().replace(b"Add", b"\x80dd")

SPOILT: dict[str, tuple[Callable[[Path], Any] | dict[str, Any], str]] = {
    "no folder": (lambda f: None, "no folder"),
    "a file": (lambda f: f.write_text(""), "no folder"),
    "empty": (lambda f: f.mkdir(), "no model.onnx"),
    "no data": (lambda f: vendor(f) and (f / "test_data_set_0").rmdir(), "no test_data_set_0"),
    "two models": (
        lambda f: (vendor(f, input_0=Y) / "model.onnx").rename(f / "b.onnx") and (f / "c.onnx").write_bytes(b""),
        "more than one model",
    ),
    "an operator that is no text": (
        lambda f: (vendor(f, input_0=Y, input_1=Y) / "model.onnx").write_bytes(NO_TEXT), "is not UTF-8",
    ),
    "too few": ({"input_0": Y}, "holds 1 inputs, the model takes 2"),
    "too many": ({"input_0": Y, "input_1": Y, "input_2": Y}, "holds 3 inputs"),
    "a gap": ({"input_0": Y, "input_2": Y}, "input_1.pb: is missing"),
    "too many outputs": ({"input_0": Y, "input_1": Y, "output_0": Y, "output_1": Y}, "does not hold the 1 outputs"),
    "a sequence": ({"proto": sequence_model(), "input_0": Y, "input_1": Y}, "X of the model is no"),
    "texts": ({"input_0": np.array(["a"], object), "input_1": Y}, "holds string"),
    "small floats": ({"input_0": FLOATS_OF_8, "input_1": Y}, "float8e4m3fn"),
    "an unknown type": ({"input_0": numbers(data_type=999), "input_1": Y}, "cut off"),
    "a shape that does not fit": ({"input_0": numbers(dims=(7,)), "input_1": Y}, "broken"),
    "a negative shape": ({"input_0": numbers(dims=(-1, 3)), "input_1": Y}, "shape"),
    "an enormous shape": ({"input_0": numbers(dims=(2**40, 2**40), raw_data=b"")}, "more than the 536870912 bytes"),
    "no opset": ({"proto": onnx.ModelProto(graph=model().graph), "input_0": Y}, "no model"),
}  # fmt: skip


@pytest.mark.parametrize(("spoil", "complaint"), SPOILT.values(), ids=SPOILT)
def test_a_directory_that_cannot_be_used(spoil: Any, complaint: str, tmp_path: Path) -> None:
    folder = tmp_path / "case"
    vendor(folder, **spoil) if isinstance(spoil, dict) else spoil(folder)
    assert complaint in broken(folder)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_names_that_are_no_files(tmp_path: Path) -> None:
    folder = vendor(tmp_path / "evil\n\x1b[31m", input_1=Y)
    os.mkfifo(folder / "test_data_set_0" / "input_0.pb")
    with pytest.raises(DirectoryError, match=r"^evil \\x1b\[31m/test_data_set_0/input_0.pb: is no file$"):
        read_directory(folder)
    (folder / "model.onnx").unlink()
    (folder / "model.onnx").mkdir()
    with pytest.raises(DirectoryError):
        read_directory(folder)


# Trees of directories


def test_directories_are_found_in_trees(tmp_path: Path) -> None:
    for name in ("node/test_10", "node/test_9", "zoo/v1/resnet", ".hidden/test_it"):
        vendor(tmp_path / name, input_0=Y, input_1=Y)
    (tmp_path / "real" / "test_download").mkdir(parents=True)
    (tmp_path / "real" / "data.json").write_text("{}")
    if os.name == "posix":
        (tmp_path / "node" / "loop").symlink_to(tmp_path)
        (tmp_path / "zoo" / "v2").symlink_to(tmp_path / "zoo" / "v1")
    folders = [p.relative_to(tmp_path).as_posix() for p in find_directories(tmp_path)]
    assert folders == ["node/test_9", "node/test_10", "real/test_download", "zoo/v1/resnet"]
    assert list(find_directories(tmp_path / "node" / "test_9")) == [tmp_path / "node" / "test_9"]
    with pytest.raises(DirectoryError):
        list(find_directories(tmp_path / "nowhere"))


@pytest.mark.parametrize("name", ["model.onnx", "test_data_set_0/input_0.pb"])
def test_a_pointer_of_git_lfs_is_called_one(name: str, tmp_path: Path) -> None:
    folder = vendor(tmp_path / "a", input_0=numbers())
    (folder / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:01\nsize 9\n")
    with pytest.raises(DirectoryError, match=rf"^a/{name}: is a Git LFS pointer"):
        read_directory(folder)
