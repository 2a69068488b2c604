"""Cases of Leaky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from onnxspec.cases import OwnFamily, OwnSpec, Violation, register
from onnxspec.cases.axes import uniform
from onnxspec.reference import Node

from ..reference_leaky import DOMAIN

WITHOUT = Violation("attributes.decay", "load", "there is no decay", lambda draft: draft.attributes.clear())


@dataclass(frozen=True)
class LeakySpec(OwnSpec):
    T: int = 4
    N: int = 2
    I: int = 3
    decay: float = 0.5
    seed: int = 0
    illegal: str = ""
    op = "Leaky"

    @property
    def marks(self) -> tuple[str, ...]:
        return (f"T{self.T}",)

    @property
    def node(self) -> Node:
        return Node(self.op, 1, {"decay": self.decay}, ("Y",), DOMAIN)

    @property
    def size(self) -> tuple[float, int]:
        return float(self.T * self.N * self.I), 0


class LeakyFamily(OwnFamily):
    operators: tuple[str, ...] = ("Leaky",)
    spec = LeakySpec
    forbidden = (WITHOUT,)

    def profile(self, name: str, op: str, version: int) -> Sequence[LeakySpec]:
        legal = [LeakySpec(T, seed=T) for T in (1, 2, 4, 7)]
        return [*legal, *([LeakySpec(illegal=WITHOUT.id)] if name != "smoke" else [])]

    def inputs(self, spec: LeakySpec) -> dict[str, Any]:
        return {"X": uniform(f"{spec.op}/X/{spec.seed}", (spec.T, spec.N, spec.I), 24, 0).astype(np.float32)}

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({"forward"})


register(LeakyFamily())
