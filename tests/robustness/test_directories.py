"""Test-case directories of unknown origin: the cost of each is known before it is read, and only that one fails."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import TensorProto

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.directories.directory import DataSet, DirectoryError, read_directory, write_directory
from onnxspec.cases.directories.external_data import CASE_BYTES, DEPTH, Room, TooLarge
from onnxspec.conformance.probes.directory import probe_directories

from ..conformance.miniatures import Command, command_line, read_results
from .programs import X, model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


def lstm(T: int = 3, N: int = 2, H: int = 2) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    case = build_case(CaseSpec("LSTM", 14, T=T, N=N, I=2, H=H))
    return onnx.load_model_from_string(case.trial.model), dict(case.trial.feeds[0].fed)


def put(folder: Path, made: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Path:
    write_directory(folder, made.SerializeToString(), [DataSet(inputs, {})])
    return folder / "test_data_set_0" / "input_0.pb"


def tensor(path: Path, dims: tuple[int, ...], **fields: object) -> None:
    path.write_bytes(TensorProto(name="X", data_type=TensorProto.FLOAT, dims=dims, **fields).SerializeToString())  # type: ignore[arg-type]


def sparse(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def huge_dimension(folder: Path) -> None:
    made, inputs = lstm()
    del made.graph.input[0].type.tensor_type.shape.dim[:]
    tensor(put(folder, made, inputs), (1 << 40, 0, 2), raw_data=b"")


def huge_empty(folder: Path) -> None:
    tensor(put(folder, model(None), {"X": X}), (0, 1 << 40, 2), raw_data=b"")


def many_steps(folder: Path) -> None:
    made, inputs = lstm()
    path = put(folder, made, inputs)
    tensor(path, (1 << 20, 0, 2), raw_data=b"")


def negative(folder: Path) -> None:
    tensor(put(folder, model(None), {"X": X}), (-1, 3), raw_data=X.tobytes())


def large_model(folder: Path) -> None:
    put(folder, model(), {"X": X})
    sparse(folder / "model.onnx", 20 << 30)


def large_input(folder: Path) -> None:
    sparse(put(folder, model(), {"X": X}), 20 << 30)


def large_tolerance(folder: Path) -> None:
    put(folder, model(), {"X": X})
    (folder / "data.json").touch()
    sparse(folder / "data.json", 20 << 30)


def external(folder: Path, times: int, size: int) -> None:
    made = model()
    for number in range(times):
        weight = made.graph.initializer.add(name=f"W{number}", data_type=TensorProto.FLOAT, dims=[size // 4])
        weight.data_location = TensorProto.EXTERNAL
        weight.external_data.add(key="location", value="weights")
    put(folder, made, {"X": X})
    (folder / "weights").touch()
    sparse(folder / "weights", size)


def large_external(folder: Path) -> None:
    external(folder, 1, 20 << 30)


def external_again_and_again(folder: Path) -> None:
    external(folder, 600, 1 << 20)


def a_pipe(folder: Path) -> None:
    path = put(folder, model(), {"X": X})
    path.unlink()
    os.mkfifo(path)


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


def deep(folder: Path) -> None:
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=descriptor)
        further = os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = further
    os.close(descriptor)


def deep_json(folder: Path) -> None:
    put(folder, model(), {"X": X})
    (folder / "data.json").write_text("[" * 200_000)


def deep_graph(folder: Path) -> None:
    put(folder, model(), {"X": X})
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


HOSTILE: dict[str, Callable[[Path], None]] = {
    "2**40 steps of nothing": huge_dimension,
    "nothing of 2**40": huge_empty,
    "2**20 steps of nothing": many_steps,
    "a negative dimension": negative,
    "a model of 20 GiB": large_model,
    "an input of 20 GiB": large_input,
    "a tolerance of 20 GiB": large_tolerance,
    "weights of 20 GiB": large_external,
    "weights of 1 MiB, 600 times": external_again_and_again,
    "a pipe": a_pipe,
    "1,200 folders deep": deep,
    "a tolerance nested 200,000 deep": deep_json,
    "graphs nested 20,000 deep": deep_graph,
}


def test_each_costs_itself_and_not_the_good_ones_beside_it(onnxspec: Command, tmp_path: Path) -> None:
    """The limit is 3 GiB of memory, most of which is the address space of the interpreter and its libraries."""
    root = tmp_path / "cases"
    root.mkdir()
    for number, (name, write) in enumerate(HOSTILE.items()):
        write(root / f"{number:02}_{name}")
    put(root / "aa_good", *lstm())
    put(root / "zz_good", *lstm(T=4))
    arguments = command_line("run", "--target", "onnx-reference", "--case", root, "--out", "o")
    done = subprocess.run(
        arguments,
        cwd=tmp_path,
        env=onnxspec.environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30)),
    )
    assert "Traceback" not in done.stderr
    lines = done.stderr.splitlines()
    assert all(line.startswith("skipped: ") and line.isprintable() and len(line) < 500 for line in lines), lines
    ran = {result["case"]: result["verdict"] for result in read_results(tmp_path / "o")}
    assert ran["aa_good"] == ran["zz_good"] == "pass"
    assert len(lines) == len(HOSTILE), done.stderr
    assert len(ran) == 2


def test_a_directory_that_changes_or_goes_away_is_not_run_and_the_rest_is(onnxspec: Command, tmp_path: Path) -> None:
    """The target changes a directory while an earlier one runs."""
    for name in ("a", "b", "c"):
        put(tmp_path / "cases" / name, model(), {"X": X + ord(name)})
    adapter = f"""
import os, pathlib, shutil
import numpy as np
class Session:
    def run(self, feeds):
        (x,) = feeds.values()
        shutil.rmtree({str(tmp_path / "cases" / "b")!r}, ignore_errors=True)
        return [x]
class Adapter:
    def __init__(self, options): pass
    def describe(self): return {{"runtime": "echo", "version": "1"}}
    def prepare(self, model): return Session()
"""
    (tmp_path / "echo.py").write_text(adapter)
    (tmp_path / "targets.toml").write_text('[echo]\nadapter = "echo.py"\n')
    # One case fills a message, so that no other case is read ahead.
    big = np.zeros(1 << 21, np.float32)
    put(tmp_path / "cases" / "0", model((1 << 21,)), {"X": big})
    put(tmp_path / "cases" / "1", model((1 << 21,)), {"X": big})
    done = onnxspec("run", "--target", "echo", "--case", "./cases", "--out", "o")
    verdicts = {r["case"]: r["verdict"] for r in read_results(tmp_path / "o")}
    assert verdicts.keys() == {"0", "1", "a", "b", "c"}
    assert verdicts["b"] == "not-run"
    assert done.code == 1
    assert "1 not-run" in done.out


def test_folders_below_the_deepest_are_told_once(tmp_path: Path) -> None:
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
    if not folder.exists():
        put(folder, *lstm())
    originals = tmp_path / "originals"
    if not originals.exists():
        originals.mkdir()
        for number, path in enumerate((folder / "model.onnx", folder / "test_data_set_0" / "input_0.pb")):
            (originals / str(number)).write_bytes(path.read_bytes())
    paths = (folder / "model.onnx", folder / "test_data_set_0" / "input_0.pb")
    for number, path in enumerate(paths):
        path.write_bytes((originals / str(number)).read_bytes())
    path = data.draw(st.sampled_from(paths))
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
