"""Values that attributes of an ExtendedLSTM cannot have, as far as a look at a model tells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...documents.operators import OperatorVersion
from ...documents.tensors import Stated
from ...recurrent.node import text_of
from ..written import Diagnostic, Written


@dataclass(frozen=True)
class Given:
    """The attributes of a node as they are given, each of its kind."""

    operator: OperatorVersion
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...] = ()

    def given(self, name: str) -> Any:
        """Text as text, also where it is bytes."""
        value = self.attributes.get(name)
        return text_of(value) if isinstance(value, bytes) else value

    def chosen(self, name: str) -> Any:
        """The value as it is given; else the default."""
        return self.given(name) if name in self.attributes else self.operator.defaults.get(name)


def codecs_of(operator: OperatorVersion) -> Mapping[str, Stated]:
    """Attributes that say how tensors are quantized, by tensor."""
    return {name: form.codec for name, form in operator.tensors.items() if isinstance(form.codec, Stated)}


def diagnostics(written: Written) -> Iterator[Diagnostic]:
    """The breaches of a node's attributes, each of its kind."""
    codecs = codecs_of(written.operator)
    for tensor, codec in codecs.items():
        for name in (codec.scale, codec.zero_point) if tensor in written.operator.inputs else ():
            if name not in written.attributes:
                yield Diagnostic("scales.required", f"attribute {name} is missing, and there is no default for it")
    if "direction" not in written.attributes:
        what = "there is no direction, so it would be forward: only bidirectional is supported"
        yield Diagnostic("directions.default", what)
    elif (direction := written.given("direction")) not in ("bidirectional", None):
        yield Diagnostic("directions.supported", f"direction is {direction!r}: only bidirectional is supported")
    for name, topic in (("input_forget", "input-forget"), ("layout", "layout")):
        value = written.given(name)
        if value not in (0, None):
            yield Diagnostic(topic, f"{name} is {value}: only 0 is supported")
    for codec in codecs.values():
        scale, zero_point = written.given(codec.scale), written.given(codec.zero_point)
        if scale is not None and not 0 < np.float32(scale) < math.inf:
            yield Diagnostic("scales.range", f"{codec.scale} is {scale:g}: a scale is positive and finite")
        if zero_point is not None and not 0 <= zero_point < 2**codec.bits:
            what = f"{codec.zero_point} is {zero_point}: it lies between 0 and {2**codec.bits - 1}"
            yield Diagnostic("zero-points.range", what)
