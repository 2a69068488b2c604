"""Cases of an operator that somebody else brings: all that goes without saying of one node and its inputs."""

from __future__ import annotations

import copy
import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper

from ..reference import Node, document_of, operator_version
from .axes.violation import Draft, Violation
from .simple.model import in_places
from .specs.case import Case, Feed, Trial
from .specs.family import Family
from .specs.tensor import element_type

Array = NDArray[Any]

_BESIDE = 17
"""The opset of ONNX's own operators beside one of another domain."""


class OwnSpec:
    """A case as a value: base of a frozen dataclass, whose fields are what cases differ in. One is ``illegal``, the id
    of what is forbidden in the model, empty for a legal one.

    op, version, type
        What it is a case of.
    marks
        Words of its id.
    """

    op: str
    illegal: str
    version = 1
    type = "float32"
    graded = False
    shows_pattern = True

    @property
    def marks(self) -> tuple[str, ...]:
        return ()

    @property
    def node(self) -> Node:
        """The node, before its violation."""
        raise NotImplementedError

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    @property
    def id(self) -> str:
        broken = (f"illegal-{self.illegal}",) if self.illegal else ()
        first = f"{document_of(self.op).prefix}-{self.version}"
        return ".".join((first, self.type, *filter(None, self.marks), *broken, self.digest[:6]))

    @property
    def size(self) -> tuple[float, int]:
        """Smaller is simpler to look at."""
        return 1.0, 0

    @property
    def spoils(self) -> bool:
        return bool(self.illegal)

    def to_json(self) -> dict[str, Any]:
        fields: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return fields


class OwnFamily(Family):
    """Cases of one operator. What is abstract here is all that must be said.

    forbidden
        What breaks a model: each with a change of a draft's attributes, inputs or outputs.
    """

    forbidden: Sequence[Violation] = ()

    @abstractmethod
    def inputs(self, spec: Any) -> dict[str, Array]:
        """The inputs of a case by their formal names, those that are there; the same bytes every time."""

    @abstractmethod
    def node_features(self, node: Node, inputs: Mapping[str, Array]) -> frozenset[str]: ...

    def build(self, spec: Any) -> Case:
        """One session of one run; of a forbidden model, and where the first output is not asked for, with a
        companion."""
        inputs, node = self.inputs(spec), spec.node
        if foreign := [name for name in inputs if name not in node.operator.inputs]:
            raise ValueError(f"inputs() gives {foreign[0]!r}, which {node.operator.name} has not")
        for name, array in inputs.items():
            shapes = node.operator.tensors[name].shapes
            if not any(len(shape) == array.ndim for shape in shapes):
                by_form = " or ".join(f"({', '.join(map(str, shape))})" for shape in shapes)
                raise ValueError(f"inputs() gives {name} as {array.shape}, and by its form it is {by_form}")
        legal = _trial(spec.id, node, inputs)
        companion = f"{spec.id}~companion"
        if spec.illegal:
            violation = next(one for one in self.forbidden if one.id == spec.illegal)
            draft = Draft(node.operator, 0, dict(node.attributes), dict(inputs), list(node.outputs))
            violation.change(draft)
            broken = copy.copy(node)  # to make it anew would raise
            for name, value in (("attributes", draft.attributes), ("outputs", tuple(draft.outputs))):
                object.__setattr__(broken, name, value)
            trial = replace(_trial(spec.id, broken, draft.inputs), violation=violation)
            return Case(spec, trial, replace(legal, key=companion))
        if node.operator.outputs[0] in node.outputs:
            return Case(spec, legal, None)
        return Case(spec, legal, _trial(companion, replace(node, outputs=node.operator.outputs), inputs))

    def features(self, spec: Any) -> frozenset[str]:
        """Features of its node; of a forbidden model what it breaks."""
        if not spec.illegal:
            return self.node_features(spec.node, self.inputs(spec))
        topic = next(one.topic for one in self.forbidden if one.id == spec.illegal)
        return frozenset({"illegal", f"illegal:{topic}"})

    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Features that some case has."""
        return frozenset().union(*map(self.features, self.profile("full", op, version)))

    def content(self, spec: Any) -> Iterator[bytes]:
        """The model and its inputs."""
        trial = self.build(spec).trial
        yield trial.model
        for feed in trial.feeds:
            yield from (array.tobytes() for _, array in sorted(feed.inputs.items()))

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        return self.forbidden


def _trial(key: str, node: Node, inputs: Mapping[str, Array]) -> Trial:
    return Trial(key, _model(node, inputs), node, (Feed(inputs, inputs),))


def _model(node: Node, inputs: Mapping[str, Array]) -> bytes:
    """The serialized model of a node: all inputs are fed."""
    operator = operator_version(node.op_type, node.since_version, node.domain)
    sizes: dict[str, Any] = {}
    types: dict[str, np.dtype[Any]] = {}
    for name in filter(inputs.__contains__, operator.inputs):
        form, array = operator.tensors[name], inputs[name]
        types.setdefault(form.kind, array.dtype)
        sizes |= {e.size: n for e, n in zip(form.shape(rank=array.ndim), array.shape, strict=True) if e.times == 1}

    def shown(name: str) -> Any:
        form = operator.tensors.get(name) or operator.tensors[operator.outputs[0]]  # one too many is like the first
        shape = [sizes.get(e.size, str(e)) if e.times == 1 else str(e) for e in form.shape()]
        return helper.make_tensor_value_info(name, element_type(types[form.kind]), shape)

    given, asked = in_places(operator.inputs, inputs), in_places(operator.outputs, node.outputs)
    made = helper.make_node(node.op_type, given, asked, "node", domain=node.domain or None, **node.attributes)
    fed = [helper.make_tensor_value_info(n, element_type(a.dtype), a.shape) for n, a in inputs.items()]
    graph = helper.make_graph([made], "case", fed, [shown(name) for name in node.outputs])
    opsets = [helper.make_opsetid("", _BESIDE), helper.make_opsetid(node.domain, node.since_version)]
    model = helper.make_model(graph, producer_name="onnxspec", opset_imports=opsets, ir_version=8)
    return bytes(model.SerializeToString(deterministic=True))
