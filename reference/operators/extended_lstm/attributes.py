"""What attributes of an ExtendedLSTM cannot be, as far as a look at a model tells."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ..written import Complaint, Written

__all__ = ["complaints"]

_HIGHEST = 65535
_REQUIRED = tuple(f"{name}_{part}" for name in "xwrb" for part in ("scale", "zero_point"))


def complaints(written: Written) -> Iterator[Complaint]:
    """What is wrong with a node's attributes, each of its kind."""
    for name in _REQUIRED:
        if name not in written.attributes:
            yield Complaint("scales.required", f"attribute {name} is missing, and there is no default for it")
    if "direction" not in written.attributes:
        what = "there is no direction, so it would be forward: only bidirectional is supported"
        yield Complaint("directions.default", what)
    elif (direction := written.given("direction")) not in ("bidirectional", None):
        yield Complaint("directions.supported", f"direction is {direction!r}: only bidirectional is supported")
    for name, topic in (("input_forget", "input-forget"), ("layout", "layout")):
        value = written.given(name)
        if value not in (0, None):
            yield Complaint(topic, f"{name} is {value}: only 0 is supported")
    for name in "xwrby":
        scale, zero_point = written.given(f"{name}_scale"), written.given(f"{name}_zero_point")
        if scale is not None and not 0 < scale < math.inf:
            yield Complaint("scales.range", f"{name}_scale is {scale:g}: a scale is positive and finite")
        if zero_point is not None and not 0 <= zero_point <= _HIGHEST:
            what = f"{name}_zero_point is {zero_point}: it lies between 0 and {_HIGHEST}"
            yield Complaint("zero-points.range", what)
