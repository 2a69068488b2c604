"""Cases of Scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxspec.cases import OwnFamily, OwnSpec, register
from onnxspec.cases.axes import uniform
from onnxspec.reference import Node

from ..reference_leaky import DOMAIN
from ..reference_scaled import Scaled  # noqa: F401 - registers it


@dataclass(frozen=True)
class ScaledSpec(OwnSpec):
    N: int = 2
    C: int = 3
    L: int = 4
    seed: int = 0
    outputs: tuple[str, ...] = ("output", "total")
    illegal: str = ""
    op = "Scaled"

    @property
    def marks(self) -> tuple[str, ...]:
        return ("-".join(self.outputs), f"L{self.L}")

    @property
    def node(self) -> Node:
        return Node(self.op, 1, {}, self.outputs, DOMAIN)


class ScaledFamily(OwnFamily):
    operators = ("Scaled",)
    spec = ScaledSpec

    def profile(self, name: str, op: str, version: int) -> Sequence[ScaledSpec]:
        return [ScaledSpec(L=L, seed=L, outputs=o) for L in (1, 4) for o in (("output",), ("output", "total"))]

    def inputs(self, spec: ScaledSpec) -> dict[str, Any]:
        input = uniform(f"Scaled/input/{spec.seed}", (spec.N, spec.C, spec.L), 24, 0).astype(np.float32)
        return {"input": input, "gain": uniform(f"Scaled/gain/{spec.seed}", (spec.C,), 24, 0).astype(np.float32)}

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({"forward"})


register(ScaledFamily())
