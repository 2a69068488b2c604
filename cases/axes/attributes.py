"""Types of a node's attributes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_LARGEST = float(np.finfo(np.float32).max)


def finite_float32(value: object) -> bool:
    """Tell whether a value is a finite number that a float32 attribute can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST


def list_of(values: object, holds: Callable[[object], bool]) -> bool:
    """Tell whether values are a tuple, not empty, of values that pass `holds`. An empty list means no attribute."""
    return isinstance(values, tuple) and values != () and all(map(holds, values))
