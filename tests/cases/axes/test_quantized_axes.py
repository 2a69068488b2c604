"""Tests of axes of quantized cases: the effect of each on levels, codecs and the model.

onnxruntime computes all of the cases correctly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

from onnxspec.cases import Case, CaseSpec, build_case, features_of
from onnxspec.cases.directories.graph_reading import read_node_graph
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.reference.numbers.affine import Affine, Channels

RICH: dict[str, Any] = {
    **{"T": 5, "N": 3, "I": 4, "H": 3, "bias": True, "initial": "all", "direction": "bidirectional"},
    **{"lengths": "ragged", "weights": "initializer", "outputs": ("Y", "Y_h"), "quantization": "u8"},
}
PEEPHOLES = {"peepholes": True, "outputs": ("Y", "Y_h", "Y_c")}


def built(op: str = "GRU", version: int = 14, **fields: Any) -> Case:
    return build_case(CaseSpec(op, version, **{**RICH, **fields}))


def onnxruntime_of(model: bytes, level: str = "ORT_DISABLE_ALL") -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def codecs_of(**fields: Any) -> Any:
    return built(**fields).trial.node.codecs


@pytest.mark.parametrize(
    "fields",
    [
        {"op": "LSTM", "channels": "rows", "bias_type": "product", **PEEPHOLES},
        {"op": "LSTM", "channels": "directions", "weight_type": "s8", "quantization": "u16", **PEEPHOLES},
        {"version": 7, "bias_type": "product", "quantization": "s8", "scales": "power"},
        {"op": "RNN", "version": 7, "quantization": "s16", "bias_type": "int32", "zero_points": "lowest"},
        {"version": 7, "channels": "rows", "bias_type": "float", "zero_points": "highest"},
        {"op": "RNN", "scales": "saturating", "zero_points": "middle", "weights": "input", "bias_type": "product"},
        {"op": "LSTM", "quantized_tensors": "P", "opset": "last", **PEEPHOLES},
        {"quantized_tensors": "data", "scales": "zeroing", "outputs": ("", "Y_h")},
        {"op": "RNN", "version": 22, "quantization": "s16", "seed": 3, "reruns": "sizes", "dimensions": "symbolic"},
    ],
    ids=str,
)
def test_onnxruntime_computes_the_composition(fields: dict[str, Any]) -> None:
    case = built(**fields)
    for trial in case.trials:
        onnx.checker.check_model(trial.model, full_check=True)
    # The reader finds the written codecs again.
    read = read_node_graph(case.trial.model).subject.nodes[0].node
    assert read.codecs == case.trial.node.codecs
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):

        def run(model: bytes, fed: Any, level: str = level) -> Any:
            return onnxruntime_of(model, level).run(None, fed)

        judgement = judge(case.trials, [run_in_process(run, trial) for trial in case.trials])
        assert judgement.verdict is Verdict.PASS, judgement.message
        assert judgement.judged > 0.7 * judgement.elements


def test_a_type_that_the_opset_lacks_is_quantized_by_com_microsoft() -> None:
    domains = {
        (opset, kind): {node.domain for node in onnx.load_model_from_string(model).graph.node}
        for opset in ("first", "last")
        for kind in ("u8", "u16")
        for model in [built(quantization=kind, opset=opset).trial.model]
    }
    assert domains.pop(("first", "u16")) == {"", "com.microsoft"}
    assert set(map(frozenset, domains.values())) == {frozenset({""})}


def test_cases_of_other_seeds_share_a_model() -> None:
    first, second = built(), built(seed=1)
    assert first.trial.model == second.trial.model
    assert first.trial.feeds[0].inputs["X"].tobytes() != second.trial.feeds[0].inputs["X"].tobytes()
    assert built(weights_seed=1).trial.model != first.trial.model


def test_what_is_quantized_is_what_was_asked_for() -> None:
    assert set(codecs_of()) == {"X", "W", "R", "B", "initial_h", "Y", "Y_h"}
    assert set(codecs_of(quantized_tensors="weights")) == {"W", "R", "B"}
    assert set(codecs_of(quantized_tensors="outputs")) == {"Y", "Y_h"}
    assert set(codecs_of(quantized_tensors="Y_h")) == {"Y_h"}
    assert "B" not in codecs_of(bias_type="float")
    types = {name: codec.dtype.name for name, codec in codecs_of(quantization="u16", weight_type="s8").items()}
    assert types == {n: "int8" if n in ("W", "R", "B") else "uint16" for n in types}


def test_channels_are_directions_or_rows() -> None:
    for channels, axis, count in (("directions", 0, 2), ("rows", 1, 9)):
        for codec in (codecs_of(channels=channels)[name] for name in "WR"):
            assert isinstance(codec, Channels)
            assert (codec.axis, len(codec.each)) == (axis, count)
    codecs = codecs_of(channels="rows", bias_type="product")
    expected = codecs["X"].scales * np.concatenate([codecs["W"].scales, codecs["R"].scales])
    assert np.array_equal(codecs["B"].scales, expected)
    assert codecs["B"].dtype == np.int32


def test_scales_and_zero_points_do_what_they_are_called() -> None:
    assert all(np.frexp(codec.scale)[0] == 0.5 for codec in codecs_of(scales="power").values())
    zeroed = built(scales="zeroing").trial
    assert (zeroed.feeds[0].inputs["X"] == zeroed.node.codecs["X"].zero_points).all()
    levels = built(scales="saturating").trial.feeds[0].inputs["X"]
    assert 0.01 < np.isin(levels, (0, 255)).mean() < 0.9
    for place, zero_point in (("lowest", 0), ("middle", 128), ("highest", 255)):
        codec = codecs_of(zero_points=place)["Y"]
        assert isinstance(codec, Affine)
        assert codec.zero_point == zero_point


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("scales", ["calibrated", "power"])
def test_numbers_that_grow_beyond_float32_saturate(scales: str) -> None:
    grows: dict[str, Any] = {"T": 80, "N": 2, "I": 4, "H": 20, "activations": ("Relu",), "data": "heavy"}
    trial = build_case(CaseSpec("RNN", 14, quantization="u8", scales=scales, **grows)).trial
    assert np.isfinite(np.float32(trial.node.codecs["Y"].greatest))
    outcome = run_in_process(lambda model, fed: onnxruntime_of(model).run(None, fed), trial)
    assert judge([trial], [outcome]).verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
    assert 255 in outcome.outputs[0][0][0]


def test_a_quantized_case_has_its_features_and_a_plain_case_is_what_it_was() -> None:
    spec = CaseSpec("GRU", 14, **RICH)
    assert spec.id.startswith("gru-14.float32.bidirectional.")
    assert {"quantized", "quantized-8-bits"} <= features_of(spec)
    assert "quantization" not in CaseSpec("GRU", 14).to_json()
