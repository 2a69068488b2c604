"""Evidence that a run stores for the smallest case of each finding; storing it never costs a result."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxspec.cases import CaseSpec, build_case
from onnxspec.cases.directories import directory
from onnxspec.conformance.judging.divergence import format_index
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.selection import Selection, select
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.results import evidence as module
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.showing.evidence import evidence_of
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import evaluate

from ..miniatures import Command, Finished, naming, pick, read_results

Inside = Callable[..., Finished]


def ragged(spec: CaseSpec) -> bool:
    return spec.lengths == "ragged" and spec.data == "dense" and "Y" in spec.outputs and spec.reruns == "none"


def record_of(folder: Path, target: int = 0) -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))["targets"][target]["evidence"]
    return entry


def exhibit(folder: Path, case: str, target: int = 0) -> dict[str, Any]:
    case_folder = folder / record_of(folder, target)["folders"][case]
    content: dict[str, Any] = json.loads((case_folder / "evidence.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def wrong(kin: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the run of a backend that ignores sequence_lens, and the smallest case of its finding."""
    folder = tmp_path_factory.mktemp("wrong")
    command = Command(kin, folder)
    command("run", "-t", "backend:lengths_ignored", *naming(pick(3, ragged)), "--no-extra", "--out", folder / "run")
    smallest = json.loads((folder / "run" / "run.json").read_text())["targets"][0]["findings"][0]["smallest"]
    return folder / "run", smallest


def test_the_numbers_are_those_of_the_verdict(wrong: tuple[Path, str]) -> None:
    folder, case = wrong
    shown = exhibit(folder, case)
    (result,) = [r for r in read_results(folder) if r["case"] == case]
    assert (shown["verdict"], shown["message"]) == ("wrong", result["message"])
    numbers = shown["numbers"]
    assert numbers["parting"]["place"] == format_index(result["where"]["output"], result["where"]["index"])
    in_rows = [ratio for row in numbers["rows"]["ratio"] for ratio in row if isinstance(ratio, float)]
    assert 1 < numbers["parting"]["ratio"] <= max(in_rows) <= result["worst"]


def test_a_plane_has_every_step_and_unit_of_a_small_case(wrong: tuple[Path, str]) -> None:
    folder, case = wrong
    (spec,) = select(Selection(cases=(case,)))
    numbers = exhibit(folder, case)["numbers"]
    plane, rows, gates = numbers["plane"], numbers["rows"], numbers["gates"]
    assert np.array(plane["ratio"], dtype=object).shape == (spec.T, spec.H)
    assert len(rows["ratio"]) == spec.N * spec.directions
    lengths = build_case(spec).trial.feeds[-1].inputs["sequence_lens"]
    assert rows["lengths"] == lengths.tolist() * spec.directions
    assert plane["length"] == lengths[numbers["row"]]
    assert gates["names"] == ["i", "o", "f", "c", "C", "H"]
    assert [line["padding"] for line in gates["lines"]] == [s >= plane["length"] for s in range(spec.T)]
    # The plot and the table of gates have the same numbers.
    for line, ratio in zip(gates["lines"], plane["ratio"], strict=True):
        assert line["ratio"] == ratio[numbers["unit"]]


def test_its_files_are_the_case_and_a_backend_module_has_no_script(wrong: tuple[Path, str]) -> None:
    folder, case = wrong
    case_folder = folder / record_of(folder)["folders"][case]
    assert {path.name for path in case_folder.iterdir()} == {"model.onnx", "test_data_set_0", "evidence.json"}
    (spec,) = select(Selection(cases=(case,)))
    trial = build_case(spec).trial
    assert (case_folder / "model.onnx").read_bytes() == trial.model
    y = evaluate(trial.node, trial.feeds[0].inputs)["Y"].astype(np.float32)
    for name, arrays in {"input": trial.feeds[0].fed.values(), "output": [y]}.items():
        files = sorted((case_folder / "test_data_set_0").glob(f"{name}*"))
        stored = [numpy_helper.to_array(onnx.load_tensor(str(path))).tobytes() for path in files]
        assert stored[: len(arrays)] == [array.tobytes() for array in arrays]


def test_a_crash_keeps_what_the_runtime_said(inside: Inside, tmp_path: Path) -> None:
    cases = pick(1, lambda s: s.direction == "bidirectional" and s.data == "dense" and "Y" in s.outputs)
    inside("run", "-t", "backend:aborting", *naming(cases), "--no-extra", "--out", tmp_path / "run")
    shown = exhibit(tmp_path / "run", cases[0])
    assert shown["process"]["status"] == "crashed"
    assert shown["process"]["signal"] == "SIGABRT"
    assert "numbers" not in shown
    assert (tmp_path / "run" / record_of(tmp_path / "run")["folders"][cases[0]] / "model.onnx").is_file()


def test_what_passes_leaves_nothing(inside: Inside, tmp_path: Path) -> None:
    inside("run", "-t", "backend:conforming", *naming(pick(2, ragged)), "--out", tmp_path / "run")
    assert record_of(tmp_path / "run") == {"folders": {}, "larger": {}, "missing": {}}
    assert not (tmp_path / "run" / "evidence").exists()


def test_a_run_that_goes_on_has_the_evidence_of_before(inside: Inside, tmp_path: Path) -> None:
    arguments = ("run", "-t", "backend:lengths_ignored", *naming(pick(2, ragged)), "--no-extra", "--out", "run")
    inside(*arguments)
    before = record_of(tmp_path / "run")
    name, *_ = before["folders"].values()
    (tmp_path / "run" / name / "evidence.json").unlink()
    inside(*arguments, "--resume")
    assert record_of(tmp_path / "run") == before
    assert "numbers" in json.loads((tmp_path / "run" / name / "evidence.json").read_text())


def test_evidence_that_cannot_be_written_costs_no_result(
    inside: Inside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directory, "write_directory", full)
    cases = naming(pick(2, ragged))
    done = inside("run", "-t", "backend:lengths_ignored", *cases, "--no-extra", "--out", tmp_path / "run")
    assert done.code == 1
    assert [r["verdict"] for r in read_results(tmp_path / "run")] == ["wrong", "wrong"]
    evidence = record_of(tmp_path / "run")
    assert evidence["folders"] == {}
    assert set(evidence["missing"].values()) == {"OSError: [Errno 28] No space left on device"}
    assert (tmp_path / "run" / "report" / "index.html").is_file()


def shown_of(spec: CaseSpec, change: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the evidence of a case on a target that changes the right outputs."""
    prepared = SpecProbe(spec).prepare()
    trial, job = prepared.trials[0], prepared.jobs[0]
    dtype = trial.feeds[0].inputs["X"].dtype
    rights = [evaluate(trial.node, feed.inputs).values() for feed in trial.feeds]
    lists = tuple((tuple(change(array.astype(dtype)) for array in right),) for right in rights)
    outcome = Outcome(trial.key, "ran", "run", lists)
    judgement = prepared.judge([outcome], "standard")
    return evidence_of(job.model, job.feeds, prepared.trials, judgement, [outcome], "standard")


@pytest.mark.parametrize("outputs", [("Y", "Y_h"), ("", "Y_h")])
def test_message_and_numbers_are_of_the_same_run_of_a_session(outputs: tuple[str, ...]) -> None:
    """Both runs are wrong, the second more: the message is about the first."""
    calls = itertools.count()
    spec = CaseSpec("RNN", 14, T=3, N=2, I=2, H=2, reruns="data", outputs=outputs)
    shown = shown_of(spec, lambda array: array + np.asarray(0.001 * 4 ** next(calls), array.dtype))
    assert "run 1 of 2" in shown["message"]
    assert shown["numbers"]["title"].startswith("Run 1 of 2 of the session")
    assert shown["message"].startswith(shown["numbers"]["parting"]["place"])


def test_evidence_of_a_large_case_stays_small() -> None:
    (case,) = select(Selection(cases=(pick(1, ragged)[0],)))
    spec = replace(case, T=90, N=5, I=3, H=70)
    shown = shown_of(spec, lambda array: array * np.asarray(1.5, array.dtype))
    assert len(json.dumps(shown, allow_nan=False)) < 400_000
    plane = shown["numbers"]["plane"]
    assert (plane["of_steps"], plane["of_units"]) == (spec.T, spec.H)
    assert len(plane["steps"]) == min(spec.T, 64)
    assert len(plane["units"]) == min(spec.H, 64)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_json_lacks_are_texts(value: float) -> None:
    (spec,) = select(Selection(cases=(pick(1, ragged)[0],)))
    shown = shown_of(spec, lambda array: np.full_like(array, value))
    text = json.dumps(shown, allow_nan=False)
    assert shown["numbers"]["parting"]["got"] == str(value)
    assert shown["numbers"]["parting"]["ratio"] == "inf"
    assert json.loads(text) == shown


def test_outcomes_beyond_the_limit_are_not_kept() -> None:
    """The evidence of a run that goes on shows that they are run again."""
    probe = SpecProbe(CaseSpec("RNN", 14, T=3, N=2, I=2, H=2))
    outcome = Outcome(probe.id, "ran", "run", (((np.zeros(60, np.float32),),),))
    for room, kept in ((1000, None), (2000, (Judgement(Verdict.WRONG), (outcome,)))):
        record = Kept(room=room)
        record.offer(CaseRun(probe, probe.prepare(), (outcome,), Judgement(Verdict.WRONG)))
        assert (record.get(probe.id), record.fresh) == (kept, {probe.id})


def test_targets_that_are_called_alike_have_folders_of_their_own() -> None:
    names = ["backend:a.b", "backend_a.b", "backend_a_b", "..", "a/b", "onnxruntime", "\ud800"]
    slugs = [module.slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all("/" not in slug and "." not in slug for slug in slugs)
    assert module.slug("onnxruntime") == "onnxruntime"
