"""Cases of MaskedLeaky."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases import Violation, register
from onnxspec.cases.axes import set_to
from onnxspec.reference import Node

from ..leaky import LeakyFamily, LeakySpec
from ..reference_masked import OP

VIOLATIONS = tuple(
    Violation(f"attributes.{name}", "load", f"{name} is {value!r}", set_to(name, value))
    for name, value in (("direction", "up"), ("function", "Tan"))
)


@dataclass(frozen=True)
class MaskedSpec(LeakySpec):
    direction: str = "forward"
    function: str = "Identity"
    unasked: tuple[str, ...] = ()
    type_M = "int32"  # noqa: N815 - the mask's type parameter
    op = OP

    @property
    def num_directions(self) -> int:  # type: ignore[override]
        return 2 if self.direction == "bidirectional" else 1

    @property
    def node(self) -> Node:
        node = super().node
        return replace(node, outputs=tuple(name for name in node.outputs if name not in self.unasked))


class MaskedFamily(LeakyFamily):
    operators = (OP,)
    spec = MaskedSpec
    forbidden = VIOLATIONS

    def profile(self, name: str, op: str, version: int) -> Sequence[MaskedSpec]:
        ways = itertools.product(("forward", "reverse", "bidirectional"), (("mask",), ()), ("Identity", "Relu"))
        unasked: Any = itertools.cycle(((), ("Y_last",), ("Y",)))
        plain = MaskedSpec(batch_size=3, input_size=2, decay=0.75)
        legal = [
            replace(plain, seq_length=3 + k % 3, seed=k, direction=direction, absent=absent, function=function,
                    unasked=next(unasked))
            for k, (direction, absent, function) in enumerate(ways)
        ]  # fmt: skip
        return legal[:6] if name == "smoke" else [*legal, *(MaskedSpec(illegal=v.id) for v in VIOLATIONS)]

    def draw(self, spec: MaskedSpec, name: str, shape: tuple[int, ...], key: str) -> NDArray[Any]:
        drawn = super().draw(spec, name, shape, key)
        return np.where(drawn > -0.25, 1, 0) if name == "mask" else drawn + 0.5  # Relu keeps most numbers

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        marks = {
            "masked": "mask" in inputs,
            "relu": node.attributes.get("function") == "Relu",
            "Y-absent": "Y" not in node.outputs,
        }
        direction = str(node.attributes.get("direction", "forward"))
        return frozenset({direction, *(name for name, there in marks.items() if there)})


register(MaskedFamily())
