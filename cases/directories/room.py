"""Size limits of a test case, checked before anything is read or allocated.

A foreign directory may hold a file of twenty gigabytes, or a hundred bytes that stand for as much: a shape, a tensor
whose data is elsewhere, a sequence of a billion steps. Each costs only itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

CASE_BYTES = 512 << 20
"""Default limit of a test case in bytes: files as they are, tensors by their shapes. A layer of 2048 units takes 128
MiB, and data is held four times: as bytes, messages, arrays and a job."""

DEPTH = 64
"""Folders below the one that was asked for. Paths end at 4,096 characters anyway."""

# The cost of judging a case grows with its steps and with the multiplications in them. A step takes some 300 us
# at least, so the usual room allows 40 seconds of those; and 2**38 multiplications, about a minute.
_BYTES_A_STEP = 1 << 12
_MULTIPLY_ADDS_A_BYTE = 1 << 9


class TooLarge(ValueError):
    """A test case exceeds its limit; the message names the cause and the limit."""


class Room:
    """The rest of the bytes that a test case may take."""

    def __init__(self, size: int = CASE_BYTES) -> None:
        self.size = size
        self._left = size

    def take(self, count: int, what: str) -> None:
        """Make sure that there is room for so many bytes more. Raises TooLarge."""
        if count > self._left:
            raise TooLarge(f"{what}: {count} bytes, and of {self.size} that a test case may have {self._left} are left")
        self._left -= count

    def fit(self, dims: Iterable[int], width: int, what: str) -> None:
        """Check that a tensor of this shape could be held, with 1 for every 0, since a dimension may be iterated over
        though another one is empty. Raise TooLarge."""
        shape = tuple(dims)
        if math.prod(max(extent, 1) for extent in shape) * width > self.size:
            shown = str(shape[:8])[:100]
            raise TooLarge(f"{what}: has shape {shown}, more than the {self.size} bytes that a test case may have")

    def read(self, path: Path, what: str) -> bytes:
        """Return the content of a file. Raise TooLarge before reading it, and OSError."""
        self.take(path.stat().st_size, what)
        with path.open("rb") as file:
            content = file.read(self.size + 1)
        if len(content) > self.size:
            raise TooLarge(f"{what}: grows while it is read")
        return content


def steps_in(size: int) -> int:
    """Steps of a sequence that are judged where a case may have `size` bytes."""
    return size // _BYTES_A_STEP


def multiply_adds_in(size: int) -> int:
    """Multiplications of weights that are judged where a case may have `size` bytes."""
    return size * _MULTIPLY_ADDS_A_BYTE
