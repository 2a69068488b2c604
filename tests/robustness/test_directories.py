"""Test-case directories of unknown origin: the cost of each is known before it is read, and only that one fails."""

from __future__ import annotations

import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.directories.directory import DataSet, DirectoryError, read_directory, write_directory
from onnxspec.cases.directories.external_data import CASE_BYTES, DEPTH, Room, TooLarge
from onnxspec.conformance.probes.directory import probe_directories

from ..conformance.miniatures import Command, read_results
from ..conformance.misbehaving import X

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def lstm(T: int = 3) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    case = build_case(CaseSpec("LSTM", 14, T=T, N=2, I=2, H=2))
    return onnx.load_model_from_string(case.trial.model), dict(case.trial.feeds[0].fed)


def identity(shape: Sequence[int] | None = (2, 3)) -> onnx.ModelProto:
    """Return a model that returns its input."""
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("X", "Y")]
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["Y"])], "g", values[:1], values[1:])
    made: onnx.ModelProto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])
    return made


def put(folder: Path, made: onnx.ModelProto | None = None, inputs: Mapping[str, np.ndarray] | None = None) -> Path:
    """Write a case, by default of Identity, and return the path of its input."""
    write_directory(folder, (made or identity()).SerializeToString(), [DataSet(inputs or {"X": X}, {})])
    return folder / "test_data_set_0" / "input_0.pb"


def tensor(path: Path, dims: tuple[int, ...], data: bytes = b"") -> None:
    made = TensorProto(name="X", data_type=TensorProto.FLOAT, dims=dims, raw_data=data)
    path.write_bytes(made.SerializeToString())


def sparse(path: Path, size: int = 20 << 30) -> None:
    path.touch()
    os.truncate(path, size)


def huge_dimension(folder: Path) -> None:
    made, inputs = lstm()
    del made.graph.input[0].type.tensor_type.shape.dim[:]
    tensor(put(folder, made, inputs), (1 << 40, 0, 2))


def external(folder: Path, times: int, size: int) -> None:
    made = identity()
    for number in range(times):
        weight = made.graph.initializer.add(name=f"W{number}", data_type=TensorProto.FLOAT, dims=[size // 4])
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="weights")
    put(folder, made)
    sparse(folder / "weights", size)


def a_pipe(folder: Path) -> None:
    path = put(folder)
    path.unlink()
    os.mkfifo(path)


def deep(folder: Path) -> None:
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=descriptor)
        further = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = further
    os.close(descriptor)


def deep_graph(folder: Path) -> None:
    put(folder)
    data = b""
    for _ in range(20_000):  # a graph in an attribute of a node of a graph ...
        for tag in (b"\x32", b"\x2a", b"\x0a"):
            data = tag + _varint(len(data)) + data
    (folder / "model.onnx").write_bytes(b"\x08\x08\x3a" + _varint(len(data)) + data + b"\x42\x02\x10\x0e")


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


HOSTILE: dict[str, Callable[[Path], object]] = {
    "2**40 steps of nothing": huge_dimension,
    "nothing of 2**40": lambda folder: tensor(put(folder, identity(None)), (0, 1 << 40, 2)),
    "2**20 steps of nothing": lambda folder: tensor(put(folder, *lstm()), (1 << 20, 0, 2)),
    "a negative dimension": lambda folder: tensor(put(folder, identity(None)), (-1, 3), X.tobytes()),
    "a model of 20 GiB": lambda folder: sparse(put(folder).parents[1] / "model.onnx"),
    "an input of 20 GiB": lambda folder: sparse(put(folder)),
    "a tolerance of 20 GiB": lambda folder: sparse(put(folder).parents[1] / "data.json"),
    "weights of 20 GiB": lambda folder: external(folder, 1, 20 << 30),
    "weights of 1 MiB, 600 times": lambda folder: external(folder, 600, 1 << 20),
    "a pipe": a_pipe,
    "1,200 folders deep": deep,
    "a tolerance nested 200,000 deep": lambda folder: (put(folder).parents[1] / "data.json").write_text("[" * 200_000),
    "graphs nested 20,000 deep": deep_graph,
}


@pytest.fixture(autouse=True)
def _nothing_deep_stays(tmp_path: Path) -> Iterator[None]:
    """Remove deep folders: pytest removes old folders recursively, and such a depth would end a whole later session."""
    yield
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        shutil.rmtree(tmp_path, ignore_errors=True)
    finally:
        sys.setrecursionlimit(limit)


def test_each_costs_itself_and_not_the_good_ones_beside_it(onnxspec: Command, tmp_path: Path) -> None:
    """The limit is 6 GiB of memory, most of which is the address space of the interpreter and its libraries."""
    root = tmp_path / "cases"
    root.mkdir()
    for number, (name, write) in enumerate(HOSTILE.items()):
        write(root / f"{number:02}_{name}")
    put(root / "aa_good", *lstm())
    put(root / "zz_good", *lstm(T=4))
    limit = (6 << 30, 6 << 30)
    options = ("--target", "onnx-reference", "--case", root, "--out", "o")
    done = onnxspec("run", *options, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, limit))
    lines = done.err.splitlines()
    assert all(line.startswith("skipped: ") and line.isprintable() and len(line) < 500 for line in lines), lines
    ran = {result["case"]: result["verdict"] for result in read_results(tmp_path / "o")}
    assert ran["aa_good"] == ran["zz_good"] == "pass"
    assert len(lines) == len(HOSTILE), done.err
    assert len(ran) == 2


def test_a_directory_that_changes_or_goes_away_is_not_run_and_the_rest_is(onnxspec: Command, tmp_path: Path) -> None:
    """The target changes a directory while an earlier one runs."""
    for name in ("a", "b", "c"):
        put(tmp_path / "cases" / name, inputs={"X": X + ord(name)})
    (tmp_path / "removing.py").write_text(f"""
import shutil
class Adapter:
    def __init__(self, options): pass
    def describe(self): return {{"runtime": "echo", "version": "1"}}
    def prepare(self, model): return self
    def run(self, feeds):
        shutil.rmtree({str(tmp_path / "cases" / "b")!r}, ignore_errors=True)
        return [*feeds.values()]
""")
    (tmp_path / "targets.toml").write_text('[removing]\nadapter = "removing.py"\n')
    # One case fills a message, so that no other case is read ahead.
    big = np.zeros(1 << 21, np.float32)
    put(tmp_path / "cases" / "0", identity((1 << 21,)), {"X": big})
    put(tmp_path / "cases" / "1", identity((1 << 21,)), {"X": big})
    done = onnxspec("run", "--target", "removing", "--case", "./cases", "--out", "o")
    verdicts = {r["case"]: r["verdict"] for r in read_results(tmp_path / "o")}
    assert verdicts.keys() == {"0", "1", "a", "b", "c"}
    assert verdicts["b"] == "not-run"
    assert done.code == 1
    assert "1 not-run" in done.out


def test_folders_below_the_deepest_are_reported_once(tmp_path: Path) -> None:
    deep(tmp_path / "d")
    messages: list[str] = []
    assert probe_directories([tmp_path], messages.append) == []
    assert messages == [f"d: lies {DEPTH} folders deep, and nothing is looked for below"]


@given(st.integers(0, 1 << 66), st.lists(st.integers(0, 1 << 40), max_size=5))
def test_room_is_never_overdrawn(size: int, dims: list[int]) -> None:
    room = Room()
    for count in (size, CASE_BYTES):
        try:
            room.take(count, "x")
        except TooLarge as error:
            assert str(count) in str(error)  # noqa: PT017
        assert 0 <= room._left <= CASE_BYTES
    try:
        room.fit(dims, 4, "x")
    except TooLarge:
        return
    assert all(extent <= CASE_BYTES for extent in dims)


@given(st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_directory_of_mutated_bytes_is_read_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    folder = tmp_path / "case"
    shutil.rmtree(folder, ignore_errors=True)
    path = put(folder, *lstm())
    path = data.draw(st.sampled_from([folder / "model.onnx", path]))
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 4))] = data.draw(st.binary(max_size=12))
    path.write_bytes(content)
    messages: list[str] = []
    probes = probe_directories([folder], messages.append)
    assert len(probes) + len(messages) == 1
    assert all(line.isprintable() for line in messages)
    if probes:
        assert read_directory(folder).model


def test_a_directory_error_is_no_bug(tmp_path: Path) -> None:
    with pytest.raises(DirectoryError):
        read_directory(tmp_path / ("x" * 5000))
