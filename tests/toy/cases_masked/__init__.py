"""Cases of MaskedLeaky."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxspec.cases import Violation, register
from onnxspec.cases.axes import set_to, uniform
from onnxspec.reference import Node

from ..cases_leaky import LeakyFamily, LeakySpec
from ..reference_leaky import DOMAIN
from ..reference_masked import OP

VIOLATIONS = tuple(
    Violation(f"attributes.{name}", "load", f"{name} is {value!r}", set_to(name, value))
    for name, value in (("direction", "up"), ("function", "Tan"))
)


@dataclass(frozen=True)
class MaskedSpec(LeakySpec):
    direction: str = "forward"
    masked: bool = False
    function: str = "Identity"
    outputs: tuple[str, ...] = ("Y", "Y_last")
    op = OP

    @property
    def marks(self) -> tuple[str, ...]:
        masked = "masked" if self.masked else ""
        return (self.direction, masked, self.function, "-".join(self.outputs), f"T{self.T}")

    @property
    def node(self) -> Node:
        given = {"decay": self.decay, "direction": self.direction, "function": self.function}
        return Node(OP, 1, given, self.outputs, DOMAIN)


class MaskedFamily(LeakyFamily):
    operators = (OP,)
    spec = MaskedSpec
    forbidden = VIOLATIONS  # type: ignore[assignment]

    def profile(self, name: str, op: str, version: int) -> Sequence[MaskedSpec]:
        ways = itertools.product(("forward", "reverse", "bidirectional"), (False, True), ("Identity", "Relu"))
        outputs = itertools.cycle((("Y", "Y_last"), ("Y",), ("Y_last",)))
        legal = [
            MaskedSpec(3 + k % 3, 3, 2, 0.75, k, "", direction, masked, function, next(outputs))
            for k, (direction, masked, function) in enumerate(ways)
        ]
        return legal[:6] if name == "smoke" else [*legal, *(MaskedSpec(illegal=v.id) for v in VIOLATIONS)]

    def inputs(self, spec: LeakySpec) -> dict[str, Any]:
        inputs = super().inputs(spec)
        if isinstance(spec, MaskedSpec) and spec.masked:
            drawn = uniform(f"{OP}/mask/{spec.seed}", (spec.T, spec.N), 24, 0)
            inputs["mask"] = (drawn > -0.25).astype(np.int32)
        return inputs

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        marks = {
            "masked": "mask" in inputs,
            "relu": node.attributes.get("function") == "Relu",
            "Y-absent": "Y" not in node.outputs,
        }
        direction = str(node.attributes.get("direction", "forward"))
        return frozenset({direction, *(name for name, there in marks.items() if there)})


register(MaskedFamily())
