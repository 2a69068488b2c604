"""Cases of MaskedLeaky."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from onnxspec.cases import Case, Feed, Trial, Violation, register
from onnxspec.cases.axes import uniform
from onnxspec.reference import Node

from ..cases_leaky import LeakyFamily, LeakySpec
from ..reference_leaky import DOMAIN
from ..reference_masked import OP

VIOLATIONS = tuple(
    Violation(f"attributes.{name}", "load", f"{name} is {value!r}", lambda draft: None)
    for name, value in (("direction", "up"), ("function", "Tan"))
)
_BROKEN = {"attributes.direction": {"direction": "up"}, "attributes.function": {"function": "Tan"}}
_FEATURES = frozenset({"forward", "reverse", "bidirectional", "masked", "relu", "Y-absent"})


@dataclass(frozen=True)
class MaskedSpec(LeakySpec):
    direction: str = "forward"
    masked: bool = False
    function: str = "Identity"
    outputs: tuple[str, ...] = ("Y", "Y_last")
    op = OP

    @property
    def id(self) -> str:
        marks = (self.direction, "masked" if self.masked else "", self.function, "-".join(self.outputs))
        words = ".".join(filter(None, (*marks, f"illegal-{self.illegal}" if self.illegal else "")))
        return f"maskedleaky-1.float32.{words}.T{self.T}.{self.digest[:6]}"

    @property
    def node(self) -> Node:
        given = {"decay": self.decay, "direction": self.direction, "function": self.function}
        return Node(OP, 1, given, self.outputs, DOMAIN)


class MaskedFamily(LeakyFamily):
    operators = (OP,)
    spec = MaskedSpec

    def profile(self, name: str, op: str, version: int) -> Sequence[MaskedSpec]:
        ways = itertools.product(("forward", "reverse", "bidirectional"), (False, True), ("Identity", "Relu"))
        outputs = itertools.cycle((("Y", "Y_last"), ("Y",), ("Y_last",)))
        legal = [
            MaskedSpec(3 + k % 3, 3, 2, 0.75, k, "", direction, masked, function, next(outputs))
            for k, (direction, masked, function) in enumerate(ways)
        ]
        return legal[:6] if name == "smoke" else [*legal, *(MaskedSpec(illegal=v.id) for v in VIOLATIONS)]

    def build(self, spec: MaskedSpec) -> Case:
        X = uniform(f"{OP}/X/{spec.seed}", (spec.T, spec.N, spec.I), 24, 0).astype(np.float32)
        inputs = {"X": X}
        if spec.masked:
            drawn = uniform(f"{OP}/mask/{spec.seed}", (spec.T, spec.N), 24, 0)
            inputs["mask"] = (drawn > -0.25).astype(np.int32)
        feeds = (Feed(inputs, inputs),)
        legal = Trial(spec.id, _model(inputs, spec.node, spec.node.attributes), spec.node, feeds)
        if not spec.illegal:
            whole = replace(spec.node, outputs=("Y", "Y_last"))
            companion = Trial(f"{spec.id}~companion", _model(inputs, whole, whole.attributes), whole, feeds)
            return Case(spec, legal, None if "Y" in spec.outputs else companion)
        broken = copy.copy(spec.node)
        object.__setattr__(broken, "attributes", {**spec.node.attributes, **_BROKEN[spec.illegal]})
        violation = next(v for v in VIOLATIONS if v.id == spec.illegal)
        trial = replace(legal, model=_model(inputs, broken, broken.attributes), node=broken, violation=violation)
        return Case(spec, trial, replace(legal, key=f"{spec.id}~companion"))

    def features(self, spec: MaskedSpec) -> frozenset[str]:
        if spec.illegal:
            return frozenset({"illegal", "illegal:attributes"})
        marks = {"masked": spec.masked, "relu": spec.function == "Relu", "Y-absent": "Y" not in spec.outputs}
        return frozenset({spec.direction, *(name for name, there in marks.items() if there)})

    def all_features(self, op: str, version: int) -> frozenset[str]:
        return _FEATURES | {"illegal", "illegal:attributes"}

    def node_features(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        marks = {"masked": "mask" in inputs, "relu": node.attributes.get("function") == "Relu"}
        direction = str(node.attributes.get("direction", "forward"))
        return frozenset({direction, *(name for name, there in marks.items() if there)})

    def content(self, spec: MaskedSpec) -> Iterator[bytes]:
        for _, array in sorted(self.build(spec).trial.feeds[0].inputs.items()):
            yield array.tobytes()

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        return VIOLATIONS


def _model(inputs: Mapping[str, Any], node: Node, attributes: Mapping[str, Any]) -> bytes:
    made = helper.make_node(
        OP, [*inputs], [name if name in node.outputs else "" for name in ("Y", "Y_last")], "leaky", domain=DOMAIN,
        **attributes,
    )  # fmt: skip
    while not made.output[-1]:
        made.output.pop()
    kinds = {"X": TensorProto.FLOAT, "mask": TensorProto.INT32}
    given = [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in inputs.items()]
    T, N, I = inputs["X"].shape
    D = 2 if node.attributes["direction"] == "bidirectional" else 1
    shapes = {"Y": [T, D, N, I], "Y_last": [D, N, I]}
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shapes[name]) for name in node.outputs]
    graph = helper.make_graph([made], "leaky", given, shown)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    model: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString(deterministic=True)
    return model


register(MaskedFamily())
