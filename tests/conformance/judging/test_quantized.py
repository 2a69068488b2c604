"""Quantized nodes, with right and wrong integer kernels.

Their author had seen no fault, no case and not the judge: ``integer_kernels.py`` is as it was handed over, but for its
form, for kernels too coarse for any case here, and for one whose numbers are those of another bit for bit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.specs.wrapping import can_wrap, wrap
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.reference import CELLS, Node
from onnxspec.reference.numbers.affine import Affine, Channels

from ...recurrent import recurrent_versions
from .integer_kernels import FLOAT_STATE, LEVEL_STATE, quantize

Array = NDArray[Any]
Kernel = Callable[..., dict[str, Array]]
Codecs = Mapping[str, Any]

ALL: dict[str, Kernel] = {**FLOAT_STATE, **LEVEL_STATE}
ROUNDED_BIAS = ("float_state_bias_integer", "level_state_bias_integer")
"""They hold a bias in steps of x_scale * w_scale, whatever levels it came in: no document allows that."""
EXACT = [name for name in ALL if name not in ROUNDED_BIAS]
SAMPLE = 26
"""A kernel has one case of so many, and each another one."""


def specs() -> list[CaseSpec]:
    versions = [(op, version) for op, version in recurrent_versions() if op in CELLS]
    return [spec for op, version in versions for spec in profile("quantized", op, version)]


def encoded(array: Array, codec: Any) -> Any:
    """Return levels with their scale and zero point, in the form that the kernels take."""
    if codec is None:
        return array
    if not isinstance(codec, Channels):
        return array, codec.scale, codec.zero_point
    shape = [1] * array.ndim
    shape[codec.axis] = -1
    return array, codec.scales.reshape(shape), codec.zero_points.reshape(shape)


def computed(kernel: Kernel, node: Node, inputs: Mapping[str, Array], codecs: Codecs | None = None) -> dict[str, Array]:
    """Return the outputs of a kernel, with the node's codecs or others."""
    codecs = node.codecs if codecs is None else codecs
    kernel_inputs = {name: encoded(array, codecs.get(name)) for name, array in inputs.items()}
    outputs = {name: (c.scale, c.zero_point, c.dtype) for name, c in codecs.items() if name in node.outputs}
    with np.errstate(over="ignore"):
        return kernel(node.op_type, dict(node.attributes), kernel_inputs, outputs)


# Cases of the profile


def judged_case(name: str, spec: CaseSpec) -> Judgement | None:
    """Return the verdict; None where an output is a number, which these kernels do not return."""
    case = build_case(spec)
    if any(name not in trial.node.codecs for trial in case.trials for name in trial.node.outputs):
        return None
    return judge(case.trials, [staged_outcome(trial, partial(computed, ALL[name])) for trial in case.trials])


def accuses(name: str, first: int, step: int) -> int:
    """Return how many cases a kernel has, after a check that it passes all of them."""
    judgements = {spec.id: judgement for spec in specs()[first::step] if (judgement := judged_case(name, spec))}
    assert not {id: j.message for id, j in judgements.items() if j.verdict is not Verdict.PASS}
    return len(judgements)


@pytest.mark.parametrize("name", EXACT)
def test_none_is_accused(name: str) -> None:
    assert accuses(name, EXACT.index(name), SAMPLE) > 4


@pytest.mark.long
@pytest.mark.parametrize("name", EXACT)
def test_none_is_accused_of_a_quarter_of_the_cases(name: str) -> None:
    assert accuses(name, EXACT.index(name) % 4, 4) > 40


@pytest.mark.parametrize("name", ROUNDED_BIAS)
def test_a_bias_that_is_rounded_where_its_steps_are_wide_is_told(name: str) -> None:
    """A scale of X that makes all of it 0 makes steps of x_scale * w_scale wide; else such a kernel is right."""
    wide = next(spec for spec in specs() if spec.scales == "zeroing" and spec.quantization == "s8")
    usual = CaseSpec("GRU", 14, bias=True, quantization="u8", bias_type="product")
    for spec, verdict in ((wide, Verdict.INACCURATE), (usual, Verdict.PASS)):
        judgement = judged_case(name, spec)
        assert judgement.verdict is verdict


# Nodes between DequantizeLinear and QuantizeLinear

WAYS = ("qdq-u8", "qdq-s8", "qdq-u16", "qdq-s16")
SPECS = [
    CaseSpec("LSTM", 14, T=6, N=3, I=4, H=5, bias=True, initial="all", outputs=("Y", "Y_h", "Y_c")),
    CaseSpec("LSTM", 7, T=7, N=2, I=3, H=6, weights="initializer", weights_seed=3),
    CaseSpec("GRU", 14, T=6, N=3, I=4, H=5, bias=True, initial="all", outputs=("Y", "Y_h")),
    CaseSpec("GRU", 7, T=7, N=2, I=3, H=6, linear_before_reset=1, bias=True, weights="initializer"),
]
CASES = [(spec, way) for spec in SPECS for way in WAYS if can_wrap(spec, way)]
STATES = {"float": FLOAT_STATE["float_state_dequantized"], "quantized": LEVEL_STATE["level_state_32"]}


def ids(value: object) -> str:
    return value.id if isinstance(value, CaseSpec) else str(value)


def judged(
    spec: CaseSpec,
    way: str,
    accuracy: str = "standard",
    *,
    state: str = "float",
    codecs: Callable[[Codecs], Codecs] = dict,
    back: str = "Y",
    shown: Callable[..., Array] = quantize,
    inputs: Callable[[dict[str, Array]], dict[str, Array]] = dict,
) -> Judgement:
    """Return the verdict on a kernel with other codecs, another codec of the state, other outputs or other inputs."""
    trial = wrap(build_case(spec), way).trial
    node = trial.node
    of_state = node.codecs[back]
    kernel = partial(STATES[state], back=(of_state.scale, of_state.zero_point, of_state.dtype), shown=shown)

    def run(model: bytes, fed: dict[str, Array]) -> list[Array]:
        held = {t.name: onnx.numpy_helper.to_array(t) for t in onnx.load_model_from_string(model).graph.initializer}
        tensors = {n: array for n, array in {**held, **fed}.items() if n in node.operator.inputs}
        outputs = computed(kernel, node, inputs(tensors), codecs(node.codecs))
        return [outputs[name] for name in node.outputs]

    return judge([trial], [run_in_process(run, trial)], accuracy)


@pytest.mark.parametrize("state", ["float", "quantized"])
@pytest.mark.parametrize(("spec", "way"), CASES, ids=ids)
def test_right_kernels_pass_whatever_goes_from_step_to_step(spec: CaseSpec, way: str, state: str) -> None:
    judgement = judged(spec, way, state=state)
    assert judgement.verdict is Verdict.PASS, judgement.message
    assert judgement.interpretations.get("quantized_state", state) == state
    assert judgement.judged > 0.8 * judgement.elements
    assert judgement.where == {"error": 0.0, "units": 0.0}


@pytest.mark.parametrize(("spec", "way"), CASES, ids=ids)
@pytest.mark.parametrize("level", ["disabled", "all"])
def test_onnxruntime_computes_the_composition_of_levels(spec: CaseSpec, way: str, level: str) -> None:
    options = onnxruntime.SessionOptions()
    levels_of = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels_of.ORT_DISABLE_ALL if level == "disabled" else levels_of.ORT_ENABLE_ALL

    def run(model: bytes, fed: dict[str, Array]) -> Any:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run(None, fed)

    trial = wrap(build_case(spec), way).trial
    model = onnx.load_model_from_string(trial.model)
    onnx.checker.check_model(model, full_check=True)
    (dtype,) = {array.dtype.name for feed in trial.feeds for array in feed.inputs.values()}
    assert dtype == {"u": "uint", "s": "int"}[way[4]] + way[5:]
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("DequantizeLinear") == len(trial.feeds[0].inputs)
    assert operators.count("QuantizeLinear") == len(trial.node.outputs)
    judgement = judge([trial], [run_in_process(run, trial)])
    assert judgement.verdict is Verdict.PASS, judgement.message
    interpretation = (judgement.interpretations or {}).get("quantized_state")
    # With 16 bits a single case may not show how the state goes from step to step.
    assert interpretation == "float" or (interpretation is None and way.endswith("16"))


def wrapping(x: Array, scale: float, zero: int, dtype: Any, _: Any) -> Array:
    return (np.rint(x / np.float32(scale * 0.75)).astype(np.int64) + zero).astype(dtype)


def truncated(x: Array, scale: float, zero: int, dtype: Any, f: Any) -> Array:
    return quantize(np.trunc(x / np.float32(scale)), 1, zero, dtype, f)


def swapped(x: dict[str, Array]) -> dict[str, Array]:
    """Swap two gates of W."""
    first, second, *others = np.split(x["W"], x["W"].shape[1] // x["R"].shape[2], axis=1)
    return {**x, "W": np.concatenate([second, first, *others], axis=1)}


WRONG: dict[str, dict[str, Any]] = {
    "zero point of X forgotten": {"codecs": lambda codecs: {**codecs, "X": replace(codecs["X"], zero_point=0)}},
    "scale of W taken for R": {"codecs": lambda codecs: {**codecs, "R": replace(codecs["R"], scale=codecs["W"].scale)}},
    "state requantized with the codec of X": {"state": "quantized", "back": "X"},
    "saturation wraps": {"shown": wrapping},
    "rounded towards zero": {"shown": truncated},
    "gates swapped in the quantized copy": {"inputs": swapped},
}
SMALL = {"rounded towards zero", "state requantized with the codec of X", "scale of W taken for R"}
"""Faults of a level or two where the two scales are similar: less than an accuracy class may declare."""


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("spec", "way"), [(s, "qdq-u8") for s in SPECS], ids=ids)
def test_wrong_kernels_are_found(spec: CaseSpec, way: str, wrong: str) -> None:
    judgement = judged(spec, way, **WRONG[wrong])
    assert judgement.verdict in (Verdict.WRONG, Verdict.INACCURATE)
    if wrong not in SMALL:
        assert judgement.verdict is Verdict.WRONG, judgement.message


def shifted(offset: Callable[[Array], Any]) -> Callable[..., Array]:
    """Return a function that quantizes and adds an offset to the levels, within their type."""

    def shown(x: Array, scale: float, zero: int, dtype: Any, f: Any) -> Array:
        levels = quantize(x, scale, zero, dtype, f).astype(np.int64)
        return quantize(levels + offset(levels), 1, 0, dtype)

    return shown


def test_kernels_that_are_a_level_off_are_right_by_a_class_that_says_so() -> None:
    off = shifted(lambda levels: np.arange(levels.size).reshape(levels.shape) % 3 == 0)
    plain = judged(SPECS[0], "qdq-u8", shown=off)
    assert (plain.verdict, plain.accuracy) == (Verdict.INACCURATE, "qdq-1")
    assert plain.where["units"] == 1.0
    declared = judged(SPECS[0], "qdq-u8", "qdq-1", shown=off)
    assert (declared.verdict, declared.where) == (Verdict.PASS, {"error": 1.0, "units": 1.0})
    # Of 256 levels no class allows more than two, whatever its name.
    far = shifted(lambda levels: 3)
    assert judged(SPECS[0], "qdq-u8", "qdq-64", shown=far).verdict is Verdict.WRONG


def test_what_is_wrong_is_told_in_levels() -> None:
    far = shifted(lambda levels: (levels ^ 8) - levels)  # only levels with room on both sides: a saturated level stays
    message = judged(SPECS[0], "qdq-u8", shown=far).message
    assert re.search(r"is level \d+, must be level \d+, 8 levels off \(", message), message
    assert "within" not in message
    message = judged(SPECS[0], "qdq-u8", "qdq-1", shown=far).message
    assert re.search(r"is level \d+, must be one of levels \d+ to \d+, 7 levels beyond \(", message), message


def test_a_tie_allows_two_levels() -> None:
    """With this scale every second number is a tie: both neighbours are right, and nothing else is."""
    codec = Affine(2.0, 10, 8)
    low, high = codec.between(np.array([2.9999999, 3.0, 0.5]), np.array([3.0000001, 3.0, 0.6]))
    assert (low.tolist(), high.tolist()) == ([11, 11, 10], [12, 12, 10])
    signed = Affine(1.0, -128, 8, True)
    assert signed.levels(np.array([-5.0, 0.0, 300.0])).tolist() == [-128, -128, 127]


HTP = [
    [-32768, 32767, -32768, 4000, 7225, -32768, 27800, -32768, 27958, -17841, -32768, 32767, -32768, 21501, 6075],
    [-32768, 12595, -32768, -9873, -32768, -32768, -2403, -32768, -3524, -32768, -32768, 32767, -32768, 4382, -8562],
    [-32768, 32767, -32768, 16118, -6503, -32768, 21658, -32768, -19102, -32768, -32768, 4399, -32768, -2295, -32768],
    [-24929, -12446, -22007, 1257, -32768, -22273, 15041, -32432, 13867, -15849, -21974, 17488, -32768, 15091, -12114],
]
"""Y as the HTP library of onnxruntime-qnn 2.7.0 returns it, step by step."""


def test_levels_are_counted_by_the_reading_that_a_wider_class_makes_right() -> None:
    """With the state as levels fewer levels are wrong, but by up to 12,777: saturated levels prove no state."""
    spec = CaseSpec(
        *("GRU", 14, "float32"), direction="reverse", T=4, N=3, I=2, H=5, bias=True, outputs=("Y", "Y_h"), seed=6,
        weights_seed=6, linear_before_reset=0, quantization="s16", channels="directions", bias_type="product",
        scales="saturating",
    )  # fmt: skip
    trial = build_case(spec).trial
    Y = np.array(HTP, np.int16).reshape(4, 1, 3, 5)
    outcome = run_in_process(lambda model, fed: [Y, Y[0]], trial)
    judgement = judge([trial], [outcome], "qdq-1")
    assert (judgement.verdict, judgement.accuracy) == (Verdict.INACCURATE, "qdq-64")
    assert judgement.interpretations == {"quantized_state": "float"}
    assert judgement.where["units"] == judge([trial], [outcome], "qdq-64").where["units"] == 43
