"""Tests of run directories that are missing, incomplete, foreign or hostile: each costs only one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from onnxspec.reports.page import write_report
from onnxspec.reports.run import read_runs
from onnxspec.reports.text import printable

from .conftest import HOSTILE, Page, cases, hostile_run, pages, report, result, sample_info, write_run


def test_with_no_readable_run_there_is_still_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("x")
    page = Page(write_report([tmp_path / "missing", tmp_path / "file"], tmp_path / "report"))
    assert "nothing to report" in page.text("answer")
    assert "data" not in page.texts
    assert capsys.readouterr().err.splitlines() == [
        f"warning: {tmp_path / 'missing'}: no such directory; left out.",
        f"warning: {tmp_path / 'file'}: not a directory; left out.",
    ]
    assert "nothing to report" in Page(write_report([], tmp_path / "report")).text("answer")


def test_a_killed_run_shows_what_it_has(tmp_path: Path) -> None:
    rows = [result("a"), result("b")]
    run = write_run(tmp_path / "run", rows, sample_info(rows) | {"complete": False, "cases": 900})
    with (run / "results.jsonl").open("a") as journal:
        journal.write(json.dumps(result("c"))[:40])
    page, lines = report(tmp_path / "report", run)
    assert [line.split(": ", 1)[1] for line in lines] == [
        "results.jsonl: ends in an incomplete line of 40 bytes, which is left out.",
        "the run did not finish; it has 2 results of 900 cases.",
    ]
    assert cases(page) == ["a", "b"]


@pytest.mark.parametrize("content", ["", "{", "[1]", "[" * 100_000, '{"schema": 1', "\x00"])
def test_a_broken_summary_leaves_the_results(tmp_path: Path, content: str) -> None:
    run = write_run(tmp_path / "run", [result("a", verdict="wrong")], None)
    (run / "run.json").write_text(content)
    page, lines = report(tmp_path / "report", run)
    assert len(lines) == 1
    assert "run.json cannot be read" in lines[0]
    assert "\n" not in lines[0]
    assert "Results that are wrong and that no finding names" in page.text("finding-1")


def test_results_missing_or_empty(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", [], sample_info([]))
    assert report(tmp_path / "report", run)[1] == [f"{run}: there is no result in it."]
    (run / "results.jsonl").unlink()
    page, lines = report(tmp_path / "report", run)
    assert lines == [f"{run}: results.jsonl is missing, so there are no results.", f"{run}: there is no result in it."]
    assert "There is no result for this target." in page.text("answer")


def test_what_a_runtime_says_is_text_wherever_it_stands(tmp_path: Path) -> None:
    run = hostile_run(tmp_path / "run", HOSTILE)
    finding, _ = pages(tmp_path / "report", run)
    page = Page(tmp_path / "report" / "index.html")
    for made, scripts in ((page, 2), (finding, 0)):
        assert made.open == []
        assert len(made.all("script")) == scripts
        assert not made.all("img")
        assert "alert(1)</script>" in made.whole  # displayed, as text
        assert "{{7*7}}" in made.whole
        assert "\\u202e" in made.whole
        assert not {"\u202e", "\x00"} & {*made.source}
    assert not {"<", ">"} & {*page.texts["data"]}
    assert cases(page)[0] == printable(HOSTILE)


@pytest.mark.parametrize(
    "value", [None, True, 1e400, 10**400, "x", [[]], {"a": {"b": [None]}}, [{"a": 1}]], ids=lambda v: repr(v)[:16]
)
def test_a_value_of_any_type_in_any_field_costs_its_line_or_its_file(tmp_path: Path, value: Any) -> None:
    whole = result("a", verdict="wrong")
    rows = [whole | {name: value} for name in whole] + [{name: value} for name in whole] + [whole]
    run = write_run(tmp_path / "run", rows, None)
    page, lines = report(tmp_path / "report", run)
    assert "a" in cases(page)
    assert any("results.jsonl:" in line for line in lines)
    info = sample_info([whole])
    entry = info["targets"][0]
    changed = [info | {name: value} for name in info]
    changed += [info | {"targets": [entry | {name: value}]} for name in entry]
    first = entry["findings"][0]
    changed += [info | {"targets": [entry | {"findings": [first | {name: value}]}]} for name in first]
    for each in changed:
        write_run(run, [whole], each)
        readable, problems = read_runs([run])
        amiss = [line for line in problems if "run.json" in line or "in form" in line]
        assert any(run.described for run in readable) == (not amiss)  # used as intended, or not at all
        assert len(amiss) < 2
        assert not any("\n" in line for line in problems)
    write_run(run, [whole], changed[len(info)])
    report(tmp_path / "report", run)


def test_an_old_report_survives_a_failed_one(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write_report([sample], tmp_path / "report")
    before = page.read_bytes()

    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write_report([sample], tmp_path / "report")
    assert page.read_bytes() == before
    assert sorted(path.name for path in page.parent.iterdir()) == ["findings", "index.html"]
    assert len(list((page.parent / "findings").glob("*.html"))) == 4
