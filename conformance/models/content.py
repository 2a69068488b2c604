"""A model as it was read, and access to its external data."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from ...cases.directories.external_data import OutsideData, Room, content_of, is_pointer, place_of, take_in, tensors_of
from ...cases.specs.model import array_of
from ...reference.errors import UserError
from ..workers.worker import one_line

_LARGEST = (1 << 31) - 1
"""Limit of the bytes of a model with its data: the maximum of protobuf."""


class ModelError(UserError):
    """Input that cannot be read as a model; the text gives the reason in one line."""


class NotConstant(ValueError):
    """Tensor that is not a constant, or cannot be folded; the text has the reason, as a phrase after its name."""


class Unreadable(NotConstant):
    """Tensor of the model whose numbers cannot be read."""


@dataclass(frozen=True)
class ModelContent:
    """A model without its external data, and access to that data.

    proto
        Read-only.
    folder
        Folder of external data; None for a model without a folder.
    base
        The folder to which locations of external data are relative.
    """

    proto: ModelProto
    folder: Path | None
    base: Path | None

    def array(self, tensor: TensorProto, most: int) -> NDArray[Any]:
        """Return the numbers of a tensor of this model, from the model or its external data.

        most
            Limit of their bytes.

        Raise Unreadable.
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

    def whole(self) -> ModelProto:
        """Return a copy of the model with all of its weights, external ones included.

        Raise ModelError if they are more than protobuf holds, or cannot be read.
        """
        whole = ModelProto()
        whole.CopyFrom(self.proto)
        try:
            if self.folder is not None and self.base is not None:
                take_in(whole, self.base, self.folder, Room(_LARGEST))
        except (ValueError, MemoryError) as error:
            raise ModelError(f"cannot be read with its data: {' '.join(str(error).split())}") from None
        return whole

    def _bytes(self, tensor: TensorProto, size: int | None) -> bytes:
        if self.folder is None or self.base is None:
            raise Unreadable("has its numbers in another file, and the model was given without its folder")
        if size is None:
            raise Unreadable("has numbers of a type that is not read")
        placed = TensorProto(name=tensor.name, external_data=tensor.external_data)
        if not any(entry.key == "length" for entry in tensor.external_data):
            placed.external_data.add(key="length", value=str(size))
        return content_of(placed, self.base, self.folder, Room(size))


def _bytes_of(tensor: TensorProto) -> int | None:
    """Return the number of bytes of a tensor; None for types without a size. Small elements share a byte."""
    name = TensorProto.DataType.Name(tensor.data_type) if tensor.data_type in TensorProto.DataType.values() else ""
    number = re.search(r"\d+", name)  # UINT4, FLOAT8E4M3FN, BFLOAT16
    bits = int(number[0]) if number else {"FLOAT": 32, "DOUBLE": 64, "BOOL": 8}.get(name)
    return None if bits is None else -(-math.prod(max(extent, 0) for extent in tensor.dims) * bits // 8)


def read_content(model: Path | ModelProto | bytes, folder: Path | None = None) -> ModelContent:
    """Read a model from its file, from memory or from its bytes.

    folder
        Folder of external data; for a file, it is the file's own folder, with links followed.

    Raise ModelError, also if external data is missing, truncated or outside the folder.
    """
    bases = [] if folder is None else [folder]
    if isinstance(model, Path):
        folder = model.resolve().parent
        bases = [folder, model.absolute().parent]  # a link to a model may be next to links to its data
        proto = _parsed(_read(model))
    elif isinstance(model, ModelProto):
        proto = ModelProto()
        proto.CopyFrom(model)
    else:
        proto = _parsed(model)
    if not proto.HasField("graph"):
        raise ModelError("is no ONNX model, or cut off: it holds no graph")
    return ModelContent(proto, folder, None if folder is None else _base(proto, folder, bases))


def _parsed(data: bytes) -> ModelProto:
    """Parse a serialized model. Raise ModelError."""
    if not data:
        raise ModelError("is empty")
    if is_pointer(data[:4096]):
        raise ModelError("is a Git LFS pointer, not a model (git lfs pull)")
    try:
        proto: ModelProto = ModelProto.FromString(data)
        return proto
    except DecodeError:
        raise ModelError("is no ONNX model, or cut off") from None


def _base(proto: ModelProto, folder: Path, bases: Sequence[Path]) -> Path:
    """Return the folder that has all of a model's external data. Raise ModelError if there is none."""
    errors = []
    for base in bases:
        try:
            for tensor in tensors_of(proto):
                _require_data(tensor, base, folder)
        except ValueError as error:
            errors.append(error)
        else:
            return base
    raise ModelError(f"cannot be read: {one_line(str(errors[0]), 300)}")


def _require_data(tensor: TensorProto, base: Path, folder: Path) -> None:
    """Raise ValueError if a tensor's external data is missing or too short."""
    if tensor.data_location != TensorProto.EXTERNAL:
        return
    location, size = place_of(tensor, base, folder), _bytes_of(tensor)
    if size is not None and location.length < size:
        text = f"{location.path.name!r} has {location.length} bytes, the tensor takes {size}"
        raise ValueError(f"external data of {tensor.name!r} in {text}")


def _read(path: Path) -> bytes:
    try:
        if not path.is_file():  # reading a pipe would never end
            raise ModelError("is no file" if path.exists() else "does not exist")
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}") from None
