"""A model split at its recurrent nodes: the reference evaluates these, onnxruntime everything between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from numpy.typing import NDArray
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, inliner, numpy_helper

from ...reference import CELLS, IllegalNode, Node, UnknownOperator, evaluate
from ...reference.errors import UserError
from ..targets.target import parse_target
from ..workers.process import Job, TargetProcess, TargetUnavailable

Array = NDArray[Any]
Arrays = Mapping[str, Array]


class ComparisonError(UserError):
    """The model and the arrays cannot be compared; the text says why, in one line."""


@dataclass(frozen=True)
class RecurrentNode:
    """A recurrent node of the model's main graph.

    name
        The node's name, or the name of its first output.
    node
        The node as the reference evaluates it.
    inputs, outputs
        By formal name, the name of the tensor in the model.
    """

    name: str
    node: Node
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]

    def with_attributes(self, **changed: Any) -> RecurrentNode:
        """Return the node with other attributes; None takes one away."""
        attributes = {k: v for k, v in {**self.node.attributes, **changed}.items() if v is not None}
        return replace(self, node=replace(self.node, attributes=attributes))


@dataclass(frozen=True)
class SplitModel:
    """A model whose recurrent nodes are evaluated apart.

    Raises ComparisonError from :meth:`read` for a file that is no model or has no recurrent node in its main graph.
    """

    model: ModelProto
    nodes: tuple[RecurrentNode, ...]
    constants: Mapping[str, Array] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> SplitModel:
        """Read a model with its external data, and inline its functions."""
        try:
            model = onnx.load(str(path))
            if model.functions:
                model = inliner.inline_local_functions(model)
        except OSError as error:
            raise ComparisonError(f"{path} cannot be read: {error.strerror or error}") from None
        except (DecodeError, ValueError, RuntimeError, onnx.checker.ValidationError) as error:
            raise ComparisonError(f"{path} is no ONNX model: {' '.join(str(error).split())[:200]}") from None
        opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0)
        nodes = tuple(
            _recurrent(proto, opset)
            for proto in model.graph.node
            if proto.op_type in CELLS and proto.domain in ("", "ai.onnx")
        )
        if not nodes:
            raise ComparisonError(f"{path} has no {', '.join(CELLS)} node in its main graph")
        constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
        return cls(model, nodes, constants)

    @property
    def inputs(self) -> dict[str, ValueInfoProto]:
        """The inputs that somebody must give, by name."""
        return {value.name: value for value in self.model.graph.input if value.name not in self.constants}

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the model's outputs."""
        return tuple(value.name for value in self.model.graph.output)

    @property
    def tensors(self) -> frozenset[str]:
        """Names of all tensors that the main graph computes."""
        return frozenset(name for node in self.model.graph.node for name in node.output if name)


def _recurrent(proto: NodeProto, opset: int) -> RecurrentNode:
    name = proto.name or next((output for output in proto.output if output), proto.op_type)
    try:
        version = onnx.defs.get_schema(proto.op_type, opset, "").since_version
        attributes = {a.name: _plain(helper.get_attribute_value(a)) for a in proto.attribute}
        formal = Node(proto.op_type, version).operator
        outputs = {f: n for f, n in zip(formal.outputs, proto.output, strict=False) if n}
        node = Node(proto.op_type, version, attributes, tuple(formal.outputs))
    except (IllegalNode, UnknownOperator, onnx.defs.SchemaError) as error:
        raise ComparisonError(f"{name} is not legal: {error}") from None
    inputs = {f: n for f, n in zip(formal.inputs, proto.input, strict=False) if n}
    return RecurrentNode(name, node, inputs, outputs)


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, list):
        return tuple(_plain(each) for each in value)
    return value


class Evaluator:
    """Values of a model's tensors, with some of its recurrent nodes changed.

    The values of the model as it is are kept: a changed node costs only what comes behind it.
    """

    def __init__(self, split: SplitModel, given: Arrays, process: TargetProcess) -> None:
        self._split, self._process = split, process
        self._models: dict[tuple[tuple[str, ...], tuple[str, ...]], bytes] = {}
        self.before: list[dict[str, Array]] = []
        """For each recurrent node, its inputs by formal name in the model as it is."""
        self._known = [{**split.constants, **given}]
        for node in split.nodes:
            values = dict(self._known[-1])
            inputs = self._inputs(node, values)
            self.before.append(inputs)
            values.update(outputs_of(node, evaluated(node.node, inputs)))
            self._known.append(values)

    def wanted(self, names: Sequence[str], changes: Mapping[int, Any] | None = None) -> dict[str, Array]:
        """Return tensors of the model, with changes of nodes by their number.

        A change has ``outputs(node, inputs)``, which returns the node's outputs by formal name.
        """
        changes = changes or {}
        first = min(changes, default=len(self._split.nodes))
        values = dict(self._known[first])
        for number, node in list(enumerate(self._split.nodes))[first:]:
            inputs = self._inputs(node, values)
            change = changes.get(number)
            outputs = change.outputs(node, inputs) if change is not None else evaluated(node.node, inputs)
            values.update(outputs_of(node, outputs))
        return self._between(names, values)

    def _inputs(self, node: RecurrentNode, values: Arrays) -> dict[str, Array]:
        found = self._between(list(node.inputs.values()), values)
        return {formal: found[name] for formal, name in node.inputs.items()}

    def _between(self, names: Sequence[str], values: Arrays) -> dict[str, Array]:
        """Return tensors that follow from known ones without a recurrent node."""
        missing = tuple(dict.fromkeys(name for name in names if name not in values))
        computed: dict[str, Array] = {}
        if missing:
            needed = self._needed(missing, values)
            model = self._models.get((missing, needed))
            if model is None:
                model = self._models[missing, needed] = self._part(missing, needed, values)
            (outcome,) = self._process.run([Job("part", model, ({name: values[name] for name in needed},))])
            if outcome.status != "ran" or outcome.malformed:
                raise ComparisonError(f"onnxruntime does not run the model: {outcome.message or outcome.malformed}")
            arrays = dict(zip(missing, outcome.outputs[0][0], strict=True))
            if none := [name for name, array in arrays.items() if array is None]:
                raise ComparisonError(f"{none[0]} is no tensor of numbers")
            computed = {name: np.asarray(array) for name, array in arrays.items()}
        return {name: values[name] if name in values else computed[name] for name in names}

    def _nodes(self, names: Sequence[str], values: Arrays) -> list[NodeProto]:
        """Return the nodes between known tensors and wanted ones, in the model's order."""
        wanted, kept = set(names), []
        for node in reversed(self._split.model.graph.node):
            if any(name in wanted and name not in values for name in node.output):
                kept.append(node)
                wanted.update(_read(node))
        return kept[::-1]

    def _needed(self, names: Sequence[str], values: Arrays) -> tuple[str, ...]:
        read = dict.fromkeys(name for node in self._nodes(names, values) for name in _read(node))
        return tuple(name for name in read if name in values and name not in self._split.constants)

    def _part(self, names: Sequence[str], needed: Sequence[str], values: Arrays) -> bytes:
        whole = self._split.model
        nodes = self._nodes(names, values)
        read = {name for node in nodes for name in _read(node)}
        part = ModelProto()
        part.CopyFrom(whole)
        del part.graph.node[:], part.graph.input[:], part.graph.output[:], part.graph.initializer[:]
        part.graph.node.extend(nodes)
        for name in needed:
            kind = helper.np_dtype_to_tensor_dtype(values[name].dtype)
            part.graph.input.append(helper.make_tensor_value_info(name, kind, None))
        part.graph.output.extend(ValueInfoProto(name=name) for name in names)
        part.graph.initializer.extend(t for t in whole.graph.initializer if t.name in read)
        return bytes(part.SerializeToString())


def _graphs(attribute: onnx.AttributeProto) -> Iterator[GraphProto]:
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def _read(node: NodeProto) -> Iterator[str]:
    """Yield the names that a node reads, in the graphs that it holds too."""
    yield from node.input
    for attribute in node.attribute:
        for graph in _graphs(attribute):
            for inner in graph.node:
                yield from _read(inner)
            yield from (value.name for value in graph.output)


def evaluated(node: Node, inputs: Arrays) -> dict[str, Array]:
    """Return all outputs of a node by the reference, in the type of X. Raises ComparisonError for an illegal node."""
    try:
        with np.errstate(all="ignore"):
            return {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, dict(inputs)).items()}
    except IllegalNode as error:
        raise ComparisonError(f"{node.op_type} is illegal with these inputs: {error}") from None


def outputs_of(node: RecurrentNode, outputs: Arrays) -> dict[str, Array]:
    """Return a node's outputs by the names that they have in the model."""
    return {name: outputs[formal] for formal, name in node.outputs.items()}


@contextmanager
def evaluator(split: SplitModel, given: Arrays) -> Iterator[Evaluator]:
    """Evaluate a model on onnxruntime's CPU but for its recurrent nodes. Raises ComparisonError."""
    try:
        with TargetProcess(parse_target("onnxruntime"), repeats=1) as process:
            process.start()
            yield Evaluator(split, given, process)
    except TargetUnavailable as error:
        raise ComparisonError(f"onnxruntime, which runs the rest of the model, cannot start: {error}") from None
