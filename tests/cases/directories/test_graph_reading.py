"""Tests of models of several nodes, or of quantized ones, that are read back into their parts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from onnxspec.cases import CaseSpec, Trial, build_case
from onnxspec.cases.directories.graph_reading import alone, read_node_graph, trials_of
from onnxspec.cases.directories.manifest import data_sets_of
from onnxspec.cases.directories.reading import NotOneNode
from onnxspec.cases.specs.graphs import GRAPHS
from onnxspec.cases.specs.wrapping import can_wrap, wrap
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.workers.in_process import run_in_process

RICH = {"T": 4, "N": 3, "I": 2, "H": 5, "bias": True, "initial": "all"}
SPECS = [
    CaseSpec("LSTM", 14, peepholes=True, lengths="ragged", outputs=("Y", "Y_h", "Y_c"), **RICH),
    CaseSpec("GRU", 7, direction="bidirectional", weights="initializer", reruns="sizes", dimensions="symbolic", **RICH),
    CaseSpec("RNN", 14, layout=1, outputs=("", "Y_h"), **RICH),
]
WAYS = (*GRAPHS, "qdq-u8", "qdq-s8")
CASES = [(spec, way) for spec in SPECS for way in WAYS if can_wrap(spec, way)]


def ids(value: object) -> str:
    return value.id if isinstance(value, CaseSpec) else str(value)


def run(model: bytes, fed: dict[str, Any]) -> Any:
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, fed)


def judged(trials: tuple[Trial, ...]) -> Judgement:
    return judge(trials, [run_in_process(run, trial) for trial in trials])


def read_again(trial: Trial) -> tuple[Trial, ...]:
    return trials_of("again", trial.model, read_node_graph(trial.model), [feed.fed for feed in trial.feeds])


@pytest.mark.parametrize(("spec", "way"), CASES, ids=ids)
def test_what_was_made_is_read_again(spec: CaseSpec, way: str) -> None:
    trial = wrap(build_case(spec), way).trial
    again = read_again(trial)[0]
    assert [bound.name for bound in again.subject.nodes] == [bound.name for bound in trial.subject.nodes]
    for first, second in zip(alone(trial), alone(again), strict=True):
        nodes = [(n.op_type, n.since_version, dict(n.codecs)) for n in (first.node, second.node)]
        assert nodes[0] == nodes[1]
        for before, after in zip(first.feeds, second.feeds, strict=True):
            assert set(before.inputs) == set(after.inputs)
            for name, array in before.inputs.items():
                np.testing.assert_array_equal(array, after.inputs[name], strict=True)
    sets = zip(data_sets_of(trial), data_sets_of(again), strict=True)
    for made, read in sets:
        assert list(made.outputs) == list(read.outputs)
        for name, array in made.outputs.items():
            np.testing.assert_array_equal(array, read.outputs[name], strict=True)


@pytest.mark.parametrize(("spec", "way"), [c for c in CASES if not c[0].layout], ids=ids)
def test_it_is_judged_as_it_was(spec: CaseSpec, way: str) -> None:
    trial = wrap(build_case(spec), way).trial
    once, again = judged((trial,)), judged(read_again(trial)[:1])
    assert (once.verdict, again.verdict) == (Verdict.PASS, Verdict.PASS)
    assert (once.judged, once.elements) == (again.judged, again.elements)


def changed(trial: Trial, change: Callable[[onnx.GraphProto], None]) -> bytes:
    model = onnx.load_model_from_string(trial.model)
    change(model.graph)
    return model.SerializeToString()


def test_what_a_model_keeps_to_itself_is_shown_by_its_companion() -> None:
    """Models in use pass a layer's Y to the next layer, and return that of the last."""
    spec = CaseSpec("LSTM", 14, direction="bidirectional", weights="initializer", **RICH)
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

    outcomes = [run_in_process(wrong, trial_run) for trial_run in (original, companion)]
    judgement = judge((original, companion), outcomes)
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
    trial = wrap(build_case(SPECS[0]), "qdq-u8").trial
    assert read_node_graph(trial.model).lone is None
    with pytest.raises(NotOneNode):
        read_node_graph(changed(trial, change))
