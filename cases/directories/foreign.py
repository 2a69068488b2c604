"""Trials of third-party models: the nodes that the readers find, with the inputs of the graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from ...reference import Node
from ...reference.operators.asking import returned_in_order
from ..specs.case import Feed, Trial
from ..specs.subject import Subject
from .graph_reading import NodeGraph


def trials_of(key: str, model: bytes, read: NodeGraph, fed: Sequence[Mapping[str, NDArray[Any]]]) -> tuple[Trial, ...]:
    """Return the trial of a model and, if the model does not return the Y of every node, its companion with all
    outputs.

    fed
        For each run, arrays by name of graph input.

    Raise KeyError for a graph input that is neither fed nor a constant.
    """
    feeds, subject, lone_node = tuple(Feed(read.bind(arrays), arrays) for arrays in fed), read.subject, read.lone
    first, companion = subject.nodes[0], f"{key}~companion"
    if len(subject.nodes) == 1:
        formal = {name: output for output, name in (first.outputs or {}).items()}
        node = replace(first.node, outputs=tuple(formal[name] for name in subject.shown))
        own_feeds = tuple(Feed(first.inputs_from(feed.inputs), feed.fed) for feed in feeds)
        trial = Trial(key, model, node, own_feeds)
        if lone_node is None or "Y" in node.outputs:
            return (trial,)
        everything = replace(node, outputs=node.operator.outputs)
        return trial, Trial(companion, _with_all_outputs(model, node), everything, own_feeds)
    trial = Trial(key, model, first.node, feeds, graph=subject)
    shows_all = all((bound.outputs or {}).get("Y", "") in subject.shown for bound in subject.nodes)
    if shows_all or any(bound.node.codecs for bound in subject.nodes):
        return (trial,)
    made = [name for bound in subject.nodes for name in (bound.outputs or {}).values()]
    shown = (*subject.shown, *(name for name in made if name not in subject.shown))
    graph = Subject(subject.nodes, shown)
    return trial, Trial(companion, _showing(model, shown), first.node, feeds, graph=graph)


def _showing(model: bytes, names: Sequence[str]) -> bytes:
    """Return the model with additional node outputs as graph outputs. All have one type."""
    proto = onnx.load_model_from_string(model)
    kind = proto.graph.output[0].type.tensor_type.elem_type
    shown = {value.name for value in proto.graph.output}
    proto.graph.output.extend(helper.make_tensor_value_info(n, kind, None) for n in names if n not in shown)
    # Write known shapes: onnx's full check refuses outputs without a shape.
    inferred = {value.name: value for value in onnx.shape_inference.infer_shapes(proto).graph.output}
    for value in proto.graph.output:
        value.CopyFrom(inferred.get(value.name, value))
    return bytes(proto.SerializeToString(deterministic=True))


def alone(trial: Trial) -> Iterator[Trial]:
    """Yield every node of a trial as a single-node trial, with inputs computed by the specifications of earlier
    nodes."""
    if trial.graph is None:
        yield trial
        return
    tensors = [dict(feed.inputs) for feed in trial.feeds]
    for number, bound in enumerate(trial.graph.nodes, 1):
        inputs = [bound.inputs_from(named) for named in tensors]
        yield replace(trial, node=bound.node, feeds=tuple(Feed(named, {}) for named in inputs), graph=None)
        if number < len(trial.graph.nodes):
            for named, given in zip(tensors, inputs, strict=True):
                outputs = returned_in_order(bound.node, given)
                named.update({bound.called(formal): array for formal, array in outputs.items()})


def _with_all_outputs(model: bytes, asking: Node) -> bytes:
    """Return the model with every output of its node, in the operator's order."""
    proto = onnx.load_model_from_string(model)
    graph = proto.graph
    node = next(n for n in graph.node if n.op_type == asking.op_type)
    shown = {value.name: value for value in graph.output}
    layout = 1 if asking.attributes.get("layout") == 1 else 0
    kind = next(iter(shown.values())).type.tensor_type.elem_type
    taken = {name for n in graph.node for name in (*n.input, *n.output)}
    asked = dict(zip(asking.operator.outputs, node.output, strict=False))
    names, values = [], []
    for formal in asking.operator.outputs:
        name = asked.get(formal, "")
        if not name:
            name = next(n for n in (formal, *(f"{formal}_{k}" for k in range(len(taken) + 1))) if n not in taken)
            taken.add(name)
        names.append(name)
        # Sizes stay open, because symbolic sizes of the model are unknown here.
        form = asking.operator.tensors.get(formal)
        sizes = None if form is None else [None] * len(form.shape(layout))
        values.append(shown.get(name) or helper.make_tensor_value_info(name, kind, sizes))
    del node.output[:], graph.output[:]
    node.output.extend(names)
    graph.output.extend(values)
    return bytes(proto.SerializeToString(deterministic=True))
