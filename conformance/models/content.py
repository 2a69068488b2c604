"""A model as it was read: everything but its weights, which stay where they are until somebody asks for one.

Whoever checks a model wants its graph; nearly all of its bytes are weights. So the file is mapped, and where a tensor
holds more than a page or so of raw bytes the parsed model only says at which offset they stand. A model of two
gigabytes then costs as much memory as its graph.
"""

from __future__ import annotations

import mmap
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError, EncodeError
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from ...cases.directories.external_data import OutsideData, content_of, is_pointer, place_of, tensors_of
from ...cases.directories.room import Room
from ...cases.specs.tensor import array_of
from ..workers.worker import one_line

_LARGE = 1 << 14
"""Bytes of one tensor from which on they are left where they are."""

_DEEPEST = 100
"""Messages inside one another: protobuf's own limit."""

_PACKED = {"INT4": 4, "FLOAT4E2M1": 4, "INT2": 2}
"""Bits of an element of the types of which several share a byte, by the end of their names."""

_RAW = TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ModelError(ValueError):
    """Something that was given cannot be read as a model; the text says why, in one line."""


class Unreadable(ValueError):
    """The numbers of a tensor cannot be had; the text says why, in words that follow the tensor's name."""


@dataclass(frozen=True)
class ModelContent:
    """A model without its large weights, and the way to them.

    proto
        To be looked at, never changed.
    data
        The serialized model: a mapped file, or bytes.
    folder
        Where external data may be; None for a model that came without a place.
    base
        The folder from which locations of external data count.
    """

    proto: ModelProto
    data: memoryview
    folder: Path | None
    base: Path | None
    mark: str

    def array(self, tensor: TensorProto, most: int) -> NDArray[Any]:
        """The numbers of a tensor of this model, from wherever they are.

        most
            Bytes that they may take.

        Raises Unreadable.
        """
        size = _bytes_of(tensor)
        if size is not None and size > most:
            raise Unreadable(f"takes {size} bytes, more than the {most} that are read")
        try:
            if tensor.data_location != TensorProto.EXTERNAL:
                return array_of(tensor)
            whole = TensorProto(dims=tensor.dims, data_type=tensor.data_type)
            whole.raw_data = self._bytes(tensor, size)
            return array_of(whole)
        except OutsideData:
            raise Unreadable("has its numbers outside the model's folder, which are not opened") from None
        except (ValueError, TypeError) as error:
            raise Unreadable(one_line(str(error), 200)) from None

    def _bytes(self, tensor: TensorProto, size: int | None) -> bytes:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        if entries.get("location") == self.mark:
            start = int(entries["offset"])
            return bytes(self.data[start : start + int(entries["length"])])
        if self.folder is None or self.base is None:
            raise Unreadable("has its numbers in another file, and the model was given without its folder")
        if size is None:
            raise Unreadable("has numbers of a type that is not read")
        placed = TensorProto(name=tensor.name, external_data=tensor.external_data)
        if "length" not in entries:
            placed.external_data.add(key="length", value=str(size))
        return content_of(placed, self.base, self.folder, Room(size))


def _bytes_of(tensor: TensorProto) -> int | None:
    """The bytes that the numbers of a tensor take; None for types that NumPy has no size of."""
    from onnx import helper

    name = TensorProto.DataType.Name(tensor.data_type) if tensor.data_type in TensorProto.DataType.values() else ""
    packed = next((bits for end, bits in _PACKED.items() if name.endswith(end)), 0)
    try:
        bits = packed or 8 * np.dtype(helper.tensor_dtype_to_np_dtype(tensor.data_type)).itemsize
    except (KeyError, TypeError, ValueError):
        return None
    if tensor.data_type == TensorProto.STRING:
        return None
    if tensor.data_type == TensorProto.BFLOAT16:
        bits = 16  # older versions of onnx hand it out as float32
    count = 1
    for extent in tensor.dims:
        count *= max(extent, 0)
    return -(-count * bits // 8)


def read_content(model: Path | ModelProto | bytes, folder: Path | None = None) -> ModelContent:
    """A model from its file, from memory or from its bytes.

    folder
        Where external data may be; for a file that is its own folder, with links followed.

    Raises ModelError, also where external data is missing, cut off or outside the folder.
    """
    bases = [] if folder is None else [folder]
    if isinstance(model, Path):
        data = _mapped(model)
        folder = model.resolve().parent
        bases = [folder, model.absolute().parent]  # a link to a model may stand beside links to its data
    elif isinstance(model, ModelProto):
        try:
            data = memoryview(model.SerializeToString())
        except (EncodeError, ValueError) as error:
            raise ModelError(f"cannot be serialized: {one_line(str(error), 200)}") from None
    else:
        data = memoryview(model)
    if not len(data):
        raise ModelError("is empty")
    if is_pointer(bytes(data[:_LARGE])):
        raise ModelError("is a Git LFS pointer, not a model (git lfs pull)")
    mark = secrets.token_hex(16)
    proto = ModelProto()
    try:
        proto.ParseFromString(b"".join(_slimmed(data, 0, len(data), ModelProto.DESCRIPTOR, mark, 0)))
    except (DecodeError, RecursionError, IndexError, ValueError) as error:
        text = one_line(str(error), 200) if isinstance(error, _NotProtobuf) else "what it holds is no ModelProto"
        raise ModelError(f"is no ONNX model, or cut off: {text}") from None
    if not proto.HasField("graph"):
        raise ModelError("is no ONNX model, or cut off: it holds no graph")
    base = None if folder is None else _base(proto, folder, bases, mark)
    return ModelContent(proto, data, folder, base, mark)


def _base(proto: ModelProto, folder: Path, bases: Sequence[Path], mark: str) -> Path:
    """The folder from which a model's external data is found, all of it. Raises ModelError where none is."""
    errors = []
    for base in bases:
        try:
            for tensor in tensors_of(proto):
                _require_data(tensor, base, folder, mark)
        except ValueError as error:
            errors.append(error)
        else:
            return base
    raise ModelError(f"cannot be read: {one_line(str(errors[0]), 300)}")


def _require_data(tensor: TensorProto, base: Path, folder: Path, mark: str) -> None:
    """Raise ValueError where a tensor's external data is not there, or is too short."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    if location == mark:
        return
    place, size = place_of(tensor, base, folder), _bytes_of(tensor)
    if size is not None and place.length < size:
        text = f"{location!r} has {place.length} bytes, the tensor takes {size}"
        raise ValueError(f"external data of {tensor.name!r} in {text}")


def _mapped(path: Path) -> memoryview:
    try:
        if not path.is_file():  # a pipe would never end
            raise ModelError("is no file" if path.exists() else "does not exist")
        with path.open("rb") as file:
            if path.stat().st_size == 0:
                raise ModelError("is empty")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a name that no file can have
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"cannot be read: {error}") from None


class _NotProtobuf(ValueError):
    """Bytes that are no protobuf message."""


def _slimmed(data: memoryview, at: int, end: int, message: Any, mark: str, depth: int) -> Iterator[bytes]:
    """The bytes of a message, with the place in the place of large raw data. `message` is its descriptor.

    Only what is large is looked into: most nodes and tensors are copied as they are.
    """
    if depth > _DEEPEST:
        raise _NotProtobuf(f"messages lie more than {_DEEPEST} deep in one another")
    kept = at
    while at < end:
        begin = at
        key, at = _varint(data, at, end)
        wire = key & 7
        if wire == _VARINT:
            _, at = _varint(data, at, end)
        elif wire in (_FIXED64, _FIXED32):
            at += 8 if wire == _FIXED64 else 4
        elif wire == _BYTES:
            size, at = _varint(data, at, end)
            if size >= _LARGE and at + size <= end:
                field = message.fields_by_number.get(key >> 3)
                slim = None
                if message is TensorProto.DESCRIPTOR and key >> 3 == _RAW:
                    slim = _placed(mark, at, size)
                elif field is not None and field.message_type is not None:
                    inner = b"".join(_slimmed(data, at, at + size, field.message_type, mark, depth + 1))
                    slim = _encoded(key) + _encoded(len(inner)) + inner
                if slim is not None:
                    yield bytes(data[kept:begin])
                    yield slim
                    kept = at + size
            at += size
        else:
            raise _NotProtobuf(f"byte {begin} begins no field")
        if at > end:
            raise _NotProtobuf(f"a field at byte {begin} is longer than what is there")
    yield bytes(data[kept:end])


def _placed(mark: str, start: int, size: int) -> bytes:
    """The fields of a TensorProto that say where its bytes are."""
    tensor = TensorProto(data_location=TensorProto.EXTERNAL)
    for key, value in (("location", mark), ("offset", str(start)), ("length", str(size))):
        tensor.external_data.add(key=key, value=value)
    return tensor.SerializeToString()


def _varint(data: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise _NotProtobuf(f"a number at byte {at} has no end")


def _encoded(value: int) -> bytes:
    """A number as a varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
