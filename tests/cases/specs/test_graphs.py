"""Tests of graphs of several nodes, or of quantized ones: ONNX accepts the models, and they are read back as made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.directories.graph_reading import alone, read_node_graph, trials_of
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.cases.directories.reading import NotOneNode
from onnxspec.cases.specs.case import Move, Source, Trial
from onnxspec.cases.specs.graphs import GRAPHS, can_join, join
from onnxspec.cases.specs.wrapping import WRAPS, can_wrap, wrap
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.workers.in_process import run_in_process

from ..samples import RICH, SAMPLES

CONSTANT = [
    spec
    for spec in profile("core", "GRU", 22)
    if spec.type == "float32" and "constant-" in spec.id and can_wrap(spec, "side-by-side")
]
CASES = [
    pytest.param(spec, way, id=f"{spec.id}-{way}")
    for spec in (*SAMPLES, *CONSTANT)
    for way in (*GRAPHS, "qdq-u8", "qdq-s8")
    if can_wrap(spec, way)
]


def run(model: bytes, fed: dict[str, Any]) -> Any:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, fed)


def judged(trials: tuple[Trial, ...], target: Callable[..., Any] = run) -> Judgement:
    return judge(trials, [run_in_process(target, trial) for trial in trials])


def read_again(trial: Trial) -> tuple[Trial, ...]:
    return trials_of("again", trial.model, read_node_graph(trial.model), [feed.fed for feed in trial.feeds])


def bits(arrays: Any) -> dict[str, tuple[Any, ...]]:
    return {name: (array.dtype, array.shape, array.tobytes()) for name, array in arrays.items()}


@pytest.mark.parametrize(("spec", "way"), CASES)
def test_what_was_made_passes_the_full_check_and_is_read_again(spec: CaseSpec, way: str) -> None:
    """Every node gets the same numbers by its bindings and by the model that is read."""
    for trial in wrap(build_case(spec), way).trials:
        onnx.checker.check_model(onnx.load_model_from_string(trial.model), full_check=True)
        again = read_again(trial)[0]
        assert again.subject.shown == trial.subject.shown
        assert [bound.name for bound in again.subject.nodes] == [bound.name for bound in trial.subject.nodes]
        for made, read in zip(alone(trial), alone(again), strict=True):
            first, second = ((n.op_type, n.since_version, dict(n.codecs)) for n in (made.node, read.node))
            assert first == second
            for before, after in zip(made.feeds, read.feeds, strict=True):
                assert bits(after.inputs) == bits(before.inputs)
        for before, after in zip(data_sets_of(trial), data_sets_of(again), strict=True):
            assert set(before.outputs) == set(trial.subject.shown)
            assert bits(after.outputs) == bits(before.outputs)


@pytest.mark.parametrize(("spec", "way"), [c for c in CASES if c.values[0] in (SAMPLES[0], SAMPLES[7])])
def test_it_is_judged_as_it_was(spec: CaseSpec, way: str) -> None:
    trial = wrap(build_case(spec), way).trial
    once, again = judged((trial,)), judged(read_again(trial)[:1])
    assert (once.verdict, again.verdict) == (Verdict.PASS, Verdict.PASS)
    assert (once.judged, once.elements) == (again.judged, again.elements)


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


def test_a_lone_case_stays_what_it_was() -> None:
    trial = build_case(SAMPLES[0]).trial
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


# Models that only the reader gets


def changed(trial: Trial, change: Callable[[onnx.GraphProto], None]) -> bytes:
    model = onnx.load_model_from_string(trial.model)
    change(model.graph)
    return model.SerializeToString()


def test_what_a_model_keeps_to_itself_is_shown_by_its_companion() -> None:
    """Models in use pass a layer's Y to the next layer, and return that of the last."""
    spec = CaseSpec("LSTM", 14, direction="bidirectional", weights="initializer", **{**RICH, "lengths": "absent"})
    trial = wrap(build_case(spec), "chain").trial

    def hide(graph: onnx.GraphProto) -> None:
        remaining = [value for value in graph.output if value.name == "second_Y"]
        del graph.output[:]
        graph.output.extend(remaining)

    hidden = replace(trial, model=changed(trial, hide))
    original, companion = read_again(hidden)
    assert original.subject.shown == ("second_Y",)
    assert set(companion.subject.shown) == {"second_Y", "Y"}
    onnx.checker.check_model(onnx.load_model_from_string(companion.model), full_check=True)
    judgement = judged((original, companion))
    assert judgement.verdict is Verdict.PASS
    assert judgement.elements == 2 * 4 * 2 * 3 * 5

    def wrong(model: bytes, fed: dict[str, Any]) -> Any:
        names = [value.name for value in onnx.load_model_from_string(model).graph.output]
        return [-array if name == "second_Y" else array for name, array in zip(names, run(model, fed), strict=True)]

    judgement = judged((original, companion), wrong)
    assert judgement.verdict is Verdict.WRONG
    assert judgement.where is not None
    assert judgement.where["node"] == "second"


def per_channel(graph: onnx.GraphProto) -> None:
    scale = next(tensor for tensor in graph.initializer if tensor.name == "W_scale")
    scale.CopyFrom(numpy_helper.from_array(np.ones(3, np.float32), "W_scale"))


def another_node(graph: onnx.GraphProto) -> None:
    graph.node.insert(0, helper.make_node("Neg", ["X"], ["X_negated"]))
    graph.node[1].input[0] = "X_negated"


def other_codec(graph: onnx.GraphProto) -> None:
    graph.node.append(helper.make_node("QuantizeLinear", ["initial_h_number", "X_scale", "X_zero_point"], ["extra"]))


@pytest.mark.parametrize("change", [per_channel, another_node, other_codec])
def test_what_is_not_known_is_refused(change: Callable[[onnx.GraphProto], None]) -> None:
    trial = wrap(build_case(SAMPLES[0]), "qdq-u8").trial
    assert read_node_graph(trial.model).lone is None
    with pytest.raises(NotOneNode):
        read_node_graph(changed(trial, change))
