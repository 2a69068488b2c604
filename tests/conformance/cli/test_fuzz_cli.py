"""``onnxspec fuzz`` with wrong arguments: one line, a documented exit code, and no lost data."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxspec.conformance.cli.fuzz import _space
from onnxspec.conformance.probes.selection import UnknownName

from .test_nodes import onnxspec

GRU = ("--op", "GRU", "--type", "float32", "--examples", "4", "--seed", "1")


def test_a_folder_that_holds_a_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "results.jsonl").write_text("no JSON")
    done = onnxspec(tmp_path, "fuzz", *GRU, "--out", "fuzz")
    assert done.returncode == 2
    assert "already holds a run" in done.stderr
    assert (tmp_path / "fuzz" / "results.jsonl").read_text() == "no JSON"


def test_a_target_that_does_not_start_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text("[dead]\nadapter = 'dead.py'\n")
    (tmp_path / "dead.py").write_text("raise OSError('the device is away')\n")
    done = onnxspec(tmp_path, "fuzz", "--target", "dead", *GRU)
    assert done.returncode == 3
    assert "the device is away" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_regression_file_with_an_unknown_line_names_the_line(tmp_path: Path) -> None:
    lines = '# a title\n{"op":"GRU","version":14,"type":"float32"}\nno-such-case\n'
    (tmp_path / "regressions.txt").write_text(lines)
    done = onnxspec(tmp_path, "run", "--case", "@regressions.txt")
    assert done.returncode == 2
    assert "regressions.txt" in done.stderr
    assert "line 3" in done.stderr or ":3" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_a_search_is_a_run_with_findings_that_can_be_repeated(tmp_path: Path) -> None:
    """onnxruntime uses 0 if ThresholdedRelu has no alpha."""
    words = ("--op", "RNN", "--type", "float32", "--examples", "120", "--seed", "2", "--out", "found")
    done = onnxspec(tmp_path, "fuzz", *words)
    assert done.returncode == 0, done.stderr
    assert "Known failures: every failure is on the list" in done.stdout
    assert "Listed as known: ThresholdedRelu without an alpha" in done.stdout
    scripts = tmp_path.glob("found/evidence/onnxruntime/rnn-*/script.py")
    assert any("ThresholdedRelu" in script.read_text() for script in scripts)
    again = onnxspec(tmp_path, "run", "--no-extra", "--case", "found/evidence/onnxruntime")
    assert "Listed as known: ThresholdedRelu without an alpha" in again.stdout


def test_versions_are_chosen_like_those_of_a_run() -> None:
    assert _space(["GRU-14", "LSTM"], ["bfloat16"], ()) == ([("LSTM", 22)], ["bfloat16"])
    assert _space(["GRU-7", "GRU-14"], [], ())[0] == [("GRU", 7), ("GRU", 14)]
    with pytest.raises(UnknownName, match="unknown operator version '8' of GRU; nearest: 7"):
        _space(["GRU-8"], [], ())
