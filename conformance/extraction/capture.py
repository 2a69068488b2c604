"""Captured inputs of nodes: the model is run once, with the inputs of its nodes as outputs of its graph.

A name inside a graph cannot be an output of the model. So it is passed outwards, through the outputs of the node that
holds the graph, or calls the function. The other branch of an If returns an empty vector in its place. Loop and Scan
stack the values.

The changed model works only in onnxruntime, which infers types and shapes of outputs itself: names inside a graph have
no declared ones. It is not written to a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from ..models.content import ModelContent
from ..models.execution import ExecutionError, onnxruntime_process, outputs_of, require_inputs, serialized
from ..models.scope import Scope, all_nodes, key_called, key_of
from .portable import Array, PortableNode

ITERATIONS = 3
"""Limit of the iterations of a Loop or Scan that become data sets; the first ones are kept."""


CapturedInputs = Sequence[Mapping[str, Array]] | str
"""Inputs of one node: arrays by formal input for every run that is kept; for a node that did not run, the reason."""


def capture(content: ModelContent, nodes: Sequence[PortableNode], fed: Mapping[str, Array]) -> list[CapturedInputs]:
    """Return the inputs of nodes in a run of the model, on onnxruntime's CPU provider.

    fed
        By name of the model's inputs.

    Raise ExecutionError.
    """
    require_inputs(content.proto, fed)
    try:
        return _captured(content, nodes, fed)
    except ExecutionError:
        if len(nodes) < 2:
            raise
    captures: list[CapturedInputs] = []  # one by one: a failure for one node does not affect the others
    for node in nodes:
        try:
            captures += _captured(content, [node], fed)
        except ExecutionError as error:
            captures.append(f"no data: {error}")
    if all(isinstance(captured, str) for captured in captures):
        raise ExecutionError(str(captures[0]))
    return captures


def _captured(content: ModelContent, nodes: Sequence[PortableNode], fed: Mapping[str, Array]) -> list[CapturedInputs]:
    whole = content.whole()
    threads = [_Thread(whole, node) for node in nodes]
    _ask_for_all(whole)
    names = list(dict.fromkeys(name for thread in threads for name in thread.tensors.values()))
    model = serialized(whole, names)
    with onnxruntime_process() as process:
        arrays = outputs_of(process, model, names, fed)
    return [thread.result(arrays) for thread in threads]


def _ask_for_all(whole: ModelProto) -> None:
    """Make every call of a function name all of its outputs: onnxruntime requires names for the new ones everywhere."""
    counts = {key_of(function): len(function.output) for function in whole.functions}
    number = 0
    for node in all_nodes([*whole.graph.node, *(node for function in whole.functions for node in function.node)]):
        while len(node.output) < counts.get(key_called(node), 0):
            node.output.append(f"onnxspec/unused/{number}")
            number += 1


class _Thread:
    """The input names of one node, passed outwards to the model's outputs."""

    def __init__(self, whole: ModelProto, node: PortableNode) -> None:
        self._whole, self._node, self._count = whole, node, 0
        self._key = f"onnxspec/{node.path}"
        scope = node.located.scope
        self._stacked = 0
        default = helper.np_dtype_to_tensor_dtype(np.dtype(np.float32))
        self.tensors: dict[str, str] = {}
        for formal, name in node.flowing.items():
            element = scope.type_of(name).element
            if element is None and scope.owner is not None:
                raise ExecutionError(f"the element type of {formal} of {node.path} is not known")
            self.tensors[formal] = self._out(scope, self._given(scope, name), element or default)

    def _new(self) -> str:
        self._count += 1
        return f"{self._key}/{self._count}"

    def _given(self, scope: Scope, name: str) -> str:
        """Add an Identity with a new name in the node's scope.

        The tensor itself may be an input or come from outside.
        """
        new = self._new()
        self._body(scope).node.append(helper.make_node("Identity", [name], [new]))
        return new

    def _out(self, scope: Scope, name: str, element: int) -> str:
        """Pass a name outwards to the main graph, and return its name there."""
        self._stacked = 0
        while scope.owner is not None:
            owner = scope.owner
            holder = self._body(owner.scope).node[owner.number]
            body, outer = self._body(scope), self._new()
            if not owner.attribute:  # a call: other calls of the function may lack the new output
                assert isinstance(body, FunctionProto)
                if name not in body.output:
                    body.output.append(name)
                position = list(body.output).index(name)
                unused = [self._new() for _ in range(position - len(holder.output))]
                holder.output.extend([*unused, outer])
            else:
                for attribute in holder.attribute:
                    if attribute.name == owner.attribute:
                        attribute.g.output.append(ValueInfoProto(name=name))
                    elif holder.op_type == "If" and attribute.HasField("g"):
                        attribute.g.output.append(ValueInfoProto(name=self._nothing(attribute.g, element)))
                self._stacked += holder.op_type != "If"
                holder.output.append(outer)
            scope, name = owner.scope, outer
        return name

    def _nothing(self, graph: GraphProto, element: int) -> str:
        new = self._new()
        value = TensorProto(data_type=element, dims=[0], raw_data=b"")
        graph.node.append(helper.make_node("Constant", [], [new], value=value))
        return new

    def _body(self, scope: Scope) -> GraphProto | FunctionProto:
        """Return the graph or function of a scope in the model that will be run."""
        if scope.owner is None:
            return self._whole.graph
        holder: NodeProto = self._body(scope.owner.scope).node[scope.owner.number]
        if not scope.owner.attribute:
            function: FunctionProto = next(f for f in self._whole.functions if key_of(f) == key_called(holder))
            return function
        graph: GraphProto = next(a.g for a in holder.attribute if a.name == scope.owner.attribute)
        return graph

    def result(self, arrays: Mapping[str, Array | None]) -> CapturedInputs:
        """Return the captured inputs, from the outputs of the model."""
        captured = {formal: arrays[name] for formal, name in self.tensors.items()}
        tensors = {formal: array for formal, array in captured.items() if array is not None}
        if len(tensors) < len(captured):
            return "no data: the values there are no tensor of numbers"
        shapes = {array.shape[bool(self._stacked) :] for array in tensors.values()}
        if shapes == {(0,)} or not all(map(len, tensors.values() if self._stacked else ())):
            return "no data: the branch that it is in was not taken with these inputs"
        if self._stacked > 1:
            return "no data: it is in a loop inside a loop"
        if not self._stacked or not tensors:
            return [tensors]
        count = min(ITERATIONS, *map(len, tensors.values()))
        return [{formal: np.asarray(array[k], order="C") for formal, array in tensors.items()} for k in range(count)]
