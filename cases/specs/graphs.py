"""Graphs: a case's node with others in the same session, all of which are judged.

Some defects need two nodes: shared buffers of states, weights of equal shape that are mixed up, a memory plan that
overwrites a tensor which another node still needs.

=================  ================================================================================================
``chain``          the second gets Y of the first as its X; it has the same attributes, and its own weights
``side-by-side``   both get the same X; the second has the same attributes, weights and states of the same shapes
``shared``         both have the same weights; the second has its own X and states
``two-operators``  as a chain, but the second is of another operator
``twins``          a second has all the same inputs and another clip; a third has the same X and W, and its own other
                   inputs; where coefficients are given, a fourth has the same inputs and another alpha
``last-step``      the second gets the last step of Y of the first as its initial_h, and the same X and R
=================  ================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray
from onnx import helper

from ...reference import operator_version, versions_of
from ..axes.tensors import CONSTANTS, HIGHEST_SEED
from .case import Bound, Case, Feed, Move, Source, Spec, Subject, Trial
from .model import announced, build_model, finished, inputs_of, tensor_proto
from .spec import RecurrentSpec

Arrays = Mapping[str, NDArray[Any]]

GRAPHS = ("chain", "side-by-side", "shared", "two-operators", "twins", "last-step")
"""Names of the graphs."""

FIRST, SECOND, THIRD, FOURTH = "first", "second", "third", "fourth"

_CHAINS = ("chain", "two-operators")
_CLIPS = (0.375, 0.75)
_STEP = 0.125  # difference between the coefficients of twins
_OTHER_SEED = 7919
"""Distance of the second node's seeds from the first's."""

# The first opset whose Squeeze, Transpose and Reshape accept the type.
_MOVES = {"float32": 6, "float64": 6, "float16": 6, "bfloat16": 13}
AXES_ARE_INPUTS = 13
"""The first opset whose Squeeze takes axes as an input."""


class _Further(Struct, frozen=True):
    """Another node in addition to the first one.

    spec
        The case that it is taken from.
    shared
        Its inputs that are those of the first.
    handed, moves
        Its input that comes from the first one's Y, and the moves between them; empty if there is none.
    """

    name: str
    spec: RecurrentSpec
    shared: frozenset[str]
    handed: str = ""
    moves: tuple[Move, ...] = ()


def can_join(spec: Spec, name: str) -> bool:
    """Return whether a case can have such a graph. Raise KeyError for a name that is not in `GRAPHS`."""
    if name not in GRAPHS:
        raise KeyError(name)
    if not isinstance(spec, RecurrentSpec) or spec.illegal or spec.node.domain:
        return False  # the nodes between them need an opset in common with both
    if any(turn.part for turn in spec.script.turns):
        return False  # the run before changes a part of one node's inputs
    needed = _MOVES[spec.type] if name in _CHAINS else 0
    # The first node must return the outputs that the second one needs, and its document must have them.
    hands_on = name not in (*_CHAINS, "last-step") or ("Y" in spec.outputs and announced(spec))
    there = name != "last-step" or bool(spec.T and spec.N)  # there is a last step
    return hands_on and there and needed <= spec.node.operator.last_opset and bool(_further(spec, name))


def join(case: Case, name: str) -> Case:
    """Return the case, and its companion, with further nodes. The case must satisfy :func:`can_join`."""
    spec = case.spec
    assert isinstance(spec, RecurrentSpec)
    further = _further(spec, name)
    assert further
    return case.changed(lambda trial: _joined(trial, spec, further, name))


def _further(spec: RecurrentSpec, name: str) -> tuple[_Further, ...]:
    """Return the further nodes of a graph of a case; none if there is no such graph."""
    seeds: dict[str, Any] = {
        "seed": (spec.seed + _OTHER_SEED) % HIGHEST_SEED,
        "weights_seed": (spec.weights_seed + _OTHER_SEED) % HIGHEST_SEED,
    }
    lone: dict[str, Any] = {"neighbours": "none"}
    try:
        if name == "twins":
            clip = next(clip for clip in _CLIPS if clip != spec.clip)
            every = frozenset(spec.node.operator.inputs)
            changes: list[tuple[str, dict[str, Any]]] = [(SECOND, {"clip": clip})]
            if spec.alpha is not None:
                changes.append((FOURTH, {"alpha": tuple(a - _STEP if a > 0 else a + _STEP for a in spec.alpha)}))
            alike = [_Further(called, replace(spec, **changed, **lone), every) for called, changed in changes]
            return *alike, _Further(THIRD, replace(spec, **seeds, **lone), frozenset({"X", "W", "sequence_lens"}))
        if name == "last-step":
            initial = spec.initial if spec.initial in ("h", "all") else "all" if spec.initial == "c" else "h"
            second = replace(spec, initial=initial, **seeds, **lone)
            last = Move("Gather", (1 if spec.layout else 0,))
            return (_Further(SECOND, second, frozenset({"X", "R", "sequence_lens"}), "initial_h", (last,)),)
        if name in _CHAINS:
            columns, lengths = spec.directions * spec.H, frozenset({"sequence_lens"})
            second = replace(spec, I=columns, **seeds, **lone) if name == "chain" else _of_another(spec, columns, seeds)
            return (_Further(SECOND, second, lengths, "X", _moves(spec)),)
        shared = frozenset({"X"} if name == "side-by-side" else CONSTANTS)
        return (_Further(SECOND, replace(spec, **seeds, **lone), shared),)
    except ValueError:  # too large, or a type that the other operator does not accept
        return ()


def _of_another(spec: RecurrentSpec, columns: int, seeds: Mapping[str, Any]) -> RecurrentSpec:
    """Return a case of another operator that follows a case. Raise ValueError if there is none."""
    op = _neighbour(spec)
    version = max(v for v in versions_of(op) if v <= _opset(spec))
    kept = ("type", "direction", "layout", "T", "N", "H", "bias", "lengths", "weights", "dimensions", "reruns")
    announced = "output_sequence" in operator_version(op, version).attributes
    kind: Any = type(spec)
    other: RecurrentSpec = kind(
        op,
        version,
        **{field: getattr(spec, field) for field in kept},
        **seeds,
        I=columns,
        initial="all",
        outputs=("Y", "Y_h"),
        output_sequence=1 if announced else None,
    )
    return other


def _neighbour(spec: RecurrentSpec) -> str:
    """Return the operator before the case's operator in its class; for the first one, the second."""
    position = spec.operators.index(spec.op)
    return spec.operators[position - 1 if position else 1]


def _opset(spec: RecurrentSpec) -> int:
    """Return the opset of a case's model, raised to one whose moves accept its type."""
    operator = spec.node.operator
    return max(_MOVES[spec.type], operator.since_version if spec.opset == "first" else operator.last_opset)


def _joined(trial: Trial, spec: RecurrentSpec, further: Sequence[_Further], name: str) -> Trial:
    """Return a trial with further nodes in its model."""
    model = onnx.load_model_from_string(trial.model)
    graph = model.graph
    opset = _opset(spec) if name in _CHAINS else model.opset_import[0].version
    graph.node[0].name = FIRST
    bound = [
        Bound(FIRST, trial.node, {f: Source(f) for f in trial.feeds[-1].inputs}, {o: o for o in trial.node.outputs})
    ]
    feeds = [(dict(feed.inputs), dict(feed.fed)) for feed in trial.feeds]
    for one in further:
        second = one.spec
        tensors = [inputs_of(second, run) for run in ([0] if spec.reruns == "none" else [1, 0])]
        # A companion asks for all outputs of all nodes.
        everything = trial.node.outputs == spec.node.operator.outputs
        asked = second.node.operator.outputs if everything else second.outputs
        node = replace(second.node, outputs=tuple(output for output in asked if output))
        shared = one.shared & tensors[0].keys()
        called = {formal: formal if formal in shared else f"{one.name}_{formal}" for formal in tensors[0]}
        shown = {formal: f"{one.name}_{formal}" for formal in node.outputs}
        other = onnx.load_model_from_string(build_model(second, node, tensors[-1], asked))
        constant = {tensor.name for tensor in other.graph.initializer} - {value.name for value in other.graph.input}
        given = {called[f] for f in tensors[0] if f in shared or f == one.handed}
        if one.handed:
            graph.node.extend(moving(graph, one.moves, "Y", called[one.handed], opset))
        add_graph(graph, other.graph, called | shown, given)
        graph.node[-1].name = one.name
        sources = {f: Source("Y", one.moves) if f == one.handed else Source(called[f]) for f in called}
        bound.append(Bound(one.name, node, sources, shown))
        for (inputs, fed), more in zip(feeds, tensors, strict=True):
            own = {called[f]: (f, array) for f, array in more.items() if called[f] not in given}
            inputs |= {n: array for n, (_, array) in own.items()}
            fed |= {n: array for n, (f, array) in own.items() if f not in constant}
    subject = Subject(tuple(bound), tuple(value.name for value in graph.output))
    runs = tuple(Feed(*feed) for feed in feeds)
    return replace(trial, model=finished(model, opset), feeds=runs, graph=subject)


def _moves(spec: RecurrentSpec) -> tuple[Move, ...]:
    """Return the moves from Y to the X of the next node; directions are concatenated in the last dimension."""
    if spec.directions == 1:
        return (Move("Squeeze", (2 if spec.layout else 1,)),)
    joined = Move("Reshape", (0, 0, spec.directions * spec.H))
    return (joined,) if spec.layout else (Move("Transpose", (0, 2, 1, 3)), joined)


def moving(graph: onnx.GraphProto, moves: Sequence[Move], given: str, made: str, opset: int) -> list[onnx.NodeProto]:
    """Return the nodes of moves; add their constants to the graph."""
    nodes = []
    for number, move in enumerate(moves, 1):
        output = made if number == len(moves) else f"{made}_{number}"
        axes, inputs = np.array(move.axes, np.int64), [given]
        attributes: dict[str, Any] = {}
        if move.op_type == "Gather":
            attributes["axis"] = int(axes[0])
            graph.initializer.append(tensor_proto(f"{output}_last", np.array(-1)))
            inputs.append(f"{output}_last")
        elif move.op_type == "Reshape" or (move.op_type != "Transpose" and opset >= AXES_ARE_INPUTS):
            graph.initializer.append(tensor_proto(f"{output}_axes", axes))
            inputs.append(f"{output}_axes")
        else:
            attributes["perm" if move.op_type == "Transpose" else "axes"] = list(axes)
        nodes.append(helper.make_node(move.op_type, inputs, [output], name=output, **attributes))
        given = output
    return nodes


def add_graph(graph: onnx.GraphProto, other: onnx.GraphProto, called: Mapping[str, str], given: set[str]) -> None:
    """Add another graph's node, inputs, constants and outputs under other names, except tensors in `given`."""
    (node,) = other.node
    for names in (node.input, node.output):
        for position, name in enumerate(names):
            names[position] = called.get(name, name)
    for values in (other.input, other.initializer, other.output):
        for value in values:
            value.name = called[value.name]
    graph.node.append(node)
    graph.input.extend(value for value in other.input if value.name not in given)
    graph.initializer.extend(tensor for tensor in other.initializer if tensor.name not in given)
    graph.output.extend(other.output)
