"""ExtendedLSTM as a user runs it: selection, verdict, diagnosis, scripts.

Recorded outputs replace the library (tests/quark.py).
"""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from rich.console import Console

from onnxspec.cases import Feed, Trial, build_case, profile
from onnxspec.cases.operators.extended_lstm.axes import B, R, W, X, calibrated
from onnxspec.cases.operators.extended_lstm.spec import extended
from onnxspec.cases.portable import case_from_json
from onnxspec.cases.profiles import written_cases
from onnxspec.conformance.cli.explanation import print_explanation
from onnxspec.conformance.diagnosis import explainer
from onnxspec.conformance.diagnosis.explainer import Explainer
from onnxspec.conformance.diagnosis.needed_classes import with_needed_classes
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.conformance.results.expected.entries import Entry
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.showing.evidence import evidence_of
from onnxspec.conformance.targets.target import Target, parse_target
from onnxspec.conformance.workers.job import Job, Outcome
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference import FAULTS, Node, operator_names, operator_of
from onnxspec.reference.operators.extended_lstm.computation import computation_of
from onnxspec.reference.operators.extended_lstm.document import resolve
from onnxspec.reference.operators.extended_lstm.operator import arithmetic_of

from ...quark import QuarkNode, shipped_kernel
from ..diagnosis.in_process import Arrays, case_run, failing_case, matcher, results_on
from ..diagnosis.in_process import Target as Kernel
from ..miniatures import Inside

FULL = [*written_cases("full", "ExtendedLSTM", 1), *profile("core", "ExtendedLSTM", 1)]
OPERATOR = operator_of("ExtendedLSTM")
ONNX, EXTENDED = operator_names(""), operator_names("com.amd.quark")


def case(about: str, number: int = 0) -> Any:
    return [spec for spec in FULL if spec.about == about and not spec.illegal][number]


def shipped(node: Node, inputs: Arrays) -> Arrays:
    return {"Y": shipped_kernel(QuarkNode(node.attributes, inputs))}


def returning(array: Any) -> Kernel:
    return lambda node, inputs: {"Y": array}


def judged(spec: Any, kernel: Kernel = shipped, accuracy: str = "standard") -> Judgement:
    return judge_staged(build_case(spec), kernel, accuracy)


def explained(specs: Sequence[Any], kernel: Kernel = shipped) -> dict[str, tuple[str, ...]]:
    return explainer.explained(*results_on(kernel, specs), "standard")


def script_of(spec: Any) -> str:
    script = SpecProbe(spec).prepare().script(Target("quark", "quark"))
    assert script is not None
    return script


# Selection


def test_each_target_runs_what_it_is_about() -> None:
    onnx, quark = parse_target("onnxruntime"), parse_target("quark")
    assert (onnx.operators, quark.operators) == (ONNX, EXTENDED)
    plan = Plan(Selection("smoke"), tuple(select_probes(Selection("smoke"), (*ONNX, *EXTENDED))), (onnx, quark))
    for target in plan.targets:
        of_target = {*target.operators}
        assert {probe.op for probe in plan.probes_of(target)} == of_target
        assert {probe.op for probe in select_probes(Selection("smoke"), target.operators)} == of_target


# Verdict


def test_realistic_cases_are_right_or_a_known_unit_off() -> None:
    for spec in FULL:
        if spec.about in ("realistic", "asymmetric-weights") and spec.T * spec.I * spec.H < 3000:
            judgement = judged(spec)
            assert judgement.verdict is Verdict.PASS, judgement.message


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
    judgement = judged(case(about))
    assert judgement.verdict in (Verdict.WRONG, Verdict.INACCURATE)
    assert judgement.clause == f"extendedlstm.{clause}"
    assert (judgement.where or {})["units"] > 1
    assert "units of y_scale" in judgement.message


TWO_FAULTS = (
    '{"op":"ExtendedLSTM","version":1,"about":"dense","T":11,"I":32,"H":16,"x":[0.0001220703125,0],'
    '"w":[2.52931641853138e-07,65535],"r":[2.2410149540519342e-05,22309],"b":[6.015146482241107e-06,16911],'
    '"y":[3.3460768463555723e-05,32169],"fill":[["W",1.5]],"data":"inf","reruns":"sizes","seed":53641}'
)


def test_what_bfloat16_would_hold_is_two_faults_where_other_results_need_no_such_class() -> None:
    both = case_from_json(json.loads(TWO_FAULTS))
    assert (judged(both).verdict, judged(both).accuracy) == (Verdict.INACCURATE, None)
    results, probes, kept = results_on(
        shipped, [both, case("infinite-one"), case("y-zero-point-32767"), case("realistic")]
    )
    right = [r for r in results if r.verdict is Verdict.PASS]
    wrong = {r.case: r for r in with_needed_classes([*results, *right, *right])}
    assert wrong[both.id].verdict is Verdict.WRONG
    amended = [wrong.get(r.case, r) for r in results]
    faults = explainer.explained(amended, probes, kept, "standard")[both.id]
    assert {*faults} == {"extended.quantization.infinity-lowest", "extended.output.zero-point-one-up"}


def test_nan_is_not_judged_and_what_does_not_depend_on_it_is() -> None:
    spec = case("nan")
    judgement = judged(spec)
    assert judgement.verdict is Verdict.PASS
    assert 0 < judgement.judged < judgement.elements
    assert judged(case("no-steps")).verdict is Verdict.PASS


@pytest.mark.parametrize("style", OPERATOR.conforming)
def test_conforming_variants_are_not_accused(style: str) -> None:
    kernel = OPERATOR.conforming[style]
    for topic in ("realistic", "asymmetric", "output-beyond-0.6", "xw-power-of-two", "ties", "batch", "large-inputs"):
        judgement = judged(case(topic), kernel.run, kernel.accuracy)
        assert judgement.verdict is Verdict.PASS, (topic, judgement.message)


# Kinds of arithmetic


def in_float32(run: Trial, order: slice = slice(None)) -> NDArray[np.float32]:
    """Compute Y as a float32 kernel that adds one product after the other."""
    A, f32 = run.node.attributes, np.float32
    level = {}
    for name, array in run.feeds[0].inputs.items():
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


def cancelling(I: int = 128, H: int = 8, T: int = 4) -> Trial:
    """Return a trial with large products and small sums, which show the cost of a sum in float32."""
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
    node = Node("ExtendedLSTM", 1, attributes, ("Y",), "com.amd.quark")
    return Trial("x", b"", node, (Feed(inputs, inputs),))


@pytest.mark.parametrize("order", [slice(None), slice(None, None, -1)], ids=["first", "last"])
def test_whoever_declares_nothing_may_compute_in_float32(order: slice) -> None:
    run = cancelling()
    outcome = Outcome("x", "ran", "run", (((in_float32(run, order),),),))
    judgement = judge([run], [outcome])
    assert (judgement.verdict, judgement.accuracy) == (Verdict.PASS, "float32")
    assert judge([run], [outcome], "fixed-point").verdict is Verdict.INACCURATE


@pytest.mark.parametrize("accuracy", ["f16-storage", "bf16-storage", "f16-math", "tf32", "fast"])
def test_narrow_floats_are_judged_by_the_bound_that_holds_them(accuracy: str) -> None:
    assert arithmetic_of(accuracy) == "bfloat16"


def test_nothing_passes_by_a_bound_that_says_nothing() -> None:
    spec = case("pre-activation-300")
    nothing = returning(np.zeros((spec.T, 2, spec.N, spec.H), np.float32))
    assert judged(spec, nothing, "bf16-math").verdict is Verdict.INCONCLUSIVE
    assert judged(spec, nothing, "standard").verdict is Verdict.WRONG


@pytest.mark.parametrize("seed", [5030, 5120])
def test_a_state_beyond_the_range_may_be_shown_rounded(seed: int) -> None:
    """Y saturates, and a bfloat16 kernel returns a rounded copy of the end of its range while it continues with Ht."""
    y = {5030: (5.59343925488065e-06, 29347), 5120: (4.390743470139569e-06, 23135)}[seed]
    spec = replace(case("realistic"), T=5, I=3, H=2, r=calibrated(-2.4, 2.1), y=y, seed=seed)
    node = resolve(spec.node.attributes, build_case(spec).trial.feeds[-1].inputs)
    exact = computation_of(node, "as-computed").evaluate()
    shown = exact.astype(ml_dtypes.bfloat16).astype(np.float32)
    assert judged(spec, returning(shown), "bf16-math").verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)


def test_two_numbers_explain_nothing() -> None:
    spec = replace(case("asymmetric"), seed=10)
    assert (spec.T, spec.H) == (1, 1)
    assert results_on(shipped, [spec])[0][0].failing
    assert explained([spec]) == {}


# Diagnosis, evidence


def test_what_the_kernel_does_is_found_out() -> None:
    names = {
        "xw-power-of-two": {"scales.sign-lost"},
        "output-beyond-positive": {"output.wraps"},
        "y-zero-point-32767": {"output.zero-point-one-up"},
        "infinite-one": {"quantization.infinity-lowest"},
        "xw-small-40": {"scales.small-vanish"},
        "output-beyond-0.6": {"output.wraps", "output.zero-point-one-up"},
        "realistic": set(),
    }
    faults = explained([case(topic) for topic in names])
    for topic, expected in names.items():
        assert {*faults.get(case(topic).id, ())} == {f"extended.{name}" for name in expected}


def test_what_has_another_form_than_it_must_have_is_explained_too() -> None:
    spec = case("no-steps")
    one_step = returning(np.zeros((1, 2, spec.N, spec.H), np.float32))
    assert judged(spec, one_step).verdict is Verdict.MALFORMED
    assert explained([spec], one_step) == {spec.id: ("extended.sizes.at-least-one-step",)}


def test_what_shows_only_beside_other_faults_is_named_with_them() -> None:
    """A sum wraps although each term is within its bounds: only other faults make such terms."""
    beside = ("scales.large-garbage", "pre-activation.terms-saturate", "pre-activation.wraps")
    names = ("output.wraps", "scales.sign-lost", *beside, "scales.small-vanish", "output.zero-point-one-up")
    large = failing_case(case("large-inputs"), shipped)
    assert not large.observation("standard").changes(FAULTS["extended.pre-activation.wraps"])
    explanation = matcher(known=[FAULTS[f"extended.{name}"] for name in names]).by_known(large)
    assert {fault.id for fault in explanation or ()} == {f"extended.{name}" for name in beside}


@pytest.mark.parametrize("scale", [2.0**-8, 1.25 * 2.0**-8, 2.0**-7, 2.0**-6])
def test_coarse_outputs_go_past_zero_where_less_than_half_a_unit_is_left(scale: float) -> None:
    coarse = failing_case(extended("coarse", T=3, I=3, H=20, x=X, w=W, r=R, b=B, y=(scale, 32768), seed=3), shipped)
    assert coarse.observation("standard").fit([FAULTS["extended.output.coarse-shift"]]) is not None


def test_every_case_has_a_script_that_is_python() -> None:
    for spec in FULL[::9] + FULL[-12:]:
        ast.parse(script_of(spec))


def test_a_script_makes_the_cases_own_model(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = case("realistic")
    made: dict[str, Any] = {"__name__": "__main__"}
    monkeypatch.setattr("sys.argv", ["script.py", "no.so"])
    with pytest.raises(SystemExit):
        exec(script_of(spec), made)
    assert made["model"].graph == onnx.load_model_from_string(build_case(spec).trial.model).graph


def test_a_script_without_a_library_shows_nothing(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(script_of(case("realistic")), encoding="utf-8")
    done = subprocess.run([sys.executable, path, "no.so"], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "not tried: there is no library 'no.so'; give the path of one\n"


def test_a_case_is_explained_as_those_of_onnx_are(inside: Inside) -> None:
    spec = case("xw-power-of-two")
    run, file = case_run(spec, shipped), io.StringIO()
    print_explanation(run.probe, run.outcomes, run.judgement, Console(file=file, width=200))
    for words in ("(step 0, forward, row 0)", "got_levels", "extendedlstm.quantization"):
        assert words in file.getvalue()
    done = inside("explain", spec.id)
    assert done.code == 0
    assert "must_levels" in done.out
    assert "got_levels" not in done.out
    forbidden = next(candidate for candidate in FULL if candidate.illegal)
    assert "must be refused" in inside("explain", forbidden.id).out
    ast.parse(inside("explain", spec.id, "--emit", "script").out)


def test_the_evidence_of_a_case_has_its_levels() -> None:
    spec = case("xw-power-of-two")
    run = case_run(spec, shipped)
    trials = run.prepared.trials

    def evidence(*outcomes: Outcome) -> dict[str, Any]:
        judgement = judge(trials, outcomes)
        return evidence_of(
            trials[0].model, [feed.fed for feed in trials[0].feeds], trials, judgement, outcomes, "standard"
        )

    numbers = evidence(*run.outcomes)["numbers"]
    assert numbers["parting"]["ratio"] > 1
    assert len(numbers["plane"]["ratio"]) == spec.T
    assert numbers["gates"]["names"] == ["got_levels", "must_levels", "off_by"]
    assert "numbers" not in evidence(Outcome(spec.id, "refused"))


def test_what_a_target_is_known_for_no_other_case_has_to_show() -> None:
    spec = replace(case("asymmetric"), seed=10)
    run = case_run(spec, shipped)
    assert Explainer("standard", 1000).explain(run) == ()
    faults = ("extended.output.zero-point-*", "extended.gates.*")
    with_entry = Explainer("standard", 1000, [Entry(reason="known", op="ExtendedLSTM", faults=faults)])
    assert with_entry.explain(run) == ("extended.output.zero-point-one-up",)


# A separate worker

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
