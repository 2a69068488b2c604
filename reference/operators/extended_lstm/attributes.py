"""Invalid attribute values of an ExtendedLSTM, as far as the model file shows them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import numpy as np

from ...documents.operators import OperatorVersion
from ...documents.tensors import Stated
from ..written import Diagnostic


def codecs_of(operator: OperatorVersion) -> Mapping[str, Stated]:
    """Return the attributes that set the quantization of tensors, by tensor."""
    return {name: form.codec for name, form in operator.tensors.items() if isinstance(form.codec, Stated)}


def diagnostics(
    operator: OperatorVersion, attributes: Collection[str], given: Callable[[str], Any]
) -> Iterator[Diagnostic]:
    """Yield the violations in a node's attributes.

    attributes
        Names of the attributes that the node has.
    given
        Function from a name to the value; None if it is absent or of the wrong type.
    """
    codecs = codecs_of(operator)
    for tensor, codec in codecs.items():
        for name in (codec.scale, codec.zero_point) if tensor in operator.inputs else ():
            if name not in attributes:
                yield Diagnostic("scales.required", f"attribute {name} is missing, and there is no default for it")
    if "direction" not in attributes:
        message = "there is no direction, so it would be forward: only bidirectional is supported"
        yield Diagnostic("directions.default", message)
    elif (direction := given("direction")) not in ("bidirectional", None):
        yield Diagnostic("directions.supported", f"direction is {direction!r}: only bidirectional is supported")
    for name, topic in (("input_forget", "input-forget"), ("layout", "layout")):
        value = given(name)
        if value not in (0, None):
            yield Diagnostic(topic, f"{name} is {value}: only 0 is supported")
    for codec in codecs.values():
        scale, zero_point = given(codec.scale), given(codec.zero_point)
        if scale is not None and not 0 < np.float32(scale) < math.inf:
            yield Diagnostic("scales.range", f"{codec.scale} is {scale:g}: a scale is positive and finite")
        if zero_point is not None and not 0 <= zero_point < 2**codec.bits:
            message = f"{codec.zero_point} is {zero_point}: it lies between 0 and {2**codec.bits - 1}"
            yield Diagnostic("zero-points.range", message)
