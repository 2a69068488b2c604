"""Cases of Leaky."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from onnxspec.cases import SimpleFamily, SimpleSpec, Violation, register
from onnxspec.reference import Node

from ..reference_leaky import DOMAIN  # noqa: F401 - registers it

WITHOUT = Violation("attributes.decay", "load", "there is no decay", lambda draft: draft.attributes.clear())


@dataclass(frozen=True)
class LeakySpec(SimpleSpec):
    seq_length: int = 4
    batch_size: int = 2
    input_size: int = 3
    decay: float = 0.5
    num_directions = 1
    op = "Leaky"


class LeakyFamily(SimpleFamily):
    operators: tuple[str, ...] = ("Leaky",)
    spec: type[LeakySpec] = LeakySpec
    sequence = "seq_length"
    forbidden: Sequence[Violation] = (WITHOUT,)

    def profile(self, name: str, op: str, version: int) -> Sequence[LeakySpec]:
        legal = [self.spec(seq_length=T, seed=T) for T in (1, 2, 4, 7)]
        return [*legal, *([self.spec(illegal=WITHOUT.id)] if name != "smoke" else [])]

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({"forward"})


register(LeakyFamily())
