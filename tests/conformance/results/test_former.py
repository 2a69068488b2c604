"""What onnxspec 0.3 wrote is read in today's words.

The sample is a run of two backends: where all outputs are asked for, one returns others, and one dies.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from onnxspec.cases import build_case, case_from_json
from onnxspec.conformance.results import read_folder, recorded_in
from onnxspec.reports import write_report

OLD = Path(__file__).with_name("written_by_0_3")
FORMER = "twin"


def test_the_sample_has_the_words_of_then() -> None:
    for name in ("journal.jsonl", "results.jsonl", "run.json"):
        assert FORMER in (OLD / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["journal.jsonl", "results.jsonl"])
def test_results_are_read_in_the_words_of_today(name: str, tmp_path: Path) -> None:
    for each in (name, "run.json"):
        shutil.copy(OLD / each, tmp_path)
    read = read_folder(tmp_path)
    assert read.problems == ()
    differing, dying = read.results
    assert (differing.verdict.value, differing.flags) == ("pass", ("outputs-differ-from-companion",))
    assert (dying.verdict.value, dying.reason) == ("crashed", "companion")
    assert read.info is not None
    titles = [finding[key] for target in read.info["targets"] for finding in target["findings"] for key in finding]
    assert not any(FORMER in str(title) for title in titles)


def test_jobs_of_a_recorded_run_are_those_of_its_cases() -> None:
    lines = list(recorded_in(OLD))
    assert {line.target for line in lines} == {"backend:differing", "backend:dying"}
    case = case_from_json(json.loads(json.loads((OLD / "run.json").read_bytes())["selection"]["case"][0]))
    keys = [trial.key for trial in build_case(case).trials]
    assert len(keys) == 2
    assert all([job.key for job in line.jobs] == keys for line in lines)


def test_a_report_of_it_is_in_the_words_of_today(tmp_path: Path) -> None:
    page = write_report([OLD], tmp_path / "report")
    texts = [path.read_text(encoding="utf-8") for path in page.parent.rglob("*.html")]
    assert texts
    assert not any(FORMER in text for text in texts)
