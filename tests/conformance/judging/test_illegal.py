"""Forbidden models on targets: refusing them passes, running them fails, refusing all models proves nothing."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from msgspec import structs

from onnxspec import run
from onnxspec.cases import Case, CaseSpec, build_case
from onnxspec.cases.specs.features import illegal_cases
from onnxspec.conformance.cli.application import app
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection, select
from onnxspec.conformance.pytest_plugin.items import item_group
from onnxspec.conformance.results.result import result_of
from onnxspec.conformance.showing.script.script import script_of
from onnxspec.conformance.targets.target import parse_target
from onnxspec.conformance.workers.job import Outcome

from ...recurrent import recurrent_versions

OF_14 = [spec for op, version in recurrent_versions() if version == 14 for spec in illegal_cases(op, version)]
ALSO_OF_14 = {(spec.op, spec.illegal) for spec in OF_14}
ALL = OF_14 + [
    spec
    for op, version in recurrent_versions()
    for spec in illegal_cases(op, version)
    if (op, spec.illegal) not in ALSO_OF_14
]


def case_of(illegal: str, op: str = "LSTM") -> Case:
    return build_case(next(s for s in illegal_cases(op, 14) if s.illegal == illegal))


def judged(case: Case, status: str, phase: str = "load", legal: str = "ran") -> Judgement:
    outcome = Outcome(case.trial.key, status, phase, message="the error")
    return judge(
        case.trials, [outcome, Outcome(f"{case.trial.key}~companion", legal, "load", message="the other error")]
    )


LATE = ("refused-late",)


@pytest.mark.parametrize(
    ("illegal", "status", "phase", "legal", "verdict", "flags"),
    [
        ("direction.sideways", "refused", "load", "ran", Verdict.PASS, ()),
        ("layout.two", "refused", "run", "ran", Verdict.PASS, LATE),
        ("types.mixed", "refused", "run", "ran", Verdict.PASS, LATE),
        ("types.mixed", "refused", "load", "ran", Verdict.PASS, ()),
        ("lengths.negative", "refused", "run", "ran", Verdict.PASS, ()),  # they are known no earlier
        # It shows nothing where the legal model does not run.
        *(("layout.two", "refused", "load", legal, Verdict.UNSUPPORTED, ())
          for legal in ("refused", "crashed", "timed-out", "fell-back")),
        # A provider that does not take it refuses it, unless it takes no model at all.
        ("shapes.W-rows", "fell-back", "load", "ran", Verdict.PASS, ()),
        ("shapes.W-rows", "fell-back", "load", "fell-back", Verdict.FALLBACK, ()),
        # These are no answer.
        *(("lengths.negative", status, "load", "ran", Verdict(status), ())
          for status in ("crashed", "timed-out", "unavailable")),
    ],
)  # fmt: skip
def test_refusing_it_is_a_pass_that_keeps_the_error(
    illegal: str, status: str, phase: str, legal: str, verdict: Verdict, flags: tuple[str, ...]
) -> None:
    judgement = judged(case_of(illegal), status, phase, legal)
    assert (judgement.verdict, judgement.flags) == (verdict, flags)
    if status == "refused" and verdict is Verdict.PASS:
        assert (judgement.reason, judgement.message) == ("refused", "the error")
    if verdict is Verdict.UNSUPPORTED:
        assert "the other error" in judgement.message


@pytest.mark.parametrize(
    ("illegal", "due"), [("types.mixed", "check"), ("layout.two", "load"), ("lengths.above-T", "run")]
)
def test_running_it_fails_and_says_when_refusal_was_due(illegal: str, due: str) -> None:
    case = case_of(illegal, "GRU")
    judgement = judged(case, "ran", "run")
    assert (judgement.verdict, judgement.reason) == (Verdict.NOT_REJECTED, due)
    assert judgement.clause == f"gru.{illegal.partition('.')[0]}"
    assert case.trial.violation.summary in judgement.message


def test_onnxruntime_refuses_every_one_of_a_version_that_it_runs() -> None:
    for result in run("onnxruntime", case=ALL, fill=False).results:
        assert result.verdict is (Verdict.PASS if result.version >= 7 else Verdict.UNSUPPORTED), result.case
        assert result.message or result.reason == "open"


def test_what_onnx_reference_takes_is_expected_and_said_once_for_all_operators() -> None:
    outcome = run("onnx-reference", case=[spec for spec in ALL if spec.version == 14], fill=False)
    accepted = [result for result in outcome.results if result.verdict is Verdict.NOT_REJECTED]
    assert len(accepted) > 30
    assert outcome.unexpected == ()
    assert sum(len(finding["cases"]) for finding in outcome.findings) == len(accepted)
    # A finding without the name of a fault lists what was accepted.
    unnamed = [structs.replace(result, diagnosis=()) for result in outcome.results]
    findings = findings_of(unnamed, {spec.id: SpecProbe(spec) for spec in ALL})
    layout = next(finding for finding in findings if "lstm.layout" in finding["clauses"])
    assert layout["clauses"] == ["lstm.layout", "gru.layout", "rnn.layout"]
    assert (layout["kind"], layout["expected"]) == ("not-rejected", True)
    assert layout["title"] == (
        "accepts what the document forbids: layout is 2, for which no shapes are defined; "
        "layout is -1, for which no shapes are defined"
    )


def test_forbidden_models_come_last_and_are_an_item_of_their_own() -> None:
    chosen = select(Selection(versions=(7, 14), types=("float32",)))
    assert any(spec.illegal for spec in chosen)
    assert [bool(spec.illegal) for spec in chosen] == sorted(bool(spec.illegal) for spec in chosen)
    assert {item_group(SpecProbe(spec)) == "illegal" for spec in chosen if spec.illegal} == {True}


@pytest.mark.parametrize("illegal", ["types.integer", "inputs.too-many", "shapes.lens-length", "activations.unknown"])
@pytest.mark.parametrize(("target", "code"), [("onnxruntime", 0), ("onnx-reference", 1)])
def test_its_script_exits_1_where_it_runs(tmp_path: Path, illegal: str, target: str, code: int) -> None:
    script = tmp_path / "script.py"
    script.write_text(script_of(case_of(illegal), parse_target(target)) or "")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=590, check=False)
    refused = target == "onnxruntime" or illegal == "inputs.too-many"
    assert done.returncode == (0 if refused else code), done.stderr
    assert done.stdout.startswith("refused, as it must be" if refused else "accepted, but invalid")
    assert max(len(line) for line in script.read_text().splitlines() if "noqa" not in line) <= 120


@pytest.mark.parametrize("target", [[], ["--target", "onnx-reference"]])
def test_explain_says_what_is_forbidden(target: list[str]) -> None:
    spec = case_of("inputs.too-many", "GRU").spec
    shown = CliRunner().invoke(app, ["explain", spec.id, *target], env={"COLUMNS": "200"})
    assert shown.exit_code == 0, shown.output
    for text in ("there is an input behind the last one", "due at check", "initial_c", "gru.inputs"):
        assert text in shown.output


def test_a_run_leaves_evidence_of_what_was_accepted(tmp_path: Path) -> None:
    spec = case_of("shapes.initial-h").spec
    options = "run --target onnx-reference --expected none"
    command = [*options.split(), "--case", spec.id, "--out", str(tmp_path / "run")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1, done.output
    (target,) = json.loads((tmp_path / "run" / "run.json").read_text())["targets"]
    assert not target["evidence"]["missing"]
    folder = tmp_path / "run" / target["evidence"]["folders"][spec.id]
    exhibit = json.loads((folder / "evidence.json").read_text())
    assert exhibit["verdict"] == "not-rejected"
    assert "numbers" not in exhibit
    assert next(i for i in exhibit["inputs"] if i["name"] == "initial_h")["shape"] == [1, 1, 5]
    assert (folder / "script.py").is_file()
    assert (folder / "model.onnx").read_bytes() == build_case(spec).trial.model
    assert "forbids" in (tmp_path / "run" / "report" / "index.html").read_text(encoding="utf-8")


def test_what_was_refused_rightly_hides_no_condition_of_a_finding() -> None:
    """All legal cases are wrong in float32: that is the condition, although forbidden float32 models pass."""
    wrong = [CaseSpec("LSTM", 14, T=2, seed=seed) for seed in range(2)]
    right = [CaseSpec("LSTM", 14, "float64", T=2), case_of("layout.two").spec]
    judgements = [(spec, Judgement(Verdict.WRONG, "value", clause="lstm.equations")) for spec in wrong]
    judgements += [(spec, Judgement(Verdict.PASS, "refused" if spec.illegal else None)) for spec in right]
    results = [result_of(SpecProbe(spec), "t", judgement, 0.0, None) for spec, judgement in judgements]
    (finding,) = findings_of(results, {spec.id: SpecProbe(spec) for spec in (*wrong, *right)})
    assert finding["conditions"] == "float32"
