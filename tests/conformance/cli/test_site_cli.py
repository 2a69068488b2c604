"""The site of a real run shows each finding with its clause and its command."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from onnxspec.conformance.cli.application import app

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run on a runtime that ignores sequence_lens, among other faults."""
    folder = tmp_path_factory.mktemp("gallery") / "run"
    options = ("--target", "onnx-reference", "--profile", "smoke", "--op", "LSTM-14", "--quiet")
    RUNNER.invoke(app, ["run", "--out", str(folder), *options, "--no-extra"], catch_exceptions=False)
    return folder


def test_each_finding_is_shown_with_its_clause_its_case_and_its_command(run: Path, tmp_path: Path) -> None:
    done = RUNNER.invoke(app, ["site", str(run), "--out", str(tmp_path / "site")], catch_exceptions=False)
    assert (done.exit_code, done.stderr) == (0, "")
    (page,) = (tmp_path / "site" / "runtimes").glob("*.html")
    entries = page.read_text(encoding="utf-8").split('<article class="finding"')[1:]
    assert all(re.search(r"<code>onnxspec explain \S+ --target onnx-reference</code>", entry) for entry in entries)
    (entry,) = (entry for entry in entries if "Consistent with: ignores sequence_lens" in entry)
    assert "<code>lstm.lengths" in entry


def test_the_page_names_no_folder_of_the_machine_that_made_it(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = ["site", str(run), "--out", str(tmp_path / "site")]
    monkeypatch.setattr("sys.argv", ["onnxspec", *arguments])
    RUNNER.invoke(app, arguments, catch_exceptions=False)
    text = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "<code>onnxspec site run --out site</code>" in text
    assert str(tmp_path) not in text
