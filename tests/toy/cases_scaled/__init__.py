"""Cases of Scaled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnxspec.cases import SimpleFamily, SimpleSpec, register
from onnxspec.reference import Node

from ..reference_scaled import Scaled  # noqa: F401 - registers it


@dataclass(frozen=True)
class ScaledSpec(SimpleSpec):
    batch_size: int = 2
    channels: int = 3
    length: int = 4
    unasked: tuple[str, ...] = ()
    op = "Scaled"

    @property
    def node(self) -> Node:
        node = super().node
        return replace(node, outputs=tuple(name for name in node.outputs if name not in self.unasked))


class ScaledFamily(SimpleFamily):
    operators = ("Scaled",)
    spec = ScaledSpec

    def profile(self, name: str, op: str, version: int) -> Sequence[ScaledSpec]:
        return [ScaledSpec(length=L, seed=L, unasked=unasked) for L in (1, 4) for unasked in (("total",), ())]

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({"forward"})


register(ScaledFamily())
