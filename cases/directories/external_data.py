"""External data: tensors in a file beside their model. Only files in the model's own folder are read."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import Message
from onnx import ModelProto, TensorProto, helper

CASE_BYTES = 512 << 20
"""Limit of a test case in bytes: file sizes, and sizes of tensors by their shapes.

A layer of 2048 units takes 128 MiB, and data is held four times: as bytes, messages, arrays and a job.
"""

DEPTH = 64
"""Greatest depth of folders below the requested one. Paths end at 4,096 characters anyway."""

MOST_STEPS, MOST_MULTIPLY_ADDS = 1 << 17, 1 << 38
"""Steps and multiplications of weights that are judged of a test case.

A step takes at least about 300 us, so these are 40 seconds and about a minute.
"""


class TooLarge(ValueError):
    """A test case exceeds its limit; the message names the cause and the limit."""


class Room:
    """Remaining bytes that a test case may use."""

    def __init__(self, size: int = CASE_BYTES) -> None:
        self.size = size
        self._left = size

    def take(self, count: int, name: str) -> None:
        """Reserve `count` bytes. Raise TooLarge if they do not fit."""
        if count > self._left:
            raise TooLarge(f"{name}: {count} bytes, and of {self.size} that a test case may have {self._left} are left")
        self._left -= count

    def fit(self, dims: Iterable[int], width: int, name: str) -> None:
        """Check that a tensor of this shape would fit. Raise TooLarge.

        A 0 counts as 1, because a dimension may be iterated over even if another one is empty.
        """
        shape = tuple(dims)
        if math.prod(max(extent, 1) for extent in shape) * width > self.size:
            shown = str(shape[:8])[:100]
            raise TooLarge(f"{name}: has shape {shown}, more than the {self.size} bytes that a test case may have")

    def read(self, path: Path, name: str) -> bytes:
        """Return the content of a file. Raise TooLarge before reading it, and OSError."""
        self.take(path.stat().st_size, name)
        with path.open("rb") as file:
            content = file.read(self.size + 1)
        if len(content) > self.size:
            raise TooLarge(f"{name}: grows while it is read")
        return content


_POINTER = b"version https://git-lfs"
"""The beginning of the small file that Git LFS leaves in place of a large file that is not fetched."""
_LARGEST_POINTER = 1024


class OutsideData(ValueError):
    """A tensor's data is outside the folder that a model may read."""


def take_in(proto: ModelProto | TensorProto, base: Path, folder: Path, room: Room) -> bool:
    """Replace every reference to external data by the data; return whether there was one.

    base
        The folder to which locations are relative.
    folder
        The folder that may be read, with everything below it; links must stay inside.
    room
        Limit of the size.

    Raise OutsideData or TooLarge; ValueError if a file is missing, not a regular file, or too short.
    """
    replaced = False
    for tensor in tensors_of(proto):
        room.fit(tensor.dims, _width(tensor), f"tensor {tensor.name!r}")
        if tensor.data_location == TensorProto.EXTERNAL:
            replaced = True
            content = content_of(tensor, base, folder, room)
            del tensor.external_data[:]
            tensor.data_location = TensorProto.DEFAULT
            tensor.raw_data = content
    return replaced


def content_of(tensor: TensorProto, base: Path, folder: Path, room: Room) -> bytes:
    """Return the bytes that a tensor refers to; arguments and errors are those of :func:`take_in`."""
    location = place_of(tensor, base, folder)
    room.take(location.length, f"external data of {tensor.name!r}")
    try:
        with location.path.open("rb") as file:
            file.seek(location.start)
            content: bytes = file.read(location.length)
            return content
    except OSError as error:
        raise _unreadable(tensor, error) from None


class Place(NamedTuple):
    """Location of a tensor's bytes in a file."""

    path: Path
    start: int
    length: int


def place_of(tensor: TensorProto, base: Path, folder: Path) -> Place:
    """Find the bytes that a tensor refers to, without reading them; arguments and errors are those of :func:`take_in`.

    Without a length, they are the rest of the file.
    """
    named = f"external data of {tensor.name!r}"
    entries = {entry.key: os.fsdecode(entry.value) for entry in tensor.external_data}  # bytes where it is not UTF-8
    location = entries.get("location", "")
    if not location or "\0" in location:
        raise ValueError(f"{named} names no file")
    if "\\" in location or Path(location).is_absolute():
        raise OutsideData(f"{named} is outside the folder: {location!r}")
    try:
        path = (base / location).resolve()
        if not path.is_relative_to(folder.resolve()):
            raise OutsideData(f"{named} is outside the folder: {location!r}")
        if not path.is_file():
            raise ValueError(f"{named} is missing: {location!r}")
        offset, length = (_count(tensor, key, entries.get(key)) for key in ("offset", "length"))
        size = path.stat().st_size
        if size <= _LARGEST_POINTER and is_pointer(path.read_bytes()):
            raise ValueError(f"{named} is not here: {location!r} is a Git LFS pointer (git lfs pull)")
    except (OSError, RuntimeError) as error:  # RuntimeError: circular links, before Python 3.13
        raise _unreadable(tensor, error) from None
    start = offset or 0
    count = max(size - start, 0) if length is None else length
    if start + count > size:
        raise ValueError(f"{named} is cut off: {location!r} has {size} bytes")
    return Place(path, start, count)


def is_pointer(content: bytes) -> bool:
    """Return whether a file is a Git LFS pointer."""
    return len(content) <= _LARGEST_POINTER and content.startswith(_POINTER)


def _unreadable(tensor: TensorProto, error: Exception) -> ValueError:
    location = next((entry.value for entry in tensor.external_data if entry.key == "location"), "")
    reason = getattr(error, "strerror", None) or error
    return ValueError(f"external data of {tensor.name!r} cannot be read: {location!r}: {reason}")


def _width(tensor: TensorProto) -> int:
    """Return the number of bytes of an element; 1 for an unknown type."""
    try:
        return int(helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize)
    except (KeyError, TypeError, ValueError):
        return 1


def _count(tensor: TensorProto, key: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isdecimal() and text.isascii() and len(text) < 19):
        raise ValueError(f"external data of {tensor.name!r} has {key} {text!r}")
    return int(text)


def tensors_of(message: Message) -> Iterator[TensorProto]:
    """Yield every tensor of a model: initializers and tensors in attributes, also in subgraphs and functions.

    Tensors of training_info are left out, because inference does not use them.
    """
    if isinstance(message, TensorProto):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is not None and field.name != "training_info":
            for part in [value] if isinstance(value, Message) else value:
                yield from tensors_of(part)
