"""``onnxspec fuzz`` with wrong arguments: one line, a documented exit code, and no lost data."""

from __future__ import annotations

from pathlib import Path

from ..miniatures import Inside

GRU = ("--op", "GRU", "--type", "float32", "--examples", "4", "--seed", "1")


def test_a_folder_that_holds_a_run_is_left_alone(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "results.jsonl").write_text("no JSON")
    done = inside("fuzz", *GRU, "--out", "fuzz")
    assert done.code == 2
    assert "already holds a run" in done.err
    assert (tmp_path / "fuzz" / "results.jsonl").read_text() == "no JSON"


def test_a_target_that_does_not_start_is_said_in_a_line(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text("[dead]\nadapter = 'dead.py'\n")
    (tmp_path / "dead.py").write_text("raise OSError('the device is away')\n")
    done = inside("fuzz", "--target", "dead", *GRU)
    assert done.code == 3
    assert "the device is away" in done.out
    assert "Traceback" not in done.err


def test_a_search_is_a_run_with_findings_that_can_be_repeated(inside: Inside, tmp_path: Path) -> None:
    """onnxruntime uses 0 if ThresholdedRelu has no alpha."""
    words = ("--op", "RNN", "--type", "float32", "--examples", "120", "--seed", "2", "--out", "found")
    done = inside("fuzz", *words)
    assert done.code == 0, done.err
    assert "Known failures: every failure is on the list" in done.out
    assert "Listed as known: ThresholdedRelu without an alpha" in done.out
    scripts = tmp_path.glob("found/evidence/onnxruntime/rnn-*/script.py")
    assert any("ThresholdedRelu" in script.read_text() for script in scripts)
    again = inside("run", "--no-extra", "--case", "found/evidence/onnxruntime")
    assert "Listed as known: ThresholdedRelu without an alpha" in again.out


def test_cases_are_chosen_like_those_of_a_run(inside: Inside) -> None:
    done = inside("fuzz", "--op", "GRU-14", "--type", "bfloat16")
    assert (done.code, done.out) == (2, "")
    assert "unknown combination 'GRU-14:bfloat16'; nearest: GRU-22:bfloat16" in done.complaint
