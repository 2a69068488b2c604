"""Recordings are equal where only what varies differs, and everything else that differs is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks.comparison.__main__ import main
from benchmarks.comparison.comparing import Difference, compare
from benchmarks.comparison.recording import record
from benchmarks.comparison.steps import Step, steps
from benchmarks.comparison.varying import VARYING

RESULT = {
    "case": "gru-14.float32.forward.T4N3I2H5.d456c0",
    "target": "onnxruntime",
    "verdict": "pass",
    "flags": ["nondeterministic"],
    "worst": 0.25,
    "seconds": 0.5,
    "message": "the process died at 0x7fa2c0ffee",
}
FINDING = {"kind": "wrong", "title": "clip ignored", "fault": "clip.ignored", "cases": ["a", "b"]}
RUN = {"started": "2026-11-22T16:52:01Z", "cases": 2, "targets": [{"name": "onnxruntime", "findings": [FINDING]}]}


def recording(folder: Path, results: list[dict[str, Any]], run: dict[str, Any]) -> Path:
    """A recording of one step, which is a run."""
    kept = folder / "smoke" / "run"
    kept.mkdir(parents=True)
    lines = [json.dumps(result) + "\n" for result in results]
    (kept / "results.jsonl").write_text("".join(lines), encoding="utf-8")
    (kept / "run.json").write_text(json.dumps(run), encoding="utf-8")
    (kept / "model.onnx").write_bytes(b"\x00\x01")
    (folder / "smoke" / "0.out").write_text(f"results: {kept}/results.jsonl\nit took 0.3 s\n", encoding="utf-8")
    told = {"places": {"recording": str(folder)}, "steps": {"smoke": {"exit_codes": [0]}}}
    (folder / "recording.json").write_text(json.dumps(told), encoding="utf-8")
    return folder


def differences(tmp_path: Path, results: list[dict[str, Any]], run: dict[str, Any]) -> list[Difference]:
    before = recording(tmp_path / "before", [RESULT, {**RESULT, "case": "other"}], RUN)
    return compare(before, recording(tmp_path / "after", results, run))


def test_what_varies_from_run_to_run_is_no_difference(tmp_path: Path) -> None:
    results = [
        {**RESULT, "seconds": 0.7, "message": "the process died at 0x55d0beef10"},
        {**RESULT, "case": "other", "seconds": 0.1},
    ]
    assert differences(tmp_path, results, {**RUN, "started": "2026-11-23T09:00:00Z"}) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("verdict", "wrong"), ("flags", []), ("worst", 0.2500001), ("message", "it hung"), ("reason", "value")],
)
def test_a_field_of_a_result_that_differs_is_told_with_its_case(tmp_path: Path, field: str, value: object) -> None:
    changed = [{**RESULT, field: value}, {**RESULT, "case": "other"}]
    (told,) = differences(tmp_path, changed, RUN)
    assert (told.step, told.file) == ("smoke", "run/results.jsonl")
    assert told.field.startswith(f"*/{field}")
    assert RESULT["case"] in told.path


def test_a_result_that_is_gone_is_told_once_and_shifts_no_other(tmp_path: Path) -> None:
    (told,) = differences(tmp_path, [{**RESULT, "case": "other"}], RUN)
    assert RESULT["case"] in told.path
    assert told.after == "(absent)"


def test_results_in_another_order_are_a_difference(tmp_path: Path) -> None:
    (told,) = differences(tmp_path, [{**RESULT, "case": "other"}, RESULT], RUN)
    assert told.field == "(order)"


@pytest.mark.parametrize("change", [{"kind": "inaccurate"}, {"fault": ""}, {"cases": ["a"]}, {"title": "clip is late"}])
def test_a_finding_is_compared_by_kind_title_fault_and_cases(tmp_path: Path, change: dict[str, Any]) -> None:
    run = {**RUN, "targets": [{"name": "onnxruntime", "findings": [{**FINDING, **change}]}]}
    told = differences(tmp_path, [RESULT, {**RESULT, "case": "other"}], run)
    assert told
    assert all(each.field.startswith("targets/*/findings") for each in told)


def test_files_are_compared_byte_for_byte_and_none_may_lack(tmp_path: Path) -> None:
    before = recording(tmp_path / "before", [RESULT], RUN)
    after = recording(tmp_path / "after", [RESULT], RUN)
    (after / "smoke/run/model.onnx").write_bytes(b"\x00\x02")
    (after / "smoke/run/more.txt").write_text("", encoding="utf-8")
    assert [(each.file, each.field) for each in compare(before, after)] == [
        ("run/model.onnx", ""),
        ("run/more.txt", "file there"),
    ]


def test_what_one_recording_lacks_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = recording(tmp_path / "before", [RESULT], RUN)
    after = recording(tmp_path / "after", [RESULT], RUN)
    told = json.loads((after / "recording.json").read_text(encoding="utf-8"))
    told["steps"]["smoke"] = {"not_recorded": "tract is not installed"}
    (after / "recording.json").write_text(json.dumps(told), encoding="utf-8")
    assert main(["compare", str(before), str(after)]) == 1
    assert "tract is not installed" in capsys.readouterr().out
    assert main(["compare", str(before), str(before)]) == 0


def test_files_may_be_chosen_and_how_far_a_run_is_is_no_difference(tmp_path: Path) -> None:
    before = recording(tmp_path / "before", [RESULT], RUN)
    after = recording(tmp_path / "after", [{**RESULT, "verdict": "wrong"}], RUN)
    (before / "smoke/0.err").write_text("", encoding="utf-8")
    (after / "smoke/0.err").write_text("onnxruntime: 60 of 1,497 cases after 9 s: 60 pass\n", encoding="utf-8")
    assert [each.file for each in compare(before, after)] == ["run/results.jsonl"]
    assert compare(before, after, files=["*/run.json", "*.err"]) == []


def test_fields_of_one_sort_have_one_name_whatever_case_they_are_of(tmp_path: Path) -> None:
    before = recording(tmp_path / "before", [RESULT], {"cases": {"a.T1": {"fair": True}, "a.T2": {"fair": True}}})
    after = recording(tmp_path / "after", [RESULT], {"cases": {"a.T1": {"fair": False}, "a.T2": {"fair": False}}})
    assert {each.field for each in compare(before, after)} == {"cases/*/fair"}


def test_each_thing_that_varies_has_a_reason() -> None:
    assert all(len(each.reason.split()) > 2 for each in VARYING)


@pytest.mark.long
def test_a_target_that_is_not_installed_is_named_as_not_recorded(tmp_path: Path) -> None:
    there = Step("clauses", (("clauses", "GRU-3"),))
    absent = Step("absent", (("run", "--target", "onnxruntime:NoSuchExecutionProvider", "--profile", "smoke"),))
    (line,) = record(tmp_path / "out", [there, absent], sys.executable)
    assert line.startswith("absent: not recorded: ")
    assert "GRU" in (tmp_path / "out/clauses/0.out").read_text(encoding="utf-8")
    assert not (tmp_path / "out/absent").exists()


def test_steps_have_names_of_their_own_and_read_only_what_earlier_ones_wrote() -> None:
    named = [step.name for step in steps(["onnx-reference", "tract"], "runtimes.toml")]
    assert len(set(named)) == len(named)
    for number, step in enumerate(steps(["tract"], "runtimes.toml")):
        for argument in (argument for command in step.commands for argument in command):
            if argument.startswith("../"):
                assert argument.split("/")[1] in named[:number]
