"""Size limits of a test case, checked before anything is read or allocated.

A third-party directory may hold a file of twenty gigabytes, or a hundred bytes that describe as much: a shape, a tensor
whose data is elsewhere, a sequence of a billion steps. Such a directory costs only itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

CASE_BYTES = 512 << 20
"""Default limit of a test case in bytes: file sizes, and sizes of tensors by their shapes.

A layer of 2048 units takes 128 MiB, and data is held four times: as bytes, messages, arrays and a job.
"""

DEPTH = 64
"""Greatest depth of folders below the requested one. Paths end at 4,096 characters anyway."""

# The cost of judging a case grows with its steps and with the multiplications in them. A step takes at least about
# 300 us, so the default limit allows 40 seconds of steps, and 2**38 multiplications, about a minute.
_BYTES_A_STEP = 1 << 12
_MULTIPLY_ADDS_A_BYTE = 1 << 9


class TooLarge(ValueError):
    """A test case exceeds its limit; the message names the cause and the limit."""


class Room:
    """Remaining bytes that a test case may use."""

    def __init__(self, size: int = CASE_BYTES) -> None:
        self.size = size
        self._left = size

    def take(self, count: int, what: str) -> None:
        """Reserve `count` bytes. Raise TooLarge if they do not fit."""
        if count > self._left:
            raise TooLarge(f"{what}: {count} bytes, and of {self.size} that a test case may have {self._left} are left")
        self._left -= count

    def fit(self, dims: Iterable[int], width: int, what: str) -> None:
        """Check that a tensor of this shape would fit. Raise TooLarge.

        A 0 counts as 1, because a dimension may be iterated over even if another one is empty.
        """
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
    """Return the number of steps that are judged if a case may have `size` bytes."""
    return size // _BYTES_A_STEP


def multiply_adds_in(size: int) -> int:
    """Return the number of multiplications of weights that are judged if a case may have `size` bytes."""
    return size * _MULTIPLY_ADDS_A_BYTE
