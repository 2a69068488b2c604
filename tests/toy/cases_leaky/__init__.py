"""Cases of Leaky."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnxspec.cases import Case, Family, Feed, Trial, Violation, register
from onnxspec.cases.axes import uniform
from onnxspec.reference import Node

from ..reference_leaky import DOMAIN

WITHOUT = Violation("attributes.decay", "load", "there is no decay", lambda draft: None)


@dataclass(frozen=True)
class LeakySpec:
    T: int = 4
    N: int = 2
    I: int = 3
    decay: float = 0.5
    seed: int = 0
    illegal: str = ""
    op = "Leaky"
    version = 1
    type = "float32"
    graded = False
    shows_pattern = True

    @property
    def id(self) -> str:
        return f"leaky-1.float32.T{self.T}{'.illegal' if self.illegal else ''}.{self.digest[:6]}"

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def node(self) -> Node:
        return Node("Leaky", 1, {"decay": self.decay}, ("Y",), DOMAIN)

    @property
    def size(self) -> tuple[float, int]:
        return float(self.T * self.N * self.I), 0

    @property
    def spoils(self) -> bool:
        return bool(self.illegal)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


class LeakyFamily(Family):
    operators = ("Leaky",)
    spec = LeakySpec

    def profile(self, name: str, op: str, version: int) -> Sequence[LeakySpec]:
        legal = [LeakySpec(T, seed=T) for T in (1, 2, 4, 7)]
        return [*legal, *([LeakySpec(illegal=WITHOUT.id)] if name != "smoke" else [])]

    def build(self, spec: LeakySpec) -> Case:
        X = uniform(f"Leaky/X/{spec.seed}", (spec.T, spec.N, spec.I), 24, 0).astype(np.float32)
        legal = Trial(spec.id, _model(spec, spec.node.attributes), spec.node, (Feed({"X": X}, {"X": X}),))
        if not spec.illegal:
            return Case(spec, legal, None)
        broken = copy.copy(spec.node)
        object.__setattr__(broken, "attributes", {})
        trial = replace(legal, model=_model(spec, {}), node=broken, violation=WITHOUT)
        return Case(spec, trial, replace(legal, key=f"{spec.id}~companion"))

    def features(self, spec: LeakySpec) -> frozenset[str]:
        return frozenset({"illegal", "illegal:attributes"} if spec.illegal else {"forward"})

    def all_features(self, op: str, version: int) -> frozenset[str]:
        return frozenset({"illegal", "illegal:attributes", "forward"})

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        return frozenset({"forward"})

    def content(self, spec: LeakySpec) -> Iterator[bytes]:
        yield self.build(spec).trial.feeds[0].inputs["X"].tobytes()

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        return (WITHOUT,)


def _model(spec: LeakySpec, attributes: Mapping[str, Any]) -> bytes:
    node = helper.make_node("Leaky", ["X"], ["Y"], "leaky", domain=DOMAIN, **attributes)
    X = helper.make_tensor_value_info("X", TensorProto.FLOAT, [spec.T, spec.N, spec.I])
    Y = helper.make_tensor_value_info("Y", TensorProto.FLOAT, [spec.T, 1, spec.N, spec.I])
    graph = helper.make_graph([node], "leaky", [X], [Y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return made


register(LeakyFamily())
