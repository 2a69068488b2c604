"""The run directory: what is on disk, and what becomes of a journal that was cut."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.journal import Journal, OccupiedFolder, RunMismatch, fresh_folder
from onnxspec.conformance.judgement import Judgement, Verdict
from onnxspec.conformance.probe import SpecProbe
from onnxspec.conformance.result import Result, result_of

DESCRIPTION: dict[str, Any] = {
    "schema": 1,
    "onnxspec": "0.1.0",
    "profile": "core",
    "selection": {"op": [], "since_version": [], "type": [], "case": []},
    "digests": {"LSTM-14": "d"},
    "expected_failures": True,
    "targets": [{"name": "t", "adapter": "onnxruntime", "options": {}, "class": "standard"}],
}


def result(number: int, verdict: Verdict = Verdict.PASS, **fields: Any) -> Result:
    spec = CaseSpec("LSTM", 14, seed=number)
    return result_of(SpecProbe(spec), "t", Judgement(verdict, **fields), 0.25, None, "onnxspec explain")


def started(folder: Path, *results: Result) -> Path:
    """A folder that holds a run with these results."""
    with Journal(folder) as journal:
        journal.describe(DESCRIPTION)
        for each in results:
            journal.append(each)
    return folder


def test_a_result_comes_back_as_it_was_written(tmp_path: Path) -> None:
    where = {"output": "Y", "index": [0, 1, 2, 3], "step": 0}
    written = [
        result(1, worst=0.125, judged=3, flags=("nondeterministic",), readings={"empty": "zero"}),
        result(
            2, Verdict.WRONG, reason="value", where=where, message="\u2603\n\x1b \udcff", worst=float("inf"), judged=1
        ),
    ]
    started(tmp_path / "o", *written)
    with Journal(tmp_path / "o", resume=True) as journal:
        assert journal.done == written
    assert journal.done[0].worst == 0.125
    assert journal.done[1].worst is None
    lines = (tmp_path / "o" / "results.jsonl").read_bytes().split(b"\n")
    assert len(lines) == 3
    assert lines[2] == b""


def test_where_nothing_was_judged_there_is_no_worst() -> None:
    assert result(1, Verdict.REFUSED, reason="load").worst is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: content[: len(content) - 40],
        lambda content: content[:-1],
        lambda content: content + b'{"case":',
        lambda content: content + b"\0" * 4096,
        lambda content: content + b'{"case": "whole line, but no result"}\n',
        lambda content: content + b"\xff\xfe\n",
        lambda content: content + content.replace(b'"pass"', b'"splendid"'),
        lambda content: content + b"[]\n",
    ],
)
def test_what_is_no_whole_result_is_cut_off(tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    started(tmp_path / "o", *(result(number) for number in range(3)))
    path = tmp_path / "o" / "results.jsonl"
    whole = path.read_bytes()
    path.write_bytes(spoil(whole))
    with Journal(tmp_path / "o", resume=True) as journal:
        assert 2 <= len(journal.done) <= 3
        assert path.read_bytes() == b"".join(whole.splitlines(keepends=True)[: len(journal.done)])
        for number in range(len(journal.done), 4):
            journal.append(result(number))
    with Journal(tmp_path / "o", resume=True) as journal:
        assert journal.done == [result(number) for number in range(4)]


@pytest.mark.parametrize("left", ["results.jsonl", "run.json"])
def test_a_folder_that_holds_a_run_is_not_touched(tmp_path: Path, left: str) -> None:
    (tmp_path / left).write_text("precious")
    with pytest.raises(OccupiedFolder, match="--overwrite"):
        Journal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [left]
    assert (tmp_path / left).read_text() == "precious"


def test_overwriting_leaves_nothing_of_the_old_run_and_all_that_is_not_of_it(tmp_path: Path) -> None:
    started(tmp_path, result(1))
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "index.html").write_text("old")
    (tmp_path / "notes.txt").write_text("mine")
    with Journal(tmp_path, overwrite=True) as journal:
        assert journal.done == []
        assert journal.described() is None
        assert (tmp_path / "results.jsonl").read_bytes() == b""
        assert not (tmp_path / "report" / "index.html").exists()
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_only_one_journal_at_a_time(tmp_path: Path) -> None:
    with Journal(tmp_path), pytest.raises(OccupiedFolder, match="another"):
        Journal(tmp_path, resume=True)
    Journal(tmp_path, resume=True).__exit__(None, None, None)


def test_the_same_run_goes_on_also_with_a_target_more(tmp_path: Path) -> None:
    started(tmp_path / "o", result(1))
    more = {**DESCRIPTION["targets"][0], "name": "other"}
    with Journal(tmp_path / "o", resume=True) as journal:
        journal.same_run({**DESCRIPTION, "seconds": 3, "targets": [more, *DESCRIPTION["targets"]]})
    with Journal(tmp_path / "new", resume=True) as journal:
        journal.same_run(DESCRIPTION)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"profile": "smoke"}, "profile"),
        ({"onnxspec": "0.2.0"}, "onnxspec"),
        ({"digests": {"LSTM-14": "e"}}, "digests"),
        ({"selection": {"op": ["LSTM"], "since_version": [], "type": [], "case": []}}, "selection"),
        ({"expected_failures": False}, "expected failures"),
        ({"targets": []}, "'t'"),
        ({"targets": [{**DESCRIPTION["targets"][0], "options": {"optimize": True}}]}, "'t'"),
        ({"targets": [{**DESCRIPTION["targets"][0], "class": "tf32"}]}, "'t'"),
    ],
)
def test_another_run_does_not(tmp_path: Path, changed: dict[str, Any], named: str) -> None:
    started(tmp_path, result(1))
    before = (tmp_path / "results.jsonl").read_bytes()
    with Journal(tmp_path, resume=True) as journal, pytest.raises(RunMismatch, match=named):
        journal.same_run({**DESCRIPTION, **changed})
    assert (tmp_path / "results.jsonl").read_bytes() == before


@pytest.mark.parametrize("text", [None, "", "{", "[]"])
def test_results_of_nobody_knows_what_are_not_gone_on_with(tmp_path: Path, text: str | None) -> None:
    started(tmp_path, result(1))
    (tmp_path / "run.json").unlink()
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with Journal(tmp_path, resume=True) as journal, pytest.raises(RunMismatch, match=r"no run\.json"):
        journal.same_run(DESCRIPTION)


def test_cases_without_a_runtime_are_due_again(tmp_path: Path) -> None:
    there = [result(1), result(2, Verdict.UNAVAILABLE), result(3), result(4, Verdict.UNAVAILABLE)]
    started(tmp_path, *there)
    with Journal(tmp_path, resume=True) as journal:
        journal.forget_unavailable()
        assert journal.done == [there[0], there[2]]
        journal.append(result(5))
    with Journal(tmp_path, resume=True) as journal:
        assert journal.done == [there[0], there[2], result(5)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl", "run.json"]


def test_a_write_that_fails_half_way_leaves_whole_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    room = 2000

    def full(descriptor: int, data: bytes) -> int:
        nonlocal room
        if room <= 0:
            raise OSError(28, "No space left on device")
        count = write(descriptor, data[:room])
        room -= count
        return count

    with Journal(tmp_path) as journal:
        monkeypatch.setattr(os, "write", full)
        number = 0
        with contextlib.suppress(OSError):
            for number in range(10):
                journal.append(result(number))
        assert 0 < number < 9
        monkeypatch.undo()
        content = (tmp_path / "results.jsonl").read_bytes()
        assert 0 < len(content) < 2000
        assert content.endswith(b"\n")
        journal.append(result(number))
    with Journal(tmp_path, resume=True) as journal:
        assert journal.done == [result(k) for k in range(number + 1)]


def test_a_description_that_cannot_be_written_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Journal(tmp_path) as journal:
        journal.describe(DESCRIPTION)

        def fail(self: Path, *arguments: Any, **options: Any) -> int:
            self.touch()
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", fail)
        with pytest.raises(OSError, match="space"):
            journal.describe({})
        assert journal.described() == json.loads(json.dumps(DESCRIPTION))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl", "run.json"]


def test_fresh_folders_of_one_second_differ(tmp_path: Path) -> None:
    moment = datetime(2026, 11, 20, 17, 2, 3)
    names = [fresh_folder(tmp_path / "runs", moment).name for _ in range(3)]
    assert names == ["2026-11-20T170203", "2026-11-20T170203-2", "2026-11-20T170203-3"]
