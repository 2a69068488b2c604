"""Trials of models that were made elsewhere: what :mod:`.interpretation` reads, with what its graph is fed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import onnx
from numpy.typing import NDArray
from onnx import helper

from ..specs.case import Feed, Trial
from .reading import OneNode

__all__ = ["trials_of"]


def trials_of(key: str, model: bytes, read: OneNode, fed: Sequence[Mapping[str, NDArray[Any]]]) -> tuple[Trial, ...]:
    """The trial of a model of one node, and where it does not show Y, its companion with all outputs.

    fed
        For each run, arrays by name of graph input.

    Raises KeyError where a graph input is neither fed nor a constant.
    """
    feeds = tuple(Feed(read.bind(arrays), arrays) for arrays in fed)
    trial = Trial(key, model, read.node, feeds)
    if "Y" in read.node.outputs:
        return (trial,)
    everything = read.node.operator.outputs
    companion = Trial(f"{key}~companion", _with_all_outputs(model, read), replace(read.node, outputs=everything), feeds)
    return trial, companion


def _with_all_outputs(model: bytes, read: OneNode) -> bytes:
    """The model with every output of its node asked for, in the operator's order."""
    proto = onnx.load_model_from_string(model)
    graph = proto.graph
    node = next(n for n in graph.node if n.op_type == read.node.op_type)
    shown = {value.name: value for value in graph.output}
    layout = 1 if read.node.attributes.get("layout") == 1 else 0
    kind = next(iter(shown.values())).type.tensor_type.elem_type
    taken = {name for n in graph.node for name in (*n.input, *n.output)}
    asked = dict(zip(read.node.operator.outputs, node.output, strict=False))
    names, values = [], []
    for formal in read.node.operator.outputs:
        name = asked.get(formal, "")
        if not name:
            name = next(n for n in (formal, *(f"{formal}_{k}" for k in range(len(taken) + 1))) if n not in taken)
            taken.add(name)
        names.append(name)
        # Its sizes stay open: what is symbolic in the model is not known here.
        form = read.node.operator.tensors.get(formal)
        sizes = None if form is None else [None] * len(form.shape(layout))
        values.append(shown.get(name) or helper.make_tensor_value_info(name, kind, sizes))
    del node.output[:], graph.output[:]
    node.output.extend(names)
    graph.output.extend(values)
    return bytes(proto.SerializeToString(deterministic=True))
