"""``onnxspec report`` and ``site``: several runs in one report, whatever state they are in, and pages of runtimes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from onnxspec.conformance.cli.application import app

from ..miniatures import Inside, command_line, naming, pick

RUNNER = CliRunner()


CASES = naming(pick(2, lambda s: s.lengths == "ragged" and s.data == "dense" and "Y" in s.outputs))


@pytest.fixture(scope="module")
def runs(kin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return two runs of the same cases, on a right backend and on a wrong one. No test changes them."""
    folder = tmp_path_factory.mktemp("runs")
    folders = [folder / name for name in ("conforming", "lengths_ignored")]
    for run_folder in folders:
        command = command_line("run", "-t", f"backend:{run_folder.name}", *CASES, "--out", run_folder)
        subprocess.run(command, env=kin, capture_output=True, check=False, timeout=590)
    return folders


def test_runs_stand_side_by_side(inside: Inside, runs: list[Path], tmp_path: Path) -> None:
    done = inside("report", *runs, "--out", tmp_path / "both")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == ["2 runs, 4 results", f"report: {tmp_path / 'both' / 'index.html'}"]
    page = (tmp_path / "both" / "index.html").read_text(encoding="utf-8")
    assert "backend:conforming" in page
    assert "backend:lengths_ignored" in page
    assert list((tmp_path / "both" / "findings" / "files").rglob("model.onnx"))


def test_what_cannot_be_reported_is_said_in_a_line_and_the_rest_is_reported(
    inside: Inside, runs: list[Path], tmp_path: Path
) -> None:
    done = inside("report", runs[0], tmp_path / "missing", "--out", tmp_path / "all")
    assert (done.code, done.err) == (1, f"warning: {tmp_path / 'missing'}: no such directory; left out.\n")
    assert done.out.splitlines()[0] == "1 run, 2 results"


def test_where_no_run_can_be_read_there_is_no_report(inside: Inside, tmp_path: Path) -> None:
    done = inside("report", tmp_path / "missing", "--out", tmp_path / "out")
    assert done.code == 2
    assert done.err.splitlines()[-1] == "onnxspec: no run could be read, so there is nothing to report"
    assert not (tmp_path / "out").exists()


def test_an_earlier_report_is_replaced_and_nothing_else(inside: Inside, runs: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    inside("report", runs[0], "--out", out)
    before = (out / "index.html").read_bytes()
    (out / "notes.txt").write_text("mine")
    assert inside("report", *runs, "--out", out).code == 0
    assert (out / "index.html").read_bytes() != before
    assert (out / "notes.txt").read_text() == "mine"
    (tmp_path / "file").write_text("x")
    assert "is no folder" in inside("report", runs[0], "--out", tmp_path / "file").complaint
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("my page")
    assert "something other than a report" in inside("report", runs[0], "--out", tmp_path / "mine").complaint
    assert (tmp_path / "mine" / "index.html").read_text() == "my page"


@pytest.fixture(scope="module")
def imperfect(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run on a runtime that ignores sequence_lens, among other faults."""
    folder = tmp_path_factory.mktemp("gallery") / "run"
    options = ("--target", "onnx-reference", "--profile", "smoke", "--op", "LSTM-14", "--quiet")
    RUNNER.invoke(app, ["run", "--out", str(folder), *options, "--no-extra"], catch_exceptions=False)
    return folder


def test_each_finding_is_shown_with_its_clause_its_case_and_its_command(imperfect: Path, tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["site", str(imperfect), "--out", str(tmp_path / "site")], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    (page,) = (tmp_path / "site" / "runtimes").glob("*.html")
    entries = page.read_text(encoding="utf-8").split('<article class="finding"')[1:]
    assert all(re.search(r"<code>onnxspec explain \S+ --target onnx-reference</code>", entry) for entry in entries)
    (entry,) = (entry for entry in entries if "Consistent with: ignores sequence_lens" in entry)
    assert "<code>lstm.lengths" in entry


def test_the_page_names_no_folder_of_the_machine_that_made_it(
    imperfect: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["site", str(imperfect), "--out", str(tmp_path / "site")]
    monkeypatch.setattr("sys.argv", ["onnxspec", *arguments])
    RUNNER.invoke(app, arguments, catch_exceptions=False)
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "<code>onnxspec site run --out site</code>" in text
    assert str(tmp_path) not in text
