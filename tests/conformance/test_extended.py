"""ExtendedLSTM as a user runs it: selection, verdict, diagnosis, scripts, disagreements, quantization.

The model of the shipped kernel stands in for the library, with which it agrees bit for bit (test_quark.py).
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console
from typer.testing import CliRunner

from onnxspec.cases import profile
from onnxspec.cases.extended_profile import extended_profile
from onnxspec.cases.extended_spec import ExtendedSpec, calibrated
from onnxspec.conformance.cli import app
from onnxspec.conformance.disagreements import disagreements_of
from onnxspec.conformance.evidence import Kept
from onnxspec.conformance.explainer import Explainer
from onnxspec.conformance.explanation import explain
from onnxspec.conformance.extended_diagnosis import explain_extended
from onnxspec.conformance.extended_exhibit import extended_numbers
from onnxspec.conformance.extended_probe import ExtendedProbe, runs_of
from onnxspec.conformance.extended_proof import HONEST_STYLES, prove_extended
from onnxspec.conformance.extended_script import extended_script
from onnxspec.conformance.extended_verdict import ExtendedRun, arithmetic_of, judge_extended
from onnxspec.conformance.judgement import Judgement, Verdict
from onnxspec.conformance.process import Job, Outcome, TargetProcess
from onnxspec.conformance.quantized import NotQuantizable, as_qdq, documented, kernel_rows, measure, quantize
from onnxspec.conformance.result import Result, result_of
from onnxspec.conformance.run import Plan
from onnxspec.conformance.selection import Selection, UnknownName, select_probes
from onnxspec.conformance.stream import Tried
from onnxspec.conformance.target import Target, parse_target
from onnxspec.reference import EXTENDED, EXTENDED_DEVIATIONS, OPERATORS
from onnxspec.reference.extended_lstm import evaluate_extended, resolve
from onnxspec.reference.extended_lstm_kernel import Parameters, run_kernel

CORE = extended_profile("core")
TARGET = Target("quark", "quark")


def case(about: str, number: int = 0) -> ExtendedSpec:
    return [spec for spec in CORE if spec.about == about and not spec.illegal][number]


def shipped(spec: ExtendedSpec) -> Outcome:
    """What the shipped kernel returns."""
    outputs = []
    for run in runs_of(spec):
        X, W, R, B = (run.inputs[name] for name in ("X", "W", "R", "B"))
        outputs.append(((run_kernel(X, W, R, B, Parameters.of(run.attributes)),),))
    return Outcome(spec.id, "ran", "run", tuple(outputs))


def judged(spec: ExtendedSpec, outcome: Outcome | None = None) -> Judgement:
    return judge_extended(spec, runs_of(spec), outcome or shipped(spec), "standard")


def results_of(specs: Sequence[ExtendedSpec]) -> tuple[list[Result], dict[str, Any], Kept]:
    kept, probes, results = Kept(), {}, []
    for spec in specs:
        probe = ExtendedProbe(spec)
        outcome = shipped(spec)
        judgement = judged(spec, outcome)
        kept.offer(Tried(probe, probe.prepare(), (outcome,), judgement))
        probes[probe.id] = probe
        results.append(result_of(probe, "quark", judgement, 0.0, None))
    return results, probes, kept


# Selection


def test_each_target_runs_what_it_is_about() -> None:
    onnx, quark = parse_target("onnxruntime"), parse_target("quark")
    assert (onnx.operators, quark.operators) == (OPERATORS, EXTENDED)
    assert {probe.op for probe in select_probes(Selection("smoke"), quark.operators)} == {"ExtendedLSTM"}
    assert {probe.op for probe in select_probes(Selection("smoke"), onnx.operators)} == set(OPERATORS)
    both = select_probes(Selection("smoke"), (*OPERATORS, *EXTENDED))
    plan = Plan(Selection("smoke"), tuple(both), (onnx, quark))
    assert {probe.op for probe in plan.probes_of(quark)} == {"ExtendedLSTM"}
    assert {probe.op for probe in plan.probes_of(onnx)} == set(OPERATORS)


def test_operators_and_cases_by_name() -> None:
    chosen = select_probes(Selection("smoke", ops=("ExtendedLSTM",)), OPERATORS)
    assert [probe.id for probe in chosen] == [spec.id for spec in extended_profile("smoke")]
    wanted = case("batch").id
    assert [p.id for p in select_probes(Selection("smoke", cases=(wanted,)), EXTENDED)] == [wanted]
    assert [p.id for p in select_probes(Selection("smoke", cases=(wanted,)), OPERATORS)] == [wanted]
    lstm = profile("core", "LSTM", 14)[0].id
    assert [s.id for s in select_probes(Selection(cases=(lstm,)), EXTENDED)] == [lstm]
    with pytest.raises(UnknownName, match="ExtendedLSTN"):
        select_probes(Selection(ops=("ExtendedLSTN",)), OPERATORS)
    with pytest.raises(UnknownName, match="type"):
        select_probes(Selection(types=("float16",)), EXTENDED)


# Verdict


def test_realistic_cases_are_right_or_a_known_unit_off() -> None:
    for spec in CORE:
        if spec.about in ("realistic", "asymmetric-weights") and spec.T * spec.I * spec.H < 3000:
            found = judged(spec)
            assert found.verdict is Verdict.PASS, found.message
            assert "as-shipped" in found.flags


@pytest.mark.parametrize(
    ("about", "clause"),
    [
        ("xw-power-of-two", "equations"),
        ("output-beyond-positive", "output-quantization.saturation"),
        ("infinite-one", "quantization.saturation"),
        ("y-zero-point-32767", "output-quantization.nearest"),
    ],
)
def test_what_is_wrong_names_its_clause_and_its_size(about: str, clause: str) -> None:
    found = judged(case(about))
    assert found.verdict in (Verdict.WRONG, Verdict.INACCURATE)
    assert found.clause == f"extendedlstm.{clause}"
    assert found.where is not None
    assert found.where["units"] > 1
    assert "units of y_scale" in found.message


def test_forms_that_are_wrong() -> None:
    spec = case("realistic", 3)
    Y = np.zeros((5, 2, 1, 3), np.float32)
    for array, reason in ((Y[:4], "shape"), (Y.astype(np.float64), "type"), (None, "form")):
        found = judged(spec, Outcome(spec.id, "ran", "run", (((array,),),)))
        assert (found.verdict, found.reason) == (Verdict.MALFORMED, reason)
    found = judged(spec, Outcome(spec.id, "ran", "run", (((Y, Y),),)))
    assert found.reason == "count"
    assert judged(spec, Outcome(spec.id, "crashed", message="x")).verdict is Verdict.CRASHED


def test_nan_is_not_judged_and_what_does_not_depend_on_it_is() -> None:
    spec = case("nan")
    found = judged(spec)
    assert found.verdict is Verdict.PASS
    assert 0 < found.judged < found.elements
    assert judged(case("no-steps")).verdict is Verdict.PASS


@pytest.mark.parametrize("style", HONEST_STYLES)
def test_honest_implementations_are_not_accused(style: str) -> None:
    for about in ("realistic", "asymmetric", "output-beyond-0.6", "xw-power-of-two", "ties", "batch", "large-inputs"):
        spec = case(about)
        Y = [HONEST_STYLES[style](run.node) for run in runs_of(spec)]
        outcome = Outcome(spec.id, "ran", "run", tuple(((each,),) for each in Y))
        found = judge_extended(spec, runs_of(spec), outcome, "bf16-math" if style == "float32x" else "standard")
        assert found.verdict is Verdict.PASS, (about, found.message)


# Kinds of arithmetic


def in_float32(run: ExtendedRun, order: slice = slice(None)) -> NDArray[np.float32]:
    """What a kernel of float32 computes that adds one product after the other."""
    A, f32 = run.attributes, np.float32
    level = {}
    for name, array in run.inputs.items():
        scale, zero = f32(A[f"{name.lower()}_scale"]), A[f"{name.lower()}_zero_point"]
        level[name] = (np.clip(np.rint(array / scale) + f32(zero), 0, 65535) - f32(zero)).astype(f32) * scale
    X, W, R, B = (level[name] for name in "XWRB")
    T, N, H = X.shape[0], X.shape[1], R.shape[2]
    y_scale, y_zero = f32(A["y_scale"]), A["y_zero_point"]
    Y = np.zeros((T, 2, N, H), f32)
    for d in range(2):
        h, c = np.zeros((N, H), f32), np.zeros((N, H), f32)
        for t in range(T) if d == 0 else reversed(range(T)):
            a = B[d, : 4 * H] + B[d, 4 * H :] + np.zeros((N, 4 * H), f32)
            for number, weights in ((X[t], W[d]), (h, R[d])):
                for k in range(number.shape[1])[order]:
                    a = a + number[:, k : k + 1] * weights[:, k]
            i, o, f = (f32(1) / (f32(1) + np.exp(-a[:, k * H : (k + 1) * H])) for k in range(3))
            c = f * c + i * np.tanh(a[:, 3 * H :])
            h = (np.clip(np.rint(o * np.tanh(c) / y_scale) + f32(y_zero), 0, 65535) - f32(y_zero)) * y_scale
            Y[t, d] = h
    return Y


def cancelling(I: int = 128, H: int = 8, T: int = 4) -> ExtendedRun:
    """Levels whose products are large and whose sums are small: what a sum costs in float32 shows here."""
    numbers = np.random.default_rng(128)
    scales = {
        name: float(np.float32(size / 65535)) for name, size in (("x", 12), ("w", 2), ("r", 1), ("b", 1), ("y", 2))
    }
    x = numbers.integers(16000, 32000, (T, 1, I // 2))
    w = numbers.integers(8000, 32000, (2, 4 * H, I // 2))
    w = np.concatenate([w, numbers.integers(-1, 2, w.shape) * (numbers.random(w.shape) < 0.001) - w], -1)
    levels = {
        "X": np.concatenate([x, x], -1),
        "W": w,
        "R": numbers.integers(-32000, 32000, (2, 4 * H, H)),
        "B": numbers.integers(-32000, 32000, (2, 8 * H)),
    }
    inputs = {name: (array * scales[name.lower()]).astype(np.float32) for name, array in levels.items()}
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": H}
    for name, scale in scales.items():
        attributes |= {f"{name}_scale": scale, f"{name}_zero_point": 32768}
    return ExtendedRun(resolve(attributes, inputs), attributes, inputs)


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["first", "last"])
def test_whoever_declares_nothing_may_compute_in_float32(order: slice) -> None:
    run = cancelling()
    outcome = Outcome("x", "ran", "run", (((in_float32(run, order),),),))
    found = judge_extended(case("realistic"), [run], outcome, "standard")
    assert (found.verdict, found.accuracy) == (Verdict.PASS, "float32")
    assert judge_extended(case("realistic"), [run], outcome, "fixed-point").verdict is Verdict.INACCURATE


@pytest.mark.parametrize("accuracy", ["f16-storage", "bf16-storage", "f16-math", "tf32", "fast"])
def test_narrow_floats_are_judged_by_the_bound_that_holds_them(accuracy: str) -> None:
    assert arithmetic_of(accuracy) == "bfloat16"


def test_nothing_passes_by_a_bound_that_says_nothing() -> None:
    spec = case("pre-activation-300")
    (run,) = runs_of(spec)
    nothing = Outcome(spec.id, "ran", "run", (((np.zeros(run.shape, np.float32),),),))
    assert judge_extended(spec, [run], nothing, "bf16-math").verdict is Verdict.UNJUDGED
    assert judge_extended(spec, [run], nothing, "standard").verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", [5030, 5120])
def test_a_state_beyond_the_range_may_be_shown_rounded(seed: int) -> None:
    """Y saturates, and a kernel of bfloat16 shows a rounded copy of the end of its range while it goes on with Ht."""
    y = {5030: (5.59343925488065e-06, 29347), 5120: (4.390743470139569e-06, 23135)}[seed]
    spec = replace(case("realistic"), T=5, I=3, H=2, r=calibrated(-2.4, 2.1), y=y, seed=seed)
    (run,) = runs_of(spec)
    exact = evaluate_extended(run.node, "as-computed")
    shown = exact.astype(ml_dtypes.bfloat16).astype(np.float32)
    outcome = Outcome(spec.id, "ran", "run", (((shown,),),))
    assert judge_extended(spec, [run], outcome, "bf16-math").verdict in (Verdict.PASS, Verdict.UNJUDGED)


def test_two_numbers_explain_nothing() -> None:
    spec = case("asymmetric")
    assert (spec.T, spec.H) == (1, 1)
    results, probes, kept = results_of([spec])
    assert results[0].failing
    assert explain_extended(results, probes, kept) == {}


# Diagnosis, evidence, disagreements


def test_what_the_kernel_does_is_found_out() -> None:
    specs = [
        case(about)
        for about in ("xw-power-of-two", "output-beyond-positive", "y-zero-point-32767", "infinite-one", "xw-small-40")
    ]
    specs += [case("output-beyond-0.6"), case("realistic")]
    results, probes, kept = results_of(specs)
    found = explain_extended(results, probes, kept)
    assert found[specs[0].id] == ("extended.scales.sign-lost",)
    assert found[specs[1].id] == ("extended.output.wraps",)
    assert found[specs[2].id] == ("extended.output.zero-point-one-up",)
    assert found[specs[3].id] == ("extended.quantization.infinity-lowest",)
    assert found[specs[4].id] == ("extended.scales.small-vanish",)
    assert found[specs[5].id] == ("extended.output.wraps", "extended.output.zero-point-one-up")
    assert specs[6].id not in found


def test_disagreements_are_tied_to_results() -> None:
    from dataclasses import replace

    results, probes, kept = results_of([case("xw-power-of-two"), case("realistic", 2)])
    explained = explain_extended(results, probes, kept)
    results = [replace(r, diagnosis=explained.get(r.case, ())) for r in results]
    found = {entry["id"]: entry for entry in disagreements_of(results, probes)}
    assert found["sign-lost"]["seen"] == "shown"
    assert found["sign-lost"]["units"] > 1000
    assert found["not-bfloat16"]["seen"] == "within the bound"
    assert found["batch"]["seen"] == "not tried"
    assert disagreements_of([], {}) == []


def test_every_case_has_a_script_that_is_python() -> None:
    for spec in CORE[::9] + CORE[-12:]:
        ast.parse(extended_script(spec, TARGET))


def test_a_script_looks_at_the_numbers_of_every_case_that_has_levels() -> None:
    for spec in CORE:
        looks = "units of y_scale" in extended_script(spec, TARGET)
        assert looks == (spec.y is not None and not spec.illegal), spec.id


def test_a_script_without_a_library_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(extended_script(case("realistic"), TARGET), encoding="utf-8")
    done = subprocess.run([sys.executable, path, "no.so"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "not tried: there is no library 'no.so'; give the path of one\n"


def test_a_case_is_explained_as_those_of_onnx_are() -> None:
    spec = case("xw-power-of-two")
    probe = ExtendedProbe(spec)
    file = io.StringIO()
    explain(probe, [shipped(spec)], judged(spec), Console(file=file, width=200), diagnosis=("extended.x",))
    text = file.getvalue()
    assert "They part first at Y[" in text
    assert "got levels" in text
    assert "extendedlstm.quantization" in text
    alone = CliRunner().invoke(app, ["explain", spec.id], env={"COLUMNS": "200"})
    assert alone.exit_code == 0
    assert "must levels" in alone.output
    assert "got levels" not in alone.output
    forbidden = next(each for each in CORE if each.illegal)
    assert "must be refused" in CliRunner().invoke(app, ["explain", forbidden.id]).output
    script = CliRunner().invoke(app, ["explain", spec.id, "--emit", "script"]).output
    ast.parse(script)


def test_numbers_of_an_exhibit() -> None:
    spec = case("xw-power-of-two")
    outcome = shipped(spec)
    found = extended_numbers(spec, [outcome], judged(spec, outcome), "standard")
    assert found is not None
    assert found["parting"]["ratio"] > 1
    assert len(found["plane"]["ratio"]) == spec.T
    assert extended_numbers(spec, [Outcome(spec.id, "refused")], judged(spec), "standard") is None


def test_what_a_target_is_known_for_no_other_case_has_to_show() -> None:
    spec = case("asymmetric")
    probe = ExtendedProbe(spec)
    one = Tried(probe, probe.prepare(), (shipped(spec),), judged(spec))
    assert Explainer("standard", 1000).explain(one) == ()
    known = Explainer("standard", 1000, ["extended.output.zero-point-*", "extended.gates.*"])
    assert known.explain(one) == ("extended.output.zero-point-one-up",)


# Proof


def test_a_deviation_is_proved_or_survives() -> None:
    *_, proof = prove_extended([case("realistic", 3), case("realistic", 4)], ["extended.gates.order-ifoc"])
    assert not isinstance(proof, int)
    assert proof.rows[0].proved
    assert not proof.accusations
    *_, proof = prove_extended([case("realistic", 3)], ["extended.batch.rows-alike"])
    assert not isinstance(proof, int)
    assert proof.survivors


def test_there_are_deviations_of_every_kind() -> None:
    kinds = {id.split(".")[1] for id in EXTENDED_DEVIATIONS}
    assert {"quantization", "scales", "pre-activation", "output", "state", "directions", "interface"} <= kinds
    assert len(EXTENDED_DEVIATIONS) >= 20


# Quantization of a float LSTM


def lstm(direction: str) -> Any:
    specs = profile("core", "LSTM", 14)
    return next(s for s in specs if s.direction == direction and s.type == "float32" and not s.illegal and s.bias)


def test_quantizing_costs_about_a_unit() -> None:
    q = quantize(lstm("bidirectional"))
    ideal, deployed = measure(q, "documented", documented(q)), measure(q, "kernel", kernel_rows(q))
    assert 0 < ideal.largest < 10 * q.unit
    assert 0 < deployed.largest < 10 * q.unit
    assert ideal.radii["standard"] > 1 > ideal.radii["bf16-math"]


def test_the_qdq_model_runs_on_onnxruntime() -> None:
    import onnxruntime as ort

    q = quantize(lstm("bidirectional"))
    session = ort.InferenceSession(as_qdq(q), providers=["CPUExecutionProvider"])
    Y = session.run(None, {"X": q.inputs["X"][:, :1]})[0]
    assert np.abs(Y - q.exact[:, :, :1]).max() < 10 * q.unit


def test_what_cannot_be_quantized_is_said() -> None:
    with pytest.raises(NotQuantizable, match="bidirectional only"):
        quantize(lstm("forward"))
    with pytest.raises(NotQuantizable, match="no float32 LSTM"):
        quantize(profile("core", "GRU", 14)[0])


# A worker of its own

_ADAPTER = """
import os
import numpy as np

class Adapter:
    def __init__(self, options): pass
    def describe(self): return {"runtime": "pid", "version": "1"}
    def prepare(self, model): return self
    def run(self, feeds): return [np.array([os.getpid()], np.int64)]
"""


def test_what_may_spoil_memory_has_a_process_of_its_own(tmp_path: Any) -> None:
    adapter = tmp_path / "pid.py"
    adapter.write_text(_ADAPTER)
    jobs = [Job(str(k), b"", ({"x": np.zeros(1, np.float32)},), alone=k in (2, 3)) for k in range(6)]
    with TargetProcess(Target("pid", str(adapter))) as process:
        process.start()
        outcomes = list(process.run(jobs))
    assert [o.key for o in outcomes] == [job.key for job in jobs]
    pids = [int(o.outputs[0][0][0][0]) for o in outcomes]  # type: ignore[index]
    assert pids[0] == pids[1]
    assert pids[4] == pids[5]
    assert len({pids[0], pids[2], pids[3], pids[4]}) == 4
