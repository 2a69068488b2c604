"""Types that attributes of a node can hold."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

_LARGEST = float(np.finfo(np.float32).max)


def finite_float32(value: object) -> bool:
    """Tell whether a value is a finite number that an attribute, which holds float32, can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST


def list_of(values: object, holds: Callable[[object], bool]) -> bool:
    """Tell whether values are a tuple of what holds. No list of an attribute is empty: the attribute is absent then."""
    return isinstance(values, tuple) and values != () and all(map(holds, values))
