"""Captured inputs of nodes: the model is run once, with the inputs of its nodes as outputs of its graph.

A name inside a graph cannot be an output of the model. So it is passed outwards, through the outputs of the node that
holds the graph, or calls the function. The other branch of an If returns an empty vector in its place. Loop and Scan
stack the values.

The changed model works only in onnxruntime, which infers types and shapes of outputs itself: names inside a graph have
no declared ones. It is not written to a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count

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
    exposed = [_expose(whole, node) for node in nodes]
    _ask_for_all(whole)
    names = list(dict.fromkeys(name for tensors in exposed for name in tensors.values()))
    model = serialized(whole, names)
    with onnxruntime_process() as process:
        arrays = outputs_of(process, model, names, fed)
    return [
        _runs({formal: arrays[name] for formal, name in tensors.items()}, _loops_around(node.subject.located.scope))
        for node, tensors in zip(nodes, exposed, strict=True)
    ]


def _ask_for_all(whole: ModelProto) -> None:
    """Make every call of a function name all of its outputs: onnxruntime requires names for the new ones everywhere."""
    counts = {key_of(function): len(function.output) for function in whole.functions}
    number = 0
    for node in all_nodes([*whole.graph.node, *(node for function in whole.functions for node in function.node)]):
        while len(node.output) < counts.get(key_called(node), 0):
            node.output.append(f"onnxspec/unused/{number}")
            number += 1


def _expose(whole: ModelProto, node: PortableNode) -> dict[str, str]:
    """Pass the inputs of a node that are not constant outwards; return their names in the main graph."""
    numbers, exposed = count(), {}

    def new() -> str:
        return f"onnxspec/{node.path}/{next(numbers)}"

    for formal, name in node.flowing.items():
        scope = node.subject.located.scope
        element = scope.type_of(name).element
        if element is None and scope.owner is not None:
            raise ExecutionError(f"the element type of {formal} of {node.path} is not known")
        passed = new()  # the tensor itself may be an input or come from outside
        _body(whole, scope).node.append(helper.make_node("Identity", [name], [passed]))
        while scope.owner is not None:
            owner, body, outer = scope.owner, _body(whole, scope), new()
            holder = _body(whole, owner.scope).node[owner.number]
            if not owner.attribute:  # a call: other calls of the function may lack the new output
                assert isinstance(body, FunctionProto)
                if passed not in body.output:
                    body.output.append(passed)
                holder.output.extend(new() for _ in range([*body.output].index(passed) - len(holder.output)))
            for attribute in holder.attribute if owner.attribute else ():
                if attribute.name == owner.attribute:
                    attribute.g.output.append(ValueInfoProto(name=passed))
                elif holder.op_type == "If" and attribute.HasField("g"):
                    nothing = TensorProto(data_type=element, dims=[0], raw_data=b"")
                    attribute.g.node.append(helper.make_node("Constant", [], [new()], value=nothing))
                    attribute.g.output.append(ValueInfoProto(name=attribute.g.node[-1].output[0]))
            holder.output.append(outer)
            scope, passed = owner.scope, outer
        exposed[formal] = passed
    return exposed


def _body(whole: ModelProto, scope: Scope) -> GraphProto | FunctionProto:
    """Return the graph or function of a scope in the model that will be run."""
    if scope.owner is None:
        return whole.graph
    holder: NodeProto = _body(whole, scope.owner.scope).node[scope.owner.number]
    bodies: Iterator[GraphProto | FunctionProto] = (f for f in whole.functions if key_of(f) == key_called(holder))
    if scope.owner.attribute:
        bodies = (a.g for a in holder.attribute if a.name == scope.owner.attribute)
    return next(bodies)


def _loops_around(scope: Scope) -> int:
    """Return the number of loops around the nodes of a scope: each stacks the values that are passed outwards."""
    loops = 0
    while scope.owner is not None:
        loops += bool(scope.owner.attribute) and scope.owner.node.op_type != "If"
        scope = scope.owner.scope
    return loops


def _runs(captured: Mapping[str, Array | None], loops: int) -> CapturedInputs:
    """Return the inputs of each run, from outputs of the model."""
    tensors = {formal: array for formal, array in captured.items() if array is not None}
    if len(tensors) < len(captured):
        return "no data: the values there are no tensor of numbers"
    shapes = {array.shape[bool(loops) :] for array in tensors.values()}
    if shapes == {(0,)} or not all(map(len, tensors.values() if loops else ())):
        return "no data: the branch that it is in was not taken with these inputs"
    if loops > 1:
        return "no data: it is in a loop inside a loop"
    if not loops or not tensors:
        return [tensors]
    runs = min(ITERATIONS, *map(len, tensors.values()))
    return [{formal: np.asarray(array[k], order="C") for formal, array in tensors.items()} for k in range(runs)]
