"""ONNX test-case directories: a model, and numbered data sets of inputs and outputs.

The layout is that of onnx.backend.test: ``model.onnx``, and folders ``test_data_set_0``, ``test_data_set_1``, ... with
``input_0.pb``, ..., ``output_0.pb``, ..., each a serialized TensorProto, in the order of the graph's inputs and
outputs. A ``data.json`` may set a tolerance for the case.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from google.protobuf.message import DecodeError, EncodeError
from msgspec import Struct
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, ValueInfoProto

from ...reference.errors import DirectoryError
from ..specs.model import array_of, tensor_proto
from .external_data import DEPTH, Room, is_pointer, take_in

Array = NDArray[Any]
Proto = TypeVar("Proto", ModelProto, TensorProto)

RTOL, ATOL = 1e-3, 1e-7
"""Default tolerance of the runner of onnx.backend.test: |got - given| <= ATOL + RTOL |given|."""


class DataSet(Struct, frozen=True):
    """One run of a model: arrays by name of graph input and graph output, in the graph's order.

    ``outputs`` is empty where a directory has none. bfloat16 is the type of ml_dtypes.
    """

    inputs: Mapping[str, Array]
    outputs: Mapping[str, Array]


class CaseDirectory(Struct, frozen=True):
    """A test case that was read.

    model
        The serialized ModelProto, with its external data.
    graph, opset
        The graph's name, and the version of ONNX's own domain that the model imports; 0 where it imports none.
    shown
        Names of the graph's outputs.
    rtol, atol
        The tolerance for comparing the given outputs.
    """

    folder: Path
    model: bytes
    graph: str
    opset: int
    shown: tuple[str, ...]
    data_sets: tuple[DataSet, ...]
    rtol: float = RTOL
    atol: float = ATOL


def write_directory(folder: Path, model: bytes, data_sets: Sequence[DataSet]) -> list[Path]:
    """Write a test case into a new folder; return the files in the order in which they were written.

    Raise OSError where it cannot be written, FileExistsError where the folder exists.
    """
    folder.mkdir(parents=True)
    written = [folder / "model.onnx"]
    written[0].write_bytes(model)
    for number, data in enumerate(data_sets):
        data_folder = folder / f"test_data_set_{number}"
        data_folder.mkdir()
        for kind, arrays in (("input", data.inputs), ("output", data.outputs)):
            for position, (name, array) in enumerate(arrays.items()):
                written.append(data_folder / f"{kind}_{position}.pb")
                written[-1].write_bytes(tensor_proto(name, array).SerializeToString(deterministic=True))
    return written


def find_directories(root: Path) -> Iterator[Path]:
    """Yield the folders at or below `root` that are or should be test cases, by name.

    These are folders with a model or data sets, and folders without subfolders. Hidden folders, folders already seen
    through another link, and folders deeper than DEPTH are skipped, except the first.

    Raise DirectoryError if `root` is not a folder.
    """
    _require_folder(root)
    yield from _found(root, set(), DEPTH)


def _found(folder: Path, seen: set[Path], depth: int) -> Iterator[Path]:
    try:
        real = folder.resolve()
    except (OSError, RuntimeError):  # circular links or names that are too long: reading gives the reason
        yield folder
        return
    if real in seen:
        return
    seen.add(real)
    try:
        below = sorted((p for p in _entries(folder) if p.is_dir() and not p.name.startswith(".")), key=_numbered)
        is_case = bool(_models(folder)) or any(_DATA_SET.fullmatch(p.name) for p in below)
    except DirectoryError:  # reading gives the reason
        is_case, below = True, []
    if is_case or not below or not depth:
        yield folder
        return
    for inner in below:
        yield from _found(inner, seen, depth - 1)


_DATA_SET = re.compile(r"test_data_set.*")


def _require_folder(folder: Path) -> None:
    with _blaming(folder, folder):
        if not folder.is_dir():
            raise DirectoryError(f"{_shown(folder)} is no folder")


def _entries(folder: Path) -> list[Path]:
    with _blaming(folder, folder):
        return list(folder.iterdir())


def _numbered(path: Path) -> tuple[Any, ...]:
    """Return a sort key that compares numbers inside names as numbers."""
    parts = re.split(r"([0-9]+)", path.name)
    return *((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts), (2, 0, path.name)


def _models(folder: Path) -> list[Path]:
    """Return model.onnx, or else all .onnx files: models of ONNX's model zoo have their own file names."""
    named = folder / "model.onnx"
    return [named] if named.is_file() else sorted(p for p in _entries(folder) if p.suffix == ".onnx" and p.is_file())


def read_directory(folder: Path) -> CaseDirectory:
    """Read a test case, but not one with more than CASE_BYTES.

    Files are matched with the graph by the names of their tensors, or by position if those are not the graph's. A graph
    input that is also an initializer may be given or not.

    Raise DirectoryError, also for a truncated protobuf, for data outside the folder, and for a file that cannot be
    read, is too large, or holds no numeric tensors.
    """
    room = Room()
    _require_folder(folder)
    models = _models(folder)
    data_folders = sorted((p for p in _entries(folder) if _DATA_SET.fullmatch(p.name) and p.is_dir()), key=_numbered)
    if len(models) != 1:
        found = "more than one model, none of them model.onnx" if models else "no model.onnx"
        raise DirectoryError(f"{_shown(folder)} is no test case: it holds {found}")
    if not data_folders:
        raise DirectoryError(f"{_shown(folder)} is no test case: it holds no test_data_set_0")
    with _blaming(models[0], folder):
        content = room.read(models[0], "the file")
        model = _parsed(content, ModelProto())
        if not model.HasField("graph") or not model.opset_import:
            raise ValueError("holds no model; is it cut off?")
        _require_text(model)
        if take_in(model, models[0].parent, folder, room):
            content = model.SerializeToString()
    graph = model.graph
    constant = {tensor.name for tensor in graph.initializer}
    needed = [value for value in graph.input if value.name not in constant]
    rtol, atol = _tolerance(folder, room)
    return CaseDirectory(
        folder,
        content,
        graph.name,
        max((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), default=0),
        tuple(value.name for value in graph.output),
        tuple(
            _data_set(folder, data_folder, needed, list(graph.input), list(graph.output), room)
            for data_folder in data_folders
        ),
        rtol,
        atol,
    )


def _data_set(
    folder: Path,
    place: Path,
    needed: list[ValueInfoProto],
    inputs: list[ValueInfoProto],
    outputs: list[ValueInfoProto],
    room: Room,
) -> DataSet:
    tensors = _tensors(folder, place, "input", inputs, room)
    fed = _named(tensors, needed if len(tensors) <= len(needed) else inputs)
    missing = [value.name for value in needed if fed is None or value.name not in fed]
    if fed is None or missing:
        raise DirectoryError(f"{_shown(place, folder)}: holds {len(tensors)} inputs, the model takes {len(needed)}")
    expected = _named(_tensors(folder, place, "output", outputs, room), outputs)
    if expected is None or (expected and len(expected) != len(outputs)):
        raise DirectoryError(f"{_shown(place, folder)}: does not hold the {len(outputs)} outputs of the model")
    return DataSet(fed, expected)


def _named(given: list[tuple[str, Array]], values: list[ValueInfoProto]) -> dict[str, Array] | None:
    """Return arrays by name of the graph's values, in the graph's order; None where there are too many arrays."""
    graph_names = [value.name for value in values]
    names = [name for name, _ in given]
    if len(given) > len(graph_names):
        return None
    if len(set(names)) < len(names) or not set(names) <= set(graph_names):
        names = graph_names[: len(given)]
    arrays = dict(zip(names, (array for _, array in given), strict=True))
    return {name: arrays[name] for name in graph_names if name in arrays}


def _tensors(
    folder: Path, place: Path, kind: str, values: Sequence[ValueInfoProto], room: Room
) -> list[tuple[str, Array]]:
    """Return the tensors ``kind_0.pb``, ... of a data set with their names."""
    numbers = {int(m[1]) for p in _entries(place) if (m := re.fullmatch(rf"{kind}_([0-9]{{1,9}})\.pb", p.name))}
    for number in range(max(numbers, default=-1) + 1):
        if number not in numbers:
            path = place / f"{kind}_{number}.pb"
            raise DirectoryError(f"{_shown(path, folder)}: is missing, though later ones are there")
    for value in values:
        if not value.type.HasField("tensor_type"):
            raise DirectoryError(f"{_shown(folder)}: {kind} {_line(value.name)} of the model is no tensor")
    arrays = []
    for number in sorted(numbers):
        path = place / f"{kind}_{number}.pb"
        with _blaming(path, folder):
            if not path.is_file():  # reading a pipe would never end
                raise ValueError("is no file")
            tensor = _parsed(room.read(path, "the file"), TensorProto())
            take_in(tensor, place, folder, room)
            arrays.append((tensor.name, array_of(tensor)))
    return arrays


@contextmanager
def _blaming(path: Path, folder: Path) -> Iterator[None]:
    """Turn an error of a file into a DirectoryError with a one-line message that names the file."""
    try:
        yield
    except DirectoryError:
        raise
    except OSError as error:
        raise DirectoryError(
            f"{_shown(path, folder)}: cannot be read: {error.strerror or type(error).__name__}"
        ) from None
    except EncodeError as error:
        raise DirectoryError(f"{_shown(path, folder)}: is too large with its data: {_line(error)}") from None
    except (TypeError, ValueError) as error:
        raise DirectoryError(f"{_shown(path, folder)}: {_line(error)}") from None


def _parsed(content: bytes, proto: Proto) -> Proto:
    if is_pointer(content):
        raise ValueError("is a Git LFS pointer, not the file (git lfs pull)")
    try:
        proto.ParseFromString(content)
    except (DecodeError, RecursionError) as error:
        raise ValueError(f"is no {type(proto).__name__}, or cut off: {error}") from None
    return proto


def _require_text(model: ModelProto) -> None:
    """Raise ValueError for a name that is not UTF-8, which protobuf returns as bytes."""
    graph = model.graph
    texts = [text for node in graph.node for text in (node.domain, node.op_type, *node.input, *node.output)]
    texts += [attribute.name for node in graph.node for attribute in node.attribute]
    texts += [value.name for value in (*graph.input, *graph.output)]
    texts += [tensor.name for tensor in graph.initializer]
    texts += [opset.domain for opset in model.opset_import]
    if any(isinstance(text, bytes) for text in texts):
        raise ValueError("a name of an operator, attribute or tensor is not UTF-8")


def _tolerance(folder: Path, room: Room) -> tuple[float, float]:
    """Return rtol and atol of data.json, or the defaults, as the loader of onnx.backend.test reads them."""
    path = folder / "data.json"
    if not path.is_file():
        return RTOL, ATOL
    with _blaming(path, folder):
        content = room.read(path, "the file")
        try:
            plain = json.loads(content)
            rtol, atol = float(plain.get("rtol", RTOL)), float(plain.get("atol", ATOL))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise ValueError("is no JSON object with numbers rtol and atol") from None
        if not (0 <= rtol < math.inf and 0 <= atol < math.inf):
            raise ValueError(f"rtol and atol are numbers from 0 on, not {rtol:g} and {atol:g}")
    return rtol, atol


def _shown(path: Path, folder: Path | None = None) -> str:
    """Return a path for a message, relative to the test case's parent folder."""
    if folder is not None and path != folder:
        return f"{_line(folder.name or folder)}/{_line(path.relative_to(folder).as_posix())}"
    return _line(path.name or path)


def _line(text: object, limit: int = 300) -> str:
    """Return an untrusted text as one printable line."""
    line = " ".join(str(text).split())[:limit]
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in line)
