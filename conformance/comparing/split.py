"""A model split at its recurrent nodes: the reference evaluates these, onnxruntime all nodes between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, NodeProto, helper, inliner
from onnx.checker import ValidationError

from ...cases.directories.reading import NotOneNode, attributes_of, by_position, operator_meant
from ...cases.specs.model import array_of
from ...reference import CELLS, IllegalNode, Node, evaluate
from ..models.content import ModelError, read_content
from ..models.execution import ExecutionError, outputs_of, serialized
from ..models.inference import MOST_EXPANDED, main_scope
from ..models.scope import domain_of, names_read
from ..workers.process import TargetProcess

Array = NDArray[Any]
Arrays = Mapping[str, Array]


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


@dataclass(frozen=True)
class SplitModel:
    """A model whose recurrent nodes are evaluated separately."""

    model: ModelProto
    nodes: tuple[RecurrentNode, ...]

    @classmethod
    def read(cls, path: Path) -> SplitModel:
        """Read a model with its external data, and inline its functions.

        Raise ModelError if the file is not a model or has no recurrent node in its main graph.
        """
        content = read_content(path)
        if main_scope(content).model.expanded > MOST_EXPANDED:
            raise ModelError("has functions that call themselves, or each other too often")
        model = content.whole()
        if model.functions:
            try:
                model = inliner.inline_local_functions(model)
            except (RuntimeError, ValidationError) as error:
                raise ModelError(f"cannot be inlined: {' '.join(str(error).split())[:200]}") from None
        nodes = tuple(
            _recurrent(model, proto)
            for proto in model.graph.node
            if proto.op_type in CELLS and not domain_of(proto.domain)
        )
        if not nodes:
            raise ModelError(f"has no {', '.join(CELLS)} node in its main graph")
        return cls(model, nodes)


def _recurrent(model: ModelProto, proto: NodeProto) -> RecurrentNode:
    name = proto.name or next((output for output in proto.output if output), proto.op_type)
    try:
        operator = operator_meant(model, proto)
        inputs = by_position(proto.input, operator.inputs, "inputs")
        outputs = by_position(proto.output, operator.outputs, "outputs")
        node = Node(operator.op_type, operator.since_version, attributes_of(proto, operator), operator.outputs)
    except (IllegalNode, NotOneNode) as error:
        raise ModelError(f"has a node {name} that is not legal: {error}") from None
    return RecurrentNode(name, node, inputs, outputs)


class Evaluator:
    """Values of a model's tensors, with some of its recurrent nodes changed.

    The values of the unchanged model are cached: a changed node costs only the nodes behind it.
    """

    def __init__(self, split: SplitModel, given: Arrays, process: TargetProcess) -> None:
        self._split, self._process, self.given = split, process, given
        initializers = {tensor.name: tensor for tensor in split.model.graph.initializer if tensor.name not in given}
        self._constants = {name: array_of(tensor) for name, tensor in initializers.items()}
        self._models: dict[tuple[tuple[str, ...], frozenset[str]], tuple[bytes, list[str]]] = {}
        self.before: list[dict[str, Array]] = []
        """For each recurrent node, its inputs by formal name in the model as it is."""
        self._known = [{**self._constants, **given}]
        for node in split.nodes:
            values = dict(self._known[-1])
            inputs = self._inputs(node, values)
            self.before.append(inputs)
            values.update(_named(node, evaluated(node.node, inputs)))
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
            values.update(_named(node, outputs))
        return self._between(names, values)

    def _inputs(self, node: RecurrentNode, values: Arrays) -> dict[str, Array]:
        found = self._between(list(node.inputs.values()), values)
        return {formal: found[name] for formal, name in node.inputs.items()}

    def _between(self, names: Sequence[str], values: Arrays) -> dict[str, Array]:
        """Return tensors that follow from known ones without a recurrent node."""
        missing = tuple(dict.fromkeys(name for name in names if name not in values))
        computed: dict[str, Array] = {}
        if missing:
            key = missing, frozenset(values)
            if key not in self._models:
                self._models[key] = self._part(missing, values)
            model, needed = self._models[key]
            arrays = outputs_of(self._process, model, missing, {name: values[name] for name in needed})
            if none := [name for name, array in arrays.items() if array is None]:
                raise ExecutionError(f"{none[0]} is no tensor of numbers")
            computed = {name: np.asarray(array) for name, array in arrays.items()}
        return {name: values[name] if name in values else computed[name] for name in names}

    def _part(self, names: Sequence[str], values: Arrays) -> tuple[bytes, list[str]]:
        """Return the model of the nodes between known tensors and wanted ones, and the names of its inputs."""
        whole, wanted, nodes = self._split.model, set(names), list[NodeProto]()
        for node in reversed(whole.graph.node):
            if any(name in wanted and name not in values for name in node.output):
                nodes.append(node)
                wanted.update(names_read([node]))
        nodes.reverse()
        read = dict.fromkeys(names_read(nodes))
        needed = [name for name in read if name in values and name not in self._constants]
        part = ModelProto(ir_version=whole.ir_version, opset_import=whole.opset_import)
        part.graph.name = whole.graph.name
        part.graph.node.extend(nodes)
        for name in needed:
            element = helper.np_dtype_to_tensor_dtype(values[name].dtype)
            part.graph.input.append(helper.make_tensor_value_info(name, element, None))
        part.graph.initializer.extend(
            t for t in whole.graph.initializer if t.name in read and t.name in self._constants
        )
        return serialized(part, names), needed


def evaluated(node: Node, inputs: Arrays) -> dict[str, Array]:
    """Return all outputs of a node by the reference, in the type of X. Raise ExecutionError for an illegal node."""
    try:
        with np.errstate(all="ignore"):
            return {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, dict(inputs)).items()}
    except IllegalNode as error:
        raise ExecutionError(f"{node.op_type} is illegal with these inputs: {error}") from None


def _named(node: RecurrentNode, outputs: Arrays) -> dict[str, Array]:
    """Return a node's outputs by the names that they have in the model."""
    return {name: outputs[formal] for formal, name in node.outputs.items()}
