"""Tests of graphs of several nodes: models that ONNX accepts, and numbers that nodes get by their bindings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx
import pytest

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.cases.specs.case import Move, Source, Trial
from onnxspec.cases.specs.graphs import GRAPHS, can_join, join
from onnxspec.cases.specs.wrapping import WRAPS, can_wrap

RICH = {"T": 4, "N": 3, "I": 2, "H": 5, "bias": True, "initial": "all", "lengths": "ragged"}
SPECS = [
    CaseSpec("LSTM", 14, peepholes=True, **RICH),
    CaseSpec("LSTM", 14, weights="initializer", reruns="data", layout=1, **RICH),
    CaseSpec("LSTM", 7, direction="bidirectional", data="large", outputs=("Y", "", "Y_c"), **RICH),
    CaseSpec("LSTM", 1, "float64", opset="last", data="small", **RICH),
    CaseSpec("GRU", 14, "float16", direction="bidirectional", layout=1, outputs=("", "Y_h"), **RICH),
    CaseSpec("GRU", 7, weights="initializer", dimensions="symbolic", reruns="sizes", **RICH),
    CaseSpec("GRU", 1, output_sequence=1, outputs=("Y", "Y_h"), **RICH),
    CaseSpec("RNN", 22, "bfloat16", direction="bidirectional", **RICH),
    CaseSpec("RNN", 14, T=0, N=2, H=3),
]


def pairs() -> list[tuple[CaseSpec, str]]:
    return [(spec, name) for spec in (*SPECS, *CONSTANT) for name in GRAPHS if can_join(spec, name)]


CONSTANT = [
    spec
    for spec in profile("core", "GRU", 22)
    if spec.type == "float32" and "constant-" in spec.id and can_wrap(spec, "side-by-side")
]


def ids(value: object) -> str:
    return value.id if isinstance(value, CaseSpec) else str(value)


def test_what_can_be_joined() -> None:
    asked = CaseSpec("LSTM", 14, T=3, H=2)
    assert all(can_join(asked, name) for name in GRAPHS)
    silent = CaseSpec("LSTM", 14, T=3, H=2, outputs=("", "Y_h"))
    assert [name for name in GRAPHS if can_join(silent, name)] == ["side-by-side", "shared", "twins"]
    # In the oldest versions, without output_sequence it is open whether Y exists at all.
    assert not can_join(CaseSpec("GRU", 1, T=3, H=2, outputs=("Y", "Y_h")), "chain")
    partly_other = CaseSpec(
        "LSTM", 14, T=3, N=2, I=2, H=2, nearly="X"
    )  # a run before, of which other nodes know nothing
    assert not any(can_join(partly_other, name) for name in GRAPHS)
    with pytest.raises(KeyError):
        can_join(asked, "ring")


@pytest.mark.parametrize(("spec", "name"), pairs(), ids=ids)
def test_models_pass_the_full_check_and_bindings_lead_to_legal_nodes(spec: CaseSpec, name: str) -> None:
    for trial in join(build_case(spec), name).trials:
        onnx.checker.check_model(onnx.load_model_from_string(trial.model), full_check=True)
        _follow(trial)


def _follow(trial: Trial) -> None:
    """Check that every tensor of the graph is bound to the same source as in the model."""
    graph = onnx.load_model_from_string(trial.model).graph
    assert trial.subject.shown == tuple(value.name for value in graph.output)
    fed, initializers = {value.name for value in graph.input}, {tensor.name for tensor in graph.initializer}
    for feed in trial.feeds:
        assert set(feed.fed) == fed
        assert set(feed.inputs) == fed | {name for name in initializers if not name.endswith(("_axes", "_last"))}
    by_name = {node.name: node for node in graph.node}
    made = {name: node for node in graph.node for name in node.output}
    for bound in trial.subject.nodes:
        proto, operator = by_name[bound.name], bound.node.operator
        for formal, given in zip(operator.inputs, proto.input, strict=False):
            if not given:
                assert formal not in (bound.inputs or {})
                continue
            moves = []
            while given in made and made[given].name not in {bound.name for bound in trial.subject.nodes}:
                moves.append(made[given].op_type)
                given = made[given].input[0]
            assert bound.inputs is not None
            source = bound.inputs[formal]
            assert (source.tensor, [move.op_type for move in source.moves]) == (given, moves[::-1])
    # The documents' own numbers are computed through all nodes.
    for data in data_sets_of(trial):
        assert set(data.outputs) == set(trial.subject.shown)


def test_a_lone_case_stays_what_it_was() -> None:
    trial = build_case(SPECS[0]).trial
    assert trial.graph is None
    assert trial.subject.is_lone
    assert trial.first is trial


def test_shared_weights_are_held_once() -> None:
    spec = CaseSpec("LSTM", 14, T=3, N=2, I=3, H=2, bias=True, weights="initializer")
    graph = onnx.load_model_from_string(join(build_case(spec), "shared").trial.model).graph
    assert [tensor.name for tensor in graph.initializer] == ["W", "R", "B"]
    assert [list(node.input[1:4]) for node in graph.node] == [["W", "R", "B"]] * 2
    assert [node.input[0] for node in graph.node] == ["X", "second_X"]


def test_twins_differ_in_one_thing_each() -> None:
    spec = CaseSpec("RNN", 14, T=3, N=2, I=3, H=2, bias=True, weights="initializer", activations=("Elu",), alpha=(0.5,))
    joined = join(build_case(spec), "twins").trial
    first, clipped, other, weighed = onnx.load_model_from_string(joined.model).graph.node
    assert clipped.input == other.input == first.input
    assert (weighed.input[0], weighed.input[1]) == ("X", "W")
    assert not set(weighed.input[2:]) & set(first.input)
    nodes = [bound.node.attributes for bound in joined.subject.nodes]
    assert [dict(each).get("clip") for each in nodes] == [None, 0.375, None, None]
    assert [dict(each)["activation_alpha"] for each in nodes] == [[0.5], [0.5], [0.375], [0.5]]
    assert len({array.tobytes() for name, array in joined.feeds[0].inputs.items() if name.endswith("R")}) == 2


@pytest.mark.parametrize("name", ["twins", "last-step"])
def test_a_case_with_neighbours_is_what_its_lane_makes_of_it_without(name: str) -> None:
    spec = CaseSpec("GRU", 22, T=3, N=2, I=3, H=2, weights="initializer", neighbours=name)
    alone = replace(spec, neighbours="none")
    (trial,), (joined,) = build_case(spec).trials, join(build_case(alone), name).trials
    assert (trial.model, trial.subject) == (joined.model, joined.subject)
    assert not any(can_wrap(spec, wrap) for wrap in WRAPS)
    with pytest.raises(ValueError, match="neighbours"):
        replace(spec, kept=True)
    with pytest.raises(ValueError, match="neighbours"):
        replace(spec, neighbours="last-step", outputs=("", "Y_h"))


def test_moves_are_what_the_operators_do() -> None:
    Y = np.arange(24.0).reshape(2, 2, 3, 2)
    moved = Source("Y", (Move("Transpose", (0, 2, 1, 3)), Move("Reshape", (0, 0, -1)))).of({"Y": Y})
    assert moved.shape == (2, 3, 4)
    assert moved[1, 2].tolist() == [*Y[1, 0, 2], *Y[1, 1, 2]]
    assert (Source("Y", (Move("Gather", (0,)),)).of({"Y": Y}) == Y[-1]).all()
