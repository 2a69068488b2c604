"""Expressions of Python for numbers, tensors and names, as a script has them."""

from __future__ import annotations

import base64
import textwrap
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH = 120
LITERAL = 12  # tensors of up to so many elements are written out


def array_text(values: NDArray[Any], dtype: str) -> str:
    """Return an expression for a tensor of few elements, without line breaks."""
    if not values.size:
        return f'np.zeros({values.shape}, "{dtype}")'
    words = (repr(v) if np.isfinite(v) else f"np.{v}".replace("np.-", "-np.") for v in values.ravel().tolist())
    return f'np.array([{", ".join(words)}], "{dtype}").reshape({values.shape})'


def wrapped(line: str) -> Iterator[str]:
    """Return a statement in lines of bounded length; one with packed numbers stays one line."""
    if len(line) <= WIDTH:
        yield line
    elif "unpacked(" in line:
        yield f"{line}  # noqa: E501"
    else:
        indent = " " * (len(line) - len(line.lstrip()) + 4)
        yield from textwrap.wrap(line, WIDTH, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)


def packed(values: NDArray[np.float64]) -> str:
    """Return an expression for many float64 numbers: see `unpacked`."""
    planes = np.ascontiguousarray(values, "<f8").view(np.uint8).reshape(-1, 8).T
    text = base64.b85encode(zlib.compress(planes.tobytes(), 9)).decode()
    return f'unpacked("{text}", {values.shape})'


def shortest(array: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers as float64 with the fewest digits that give the same tensor."""
    short = np.array([float(str(v)) for v in array.ravel()], np.float64).reshape(array.shape)
    same: bool = short.astype(array.dtype).tobytes() == array.tobytes()
    return short if same else array.astype(np.float64)


def quoted(words: str) -> str:
    """Return a text as Python source."""
    return f'"{words}"' if '"' not in words else repr(words)


def quoted_names(names: Any) -> str:
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"


def plain(value: Any) -> str:
    """Return an attribute's value as Python source."""
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, float) and not np.isfinite(value):
        return f'float("{value}")'
    return quoted_names(value) if isinstance(value, list) and value and isinstance(value[0], str) else repr(value)


def pair(number: NDArray[np.float64]) -> str:
    """Return an expression for value and radius, the latter rounded up to few digits."""
    value, radius = number
    if value.size <= LITERAL:
        return array_text(
            np.stack([value, np.array([_rounded_up(r) for r in radius.flat]).reshape(value.shape)]), "float64"
        )
    # Eight bits compress well.
    finite = np.isfinite(radius)
    fraction, exponent = np.frexp(np.where(finite, radius, 1.0))
    return packed(np.stack([value, np.where(finite, np.ldexp(np.ceil(fraction * 256), exponent - 8), np.inf)]))


def _rounded_up(radius: float) -> float:
    """Three digits, upwards."""
    short = float(f"{radius:.2e}")
    return short if short >= radius or not np.isfinite(radius) else float(f"{radius * 1.005:.2e}")
