"""``onnxspec fuzz`` with wrong arguments: one line, a documented exit code, and no lost data."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxspec.conformance.cli.fuzz import _space
from onnxspec.conformance.probes.selection import UnknownName

from .test_nodes import Done, onnxspec

GRU = ("--op", "GRU", "--type", "float32", "--examples", "4", "--seed", "1")


def in_one_line(done: Done) -> str:
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("onnxspec fuzz: ")] or [done.stderr]
    assert "Traceback" not in done.stderr
    return line


@pytest.mark.parametrize("text", ['{"format": 99, "target": "onnxruntime"}', "no JSON"])
def test_a_database_that_cannot_be_used_ends_the_command_and_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "fuzz" / "onnxruntime.json"
    path.parent.mkdir()
    path.write_text(text)
    done = onnxspec(tmp_path, "fuzz", *GRU)
    assert done.returncode == 2
    assert "onnxruntime.json is" in in_one_line(done)
    assert path.read_text() == text


def test_a_target_that_does_not_start_is_said_in_a_line(tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text("[dead]\nadapter = 'dead.py'\n")
    (tmp_path / "dead.py").write_text("raise OSError('the device is away')\n")
    done = onnxspec(tmp_path, "fuzz", "--target", "dead", *GRU)
    assert done.returncode == 3
    assert "the device is away" in in_one_line(done)
    assert not (tmp_path / "fuzz").exists()


def test_a_regression_file_with_an_unknown_line_names_the_line(tmp_path: Path) -> None:
    lines = '# a title\n{"op":"GRU","version":14,"type":"float32"}\nno-such-case\n'
    (tmp_path / "regressions.txt").write_text(lines)
    done = onnxspec(tmp_path, "run", "--case", "@regressions.txt")
    assert done.returncode == 2
    assert "regressions.txt" in done.stderr
    assert "line 3" in done.stderr or ":3" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_what_the_list_of_known_failures_names_is_said_with_its_reason(tmp_path: Path) -> None:
    """onnxruntime uses 0 if ThresholdedRelu has no alpha."""
    done = onnxspec(tmp_path, "fuzz", "--op", "RNN", "--type", "float32", "--examples", "120", "--seed", "2")
    assert done.returncode == 0, done.stderr
    assert "NEW" not in done.stdout
    assert "Listed as known: ThresholdedRelu without an alpha" in done.stdout
    assert "1 new failure, 1 of them on the list of known failures of onnxruntime" in done.stdout


def test_versions_are_chosen_like_those_of_a_run() -> None:
    assert _space(["GRU-14", "LSTM"], ["bfloat16"], ()) == ([("LSTM", 22)], ["bfloat16"])
    assert _space(["GRU-7", "GRU-14"], [], ())[0] == [("GRU", 7), ("GRU", 14)]
    with pytest.raises(UnknownName, match="unknown operator version '8' of GRU; nearest: 7"):
        _space(["GRU-8"], [], ())
