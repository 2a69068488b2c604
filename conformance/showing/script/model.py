"""The model of a case, as statements of its script that make it by onnx.helper."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import onnx

from ....cases import Case, Trial
from ....reference import Node
from .literals import array_text, plain, quoted_names, shortest, wrapped


def model_of(case: Case) -> Iterator[str]:
    """Return source that makes the case's model with onnx.helper."""
    model = onnx.load_model_from_string(case.trial.model)
    graph = model.graph
    kind = onnx.TensorProto.DataType.Name

    def info(value: onnx.ValueInfoProto) -> str:
        tensor = value.type.tensor_type
        shape = f"[{', '.join(map(_dimension, tensor.shape.dim))}]" if tensor.HasField("shape") else "None"
        words = f'"{value.name}", TensorProto.{kind(tensor.elem_type)}, {shape}'
        return f"helper.make_tensor_value_info({words})"

    given = {name for feed in case.trial.feeds for name in feed.inputs}
    for tensor in graph.initializer:
        if tensor.name not in given:
            yield from wrapped(f"{tensor.name} = {_constant(tensor)}")
    nodes = [_node(node, own) for node, own in zip(graph.node, _own(case.trial, graph.node), strict=True)]
    if len(nodes) == 1:
        yield from wrapped(f"node = {nodes[0]}")
    else:
        yield "nodes = ["
        for text in nodes:
            yield from wrapped(f"    {text},")
        yield "]"
    for name, values in (("inputs", graph.input), ("outputs", graph.output)):
        yield f"{name} = ["
        yield from (f"    {info(value)}," for value in values)
        yield "]"
    constants = ", ".join(f'"{tensor.name}": {tensor.name}' for tensor in graph.initializer)
    raw = "bits(array)" if case.spec.type == "bfloat16" else "array"
    if constants:
        type_ = f"TensorProto.{kind(graph.initializer[0].data_type)}"
        if len({tensor.data_type for tensor in graph.initializer}) > 1:
            type_ = "helper.np_dtype_to_tensor_dtype(array.dtype)"
            if case.spec.type == "bfloat16":
                type_ = f"TensorProto.BFLOAT16 if array.dtype == np.float32 else {type_}"
        made = f"helper.make_tensor(name, {type_}, array.shape, {raw}.tobytes(), raw=True)"
        yield from ("weights = [", f"    {made}", f"    for name, array in {{{constants}}}.items()", "]")
    several = "nodes" if len(nodes) > 1 else "[node]"
    yield f'graph = helper.make_graph({several}, "{graph.name}", inputs, outputs{", weights" * bool(constants)})'
    opsets = ", ".join(f'helper.make_opsetid("{opset.domain}", {opset.version})' for opset in model.opset_import)
    yield f"opsets = [{opsets}]"
    made = f"graph, opset_imports=opsets, ir_version={model.ir_version}, producer_name={plain(model.producer_name)}"
    yield f"model = helper.make_model({made})"
    yield f"NAMES = {quoted_names([value.name for value in graph.output])}"


def _dimension(dimension: onnx.TensorShapeProto.Dimension) -> str:
    """Return a dimension for onnx.helper; None is an unknown one."""
    given = dimension.WhichOneof("value")
    return repr(None) if given is None else json.dumps(getattr(dimension, given))


def _own(trial: Trial, nodes: Sequence[onnx.NodeProto]) -> Iterator[Node | None]:
    """Nodes of a graph that the case is about, each in its place: the last of its kind where it is one."""
    named = {bound.name: bound.node for bound in trial.subject.nodes}
    last = max((place for place, node in enumerate(nodes) if node.op_type == trial.node.op_type), default=-1)
    for place, node in enumerate(nodes):
        if trial.subject.is_lone:
            yield trial.node if place == last else None
        else:
            yield named.get(node.name)


def _node(node: onnx.NodeProto, own: Node | None) -> str:
    """Return an expression for a node; one of the case has the case's attributes."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if own is not None:
        attributes = dict(own.attributes)
    words = "".join(f", {name}={plain(value)}" for name, value in sorted(attributes.items()))
    domain = f', domain="{node.domain}"' if node.domain else ""
    names = f"{quoted_names(node.input)}, {quoted_names(node.output)}"
    return f'helper.make_node("{node.op_type}", {names}, name="{node.name}"{domain}{words})'


def _constant(tensor: onnx.TensorProto) -> str:
    """Return an expression for a scale or a zero point."""
    array = onnx.numpy_helper.to_array(tensor)
    return array_text(array if array.dtype.kind in "iu" else shortest(array), array.dtype.name)
