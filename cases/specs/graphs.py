"""Graphs: a case's node with a second one in the same session, and both are judged.

What goes wrong only where there are two is not seen in a lone node: buffers of states that two share, weights of equal
shape that are mixed up, a memory plan that overwrites what another node still needs.

=================  ================================================================================================
``chain``          the second gets Y of the first as its X; it has the same attributes, and weights of its own
``side-by-side``   both get the same X; the second has the same attributes, weights and states of the same shapes
``shared``         both have the same weights; the second has an X and states of its own
``two-operators``  as a chain, but the second is of another operator
=================  ================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper

from ...reference import operator_version, versions_of
from ..axes.tensors.size import HIGHEST_SEED
from ..axes.tensors.weights import CONSTANTS
from .case import Case, Feed, Spec, Trial
from .data import inputs_of
from .model import build_model
from .spec import RecurrentSpec
from .subject import Bound, Move, Source, Subject

__all__ = ["FIRST", "GRAPHS", "SECOND", "add_graph", "can_join", "join", "moving"]

Arrays = Mapping[str, NDArray[Any]]

GRAPHS = ("chain", "side-by-side", "shared", "two-operators")
"""Names of the graphs."""

FIRST, SECOND = "first", "second"

_CHAINS = ("chain", "two-operators")
_OTHER_SEED = 7919
"""Distance of the second node's seeds from the first's."""

# The first opset whose Squeeze, Transpose and Reshape take the type.
_MOVES = {"float32": 6, "float64": 6, "float16": 6, "bfloat16": 13}
_AXES_ARE_INPUTS = 13  # of Squeeze


def can_join(spec: Spec, name: str) -> bool:
    """Tell whether there is such a case. Raises KeyError for a name that is none of `GRAPHS`."""
    if name not in GRAPHS:
        raise KeyError(name)
    if not isinstance(spec, RecurrentSpec) or spec.illegal or spec.node.domain:
        return False  # what stands between has an opset in common with both
    needed = _MOVES[spec.type] if name in _CHAINS else 0
    # Outputs that the second one is to get must be asked of the first, and be there by its document.
    hands_on = name not in _CHAINS or ("Y" in spec.outputs and _announced(spec))
    return hands_on and needed <= spec.node.operator.last_opset and _second(spec, name) is not None


def _announced(spec: RecurrentSpec) -> bool:
    return "output_sequence" not in spec.node.operator.attributes or spec.output_sequence == 1


def join(case: Case, name: str) -> Case:
    """The case with a second node beside its own, its companion too. It must be one for which :func:`can_join`
    holds."""
    spec = case.spec
    assert isinstance(spec, RecurrentSpec)
    second = _second(spec, name)
    assert second is not None
    trials = [None if trial is None else _joined(trial, spec, second, name) for trial in (case.trial, case.companion)]
    assert trials[0] is not None
    return Case(spec, trials[0], trials[1])


def _second(spec: RecurrentSpec, name: str) -> RecurrentSpec | None:
    """The case that the second node is taken from; None where there is none."""
    seeds: dict[str, Any] = {
        "seed": (spec.seed + _OTHER_SEED) % HIGHEST_SEED,
        "weights_seed": (spec.weights_seed + _OTHER_SEED) % HIGHEST_SEED,
    }
    columns = spec.directions * spec.H if name in _CHAINS else spec.I
    try:
        if name != "two-operators":
            return replace(spec, I=columns, **seeds)
        op = _neighbour(spec)
        version = max(v for v in versions_of(op) if v <= _opset(spec, _MOVES[spec.type]))
        kept = ("type", "direction", "layout", "T", "N", "H", "bias", "lengths", "weights", "dimensions", "reruns")
        announced = "output_sequence" in operator_version(op, version).attributes
        return type(spec)(
            op,
            version,
            **{field: getattr(spec, field) for field in kept},
            **seeds,
            I=columns,
            initial="all",
            outputs=("Y", "Y_h"),
            output_sequence=1 if announced else None,
        )
    except ValueError:  # too large, or a type that the other operator does not take
        return None


def _neighbour(spec: RecurrentSpec) -> str:
    """The operator that stands before a case's own among those of its kind; for the first the second."""
    place = spec.operators.index(spec.op)
    return spec.operators[place - 1 if place else 1]


def _opset(spec: RecurrentSpec, needed: int) -> int:
    """The opset of a case's model in which there are operators of some opset."""
    operator = spec.node.operator
    return max(needed, operator.since_version if spec.opset == "first" else operator.last_opset)


def _joined(trial: Trial, spec: RecurrentSpec, second: RecurrentSpec, name: str) -> Trial:
    """A trial with the second node in its model."""
    runs = [0] if spec.reruns == "none" else [1, 0]
    tensors = [inputs_of(second, run) for run in runs]
    operator = second.node.operator
    # A companion asks for everything, of both.
    asked = operator.outputs if trial.node.outputs == spec.node.operator.outputs else second.outputs
    node = replace(second.node, outputs=asked)
    shared = _shared(name, tensors[0])
    called = {formal: formal if formal in shared else f"{SECOND}_{formal}" for formal in tensors[0]}
    shown = {formal: f"{SECOND}_{formal}" for formal in node.outputs}

    model = onnx.load_model_from_string(trial.model)
    other = onnx.load_model_from_string(build_model(second, node, tensors[-1], asked))
    graph = model.graph
    constant = {tensor.name for tensor in other.graph.initializer} - {value.name for value in other.graph.input}
    given = {called[f] for f in tensors[0] if f in shared or (f == "X" and name in _CHAINS)}
    opset = _opset(spec, _MOVES[spec.type]) if name in _CHAINS else model.opset_import[0].version
    moves: tuple[Move, ...] = ()
    if name in _CHAINS:
        moves = _moves(spec)
        graph.node.extend(moving(graph, moves, "Y", called["X"], opset))
    add_graph(graph, other.graph, called | shown, given)
    graph.node[0].name, graph.node[-1].name = FIRST, SECOND
    model.opset_import[0].version = opset
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", max(opset, 5))]))

    sources = {f: Source("Y", moves) if f == "X" and name in _CHAINS else Source(called[f]) for f in called}
    first = Bound(FIRST, trial.node, {f: Source(f) for f in trial.feeds[-1].inputs}, {o: o for o in trial.node.outputs})
    subject = Subject(
        (first, Bound(SECOND, node, sources, shown)),
        tuple(value.name for value in graph.output),
    )
    feeds = []
    for feed, more in zip(trial.feeds, tensors, strict=True):
        own = {called[f]: (f, array) for f, array in more.items() if called[f] not in given}
        inputs = {n: array for n, (_, array) in own.items()}
        fed = {n: array for n, (f, array) in own.items() if f not in constant}
        feeds.append(Feed({**feed.inputs, **inputs}, {**feed.fed, **fed}))
    serialized = bytes(model.SerializeToString(deterministic=True))
    return replace(trial, model=serialized, feeds=tuple(feeds), graph=subject)


def _shared(name: str, formal: Sequence[str] | Arrays) -> set[str]:
    """The inputs of the second node that are those of the first."""
    if name in _CHAINS:
        return {"sequence_lens"} & set(formal)
    return {"X"} if name == "side-by-side" else set(CONSTANTS) & set(formal)


def _moves(spec: RecurrentSpec) -> tuple[Move, ...]:
    """Moves from Y to the X of the next one: directions stand one behind the other in the last dimension."""
    if spec.directions == 1:
        return (Move("Squeeze", (2 if spec.layout else 1,)),)
    joined = Move("Reshape", (0, 0, spec.directions * spec.H))
    return (joined,) if spec.layout else (Move("Transpose", (0, 2, 1, 3)), joined)


def moving(graph: onnx.GraphProto, moves: Sequence[Move], given: str, made: str, opset: int) -> list[onnx.NodeProto]:
    """The nodes of moves; what they need is added to the graph."""
    nodes = []
    for number, move in enumerate(moves, 1):
        output = made if number == len(moves) else f"{made}_{number}"
        axes = np.array(move.axes, np.int64)
        if move.op_type == "Transpose":
            node = helper.make_node(move.op_type, [given], [output], perm=list(axes))
        elif move.op_type == "Reshape" or opset >= _AXES_ARE_INPUTS:
            tensor = TensorProto(name=f"{output}_axes", data_type=TensorProto.INT64, dims=axes.shape)
            tensor.raw_data = axes.astype("<i8").tobytes()
            graph.initializer.append(tensor)
            node = helper.make_node(move.op_type, [given, tensor.name], [output])
        else:
            node = helper.make_node(move.op_type, [given], [output], axes=list(axes))
        node.name = output
        nodes.append(node)
        given = output
    return nodes


def add_graph(graph: onnx.GraphProto, other: onnx.GraphProto, called: Mapping[str, str], given: set[str]) -> None:
    """Another graph's node, inputs, constants and outputs under other names; what is given there already is left
    out."""
    (node,) = other.node
    for names in (node.input, node.output):
        for place, name in enumerate(names):
            names[place] = called.get(name, name)
    for values in (other.input, other.initializer, other.output):
        for value in values:
            value.name = called[value.name]
    graph.node.append(node)
    graph.input.extend(value for value in other.input if value.name not in given)
    graph.initializer.extend(tensor for tensor in other.initializer if tensor.name not in given)
    graph.output.extend(other.output)
