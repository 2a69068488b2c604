"""assert_conforms with a function, an ONNX backend or a target that computes the outputs, and random cases for it.

The property test of docs/strategies.md runs on onnxruntime and on backends that are wrong on purpose.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import Phase, given, reject, settings

from onnxspec import NotConforming, assert_conforms
from onnxspec.cases import CaseSpec, build_case, strategies
from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.cases.portable import case_from_json
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.reference import FAULTS, Node, evaluate, format_of, run_fault

ROOT = Path(__file__).parents[3]
fixed = settings(derandomize=True, database=None, deadline=None)
RAGGED = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, lengths="ragged", bias=True, outputs=("Y", "Y_h"))


Compute = Callable[[Node, Mapping[str, Any]], Mapping[str, Any]]
Function = Callable[[bytes, dict[str, Any]], Any]


def computing(compute: Compute) -> Function:
    """Return a function for models of one node: the outputs of a computation, rounded."""

    def run(model: bytes, inputs: dict[str, Any]) -> list[Any]:
        parsed = read_model(model)
        bound = parsed.bind(inputs)
        return [array.astype(format_of(bound["X"].dtype).dtype) for array in compute(parsed.node, bound).values()]

    return run


reference = computing(evaluate)
without_lengths = computing(partial(run_fault, FAULTS["lengths.ignored"]))


class Backend:
    """Reference behind the interface of onnx.backend.base.Backend."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU") -> Any:
        names = [value.name for value in model.graph.input]
        return SimpleNamespace(
            run=lambda arrays: reference(model.SerializeToString(), dict(zip(names, arrays, strict=True)))
        )


class OnlyRuns:
    """Backend without its own `prepare`, as onnx's base class allows."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU") -> None:
        return None

    @classmethod
    def run_model(cls, model: onnx.ModelProto, arrays: list[Any], device: str = "CPU") -> Any:
        return Backend.prepare(model).run(arrays)


def as_mapping(model: bytes, inputs: dict[str, Any]) -> dict[str, Any]:
    names = [value.name for value in onnx.load_model_from_string(model).graph.output]
    return dict(zip(names, reference(model, inputs), strict=True))


RIGHT = [reference, as_mapping, Backend, Backend(), OnlyRuns, SimpleNamespace(prepare=Backend.prepare)]


@pytest.mark.parametrize("runner", RIGHT, ids=["function", "mapping", "class", "object", "run_model", "module"])
def test_functions_and_backends_that_conform(runner: Any) -> None:
    assert_conforms(RAGGED, runner)
    case = build_case(RAGGED)
    assert_conforms(case.trial.model, runner, inputs=dict(case.trial.feeds[0].fed))
    assert_conforms(CaseSpec("GRU", 14, outputs=("", "Y_h"), reruns="sizes", dimensions="symbolic"), runner)


def failure_of(subject: CaseSpec, runner: Any) -> NotConforming:
    with pytest.raises(NotConforming) as caught:
        assert_conforms(subject, runner)
    return caught.value


def test_a_failure_names_the_case_to_be_copied() -> None:
    text = str(failure_of(RAGGED, without_lengths))
    assert text.startswith("wrong (value): Y_h[")
    (line,) = [line for line in text.splitlines() if line.startswith("  repeat")]
    value = json.loads(line.removeprefix("  repeat    "))
    assert case_from_json(value) == RAGGED
    assert set(value) == {"op", "version", "type", "T", "N", "I", "H", "lengths", "bias", "outputs"}


def spoilt(change: Callable[[list[Any], dict[str, Any]], Any]) -> Function:
    return lambda model, inputs: change(reference(model, inputs), inputs)


def writes(outputs: list[Any], inputs: dict[str, Any]) -> list[Any]:
    inputs["X"][...] = 0
    return outputs


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda outputs, inputs: outputs[0], "returned ndarray instead of a list of outputs"),
        (lambda outputs, inputs: [], "0 outputs came back, 2 were asked for"),
        (lambda outputs, inputs: [outputs[0].tolist(), outputs[1]], "Y is no NumPy array but list"),
        (lambda outputs, inputs: {"y": outputs[0]}, "an output 'y' came back"),
        (lambda outputs, inputs: [outputs[0].astype(np.float64), outputs[1]], "Y is float64, must be float32"),
        (writes, "the run changed its inputs: X"),
    ],
)
def test_outputs_of_a_wrong_form_are_named(change: Any, message: str) -> None:
    error = failure_of(RAGGED, spoilt(change))
    assert error.judgement.verdict is (Verdict.INPUT_MODIFIED if change is writes else Verdict.MALFORMED)
    assert message in str(error)


def test_runs_that_differ_are_unstable_and_not_wrong() -> None:
    added = [np.float32(1), np.float32(0)]
    error = failure_of(RAGGED, spoilt(lambda outputs, inputs: [outputs[0] + added.pop(), outputs[1]]))
    assert error.judgement.verdict is Verdict.UNSTABLE
    assert not added


def test_memory_that_is_used_again_between_runs_is_no_difference() -> None:
    memory = np.zeros((4, 1, 3, 5), np.float32)

    def reusing(outputs: list[Any], inputs: dict[str, Any]) -> list[Any]:
        memory[...] = outputs[0]
        return [memory, outputs[1]]

    case = build_case(RAGGED)
    first = run_in_process(spoilt(reusing), case.trial).outputs
    memory[...] = 7
    assert len(first[0]) == 1
    assert (first[0][0][0] != 7).any()


def test_an_exception_is_the_tests_own() -> None:
    def failing(model: bytes, inputs: dict[str, Any]) -> Any:
        raise ZeroDivisionError("in my kernel")

    with pytest.raises(ZeroDivisionError, match="in my kernel"):
        assert_conforms(RAGGED, failing)


# Property tests, as a runtime's author writes them


def on_onnxruntime(model: bytes, inputs: dict[str, Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception:
        reject()
    return session.run(None, inputs)


SOUND = ["Sigmoid", "Tanh", "Relu", "Affine", "LeakyRelu", "ScaledTanh", "HardSigmoid", "Elu", "Softsign", "Softplus"]
TAKEN: dict[str, Any] = {"types": "float32", "only": {"layout": [0], "hidden_size": [True], "data": ["dense"]}}


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
def test_onnxruntime_conforms_where_it_is_known_to(op: str) -> None:
    @settings(fixed, max_examples=60)
    @given(strategies.cases(op, 14, activations=SOUND, **TAKEN))
    def check(case: CaseSpec) -> None:
        assert_conforms(case, on_onnxruntime)

    check()


def test_a_wrong_backend_shrinks_to_a_small_case() -> None:
    specs: list[CaseSpec] = []

    @settings(fixed, max_examples=200, phases=[Phase.generate, Phase.shrink])
    @given(strategies.operator_cases())
    def check(case: CaseSpec) -> None:
        specs.append(case)
        assert_conforms(case, without_lengths)

    with pytest.raises(NotConforming, match="sequence_lens="):
        check()
    case = specs[-1]
    assert case.lengths in ("ragged", "short", "empty")
    assert case.T * case.N <= 4
    assert (case.I, case.H, case.bias, case.initial, case.clip) == (1, 1, False, "none", None)


def test_the_property_test_in_the_documents_works() -> None:
    """The test runs as it is printed there, with a right backend and with a wrong one."""
    text = (ROOT / "docs" / "strategies.md").read_text(encoding="utf-8")
    (code,) = [c for c in re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S) if "def test_gru(case)" in c]
    for backend, fails in ((reference, False), (spoilt(lambda outputs, inputs: [-o for o in outputs]), True)):
        names: dict[str, Any] = {"my_backend": backend}
        exec(compile(code, "<property test>", "exec"), names)  # Hypothesis reads the source file of code that has one
        check = settings(fixed, max_examples=20, phases=[Phase.generate])(names["test_gru"])
        with warnings.catch_warnings(), pytest.raises(NotConforming) if fails else nullcontext():
            warnings.simplefilter("ignore")  # that a case could not be judged
            check()
