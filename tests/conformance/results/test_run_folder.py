"""The run folder: files on disk, and files that were cut, edited, made up, or belong to another run."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from onnxspec.cases import CaseSpec
from onnxspec.conformance.border.strict_json import decode, encode
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.folder import read_folder
from onnxspec.conformance.results.lines import ResultUpdate, RunFinished, RunStarted, TargetStarted, update_of
from onnxspec.conformance.results.records import SCHEMA, AskedTarget, RunRecord, SelectionRecord
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.results.writer import RunWriter, fresh_folder
from onnxspec.reference.errors import RecordError
from onnxspec.reports.run import NO_RUN, empty

WHERE = {"output": "Y", "index": [0, 1, 2, 3], "step": 0}
TARGET: AskedTarget = {**empty(AskedTarget), "name": "t", "adapter": "onnxruntime", "class": "standard"}
BEGUN = RunStarted(
    schema=SCHEMA,
    onnxspec="0.1.0",
    started="2026-11-20T16:30:00+00:00",
    command=["onnxspec", "run"],
    profile="core",
    selection=empty(SelectionRecord),
    shard=None,
    expected_failures=True,
    digests={"LSTM-14": "d"},
    targets=[TARGET],
)
RECORD: RunRecord = {
    **NO_RUN,
    "onnxspec": "0.1.0",
    "started": "2026-11-20T16:30:00+00:00",
    "seconds": 1.5,
    "complete": True,
    "command": ["onnxspec", "run"],
    "profile": "core",
    "cases": 3,
    "digests": {"LSTM-14": "d"},
}


def result(number: int, verdict: Verdict = Verdict.PASS, **fields: Any) -> Result:
    spec = CaseSpec("LSTM", 14, seed=number)
    return result_of(SpecProbe(spec), "t", Judgement(verdict, **fields), 0.25, None, "onnxspec explain")


def started(folder: Path, *results: Result) -> Path:
    """Write a folder with an interrupted run that has these results."""
    with RunWriter(folder) as writer:
        writer.begin(BEGUN)
        writer.describe(RECORD)
        for result in results:
            writer.append(result)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def lines(folder: Path) -> list[bytes]:
    return (folder / "results.jsonl").read_bytes().splitlines(keepends=True)


def test_a_result_comes_back_as_it_was_written(tmp_path: Path) -> None:
    written = [
        result(1, worst=0.125, judged=3, flags=("nondeterministic",), interpretations={"empty": "zero"}),
        result(
            2, Verdict.WRONG, reason="value", where=WHERE, message="\u2603\n\x1b \udcff", worst=float("inf"), judged=1
        ),
        result(3, where={"error": float("inf"), "units": float("nan")}),
    ]
    started(tmp_path / "o", *written)
    with RunWriter(tmp_path / "o", resume=True) as writer:
        assert writer.done == written
        assert writer.problems == []
    assert writer.done[0].worst == 0.125
    assert writer.done[1].worst is None
    assert writer.done[2].where == {"error": None, "units": None}
    assert result(1, Verdict.UNSUPPORTED, reason="load").worst is None


def test_what_becomes_known_of_a_result_is_a_line_of_its_own(tmp_path: Path) -> None:
    first = result(1, Verdict.WRONG, reason="value", judged=1, worst=3.0)
    sampled = replace(first, verdict=Verdict.UNSTABLE, message="another result", flags=("nondeterministic",))
    named = replace(sampled, diagnosis=("clip.missing",), expected=True, why="known")
    started(tmp_path, result(0), first)
    before = lines(tmp_path)
    with RunWriter(tmp_path, resume=True) as writer:
        writer.begin(BEGUN)
        for earlier, later, by in ((first, sampled, "fresh-sample"), (sampled, named, "diagnosis")):
            line = update_of(earlier, later, by)
            assert line is not None
            writer.append(line)
    assert lines(tmp_path)[: len(before)] == before
    assert read_folder(tmp_path).results == (result(0), named)
    assert update_of(named, named, "diagnosis") is None
    with pytest.raises(ValueError, match="cannot change worst"):
        update_of(named, replace(named, worst=1.0), "diagnosis")


def test_an_incomplete_last_line_is_named_and_removed_when_the_run_goes_on(tmp_path: Path) -> None:
    started(tmp_path, *(result(number) for number in range(3)))
    path = tmp_path / "results.jsonl"
    cut = path.read_bytes()[:-1]
    path.write_bytes(cut)
    assert read_folder(tmp_path).results == (result(0), result(1))
    with RunWriter(tmp_path, resume=True) as writer:
        assert "ends in an incomplete line" in writer.problems[0]
        assert path.read_bytes() == cut  # neither by a reader nor before the run is known to be the same
        writer.begin(BEGUN)
    begun, *observed, again = lines(tmp_path)
    assert b"".join([begun, *observed]) == cut[: cut.rindex(b"\n") + 1]
    assert again == begun


DAMAGE: list[tuple[Callable[[bytes], bytes], str]] = [
    (lambda line: b'{"record": "result", "case": "no result"}\n', "missing required field"),
    (lambda line: b"\xff\xfe\n", "no UTF-8"),
    (lambda line: line.replace(b'"pass"', b'"splendid"'), "splendid"),
    (lambda line: b"[]\n", "Expected `object`"),
    (lambda line: line[:50] + b"\n", "no JSON"),
    (lambda line: line.replace(b'"seconds":0.25', b'"seconds":-1'), "seconds"),
    (lambda line: line.replace(b'"judged":0', b'"judged":1180591620717411303424'), "64 bits"),
    (lambda line: line.replace(b'"flags":[]', b'"flags":[],"new":' + b"[" * 100_000), "deep"),
    (lambda line: b'{"record": "hearsay"}\n', "hearsay"),
]


@pytest.mark.parametrize(("spoil", "named"), DAMAGE)
def test_a_damaged_line_is_named_and_the_rest_is_used(
    tmp_path: Path, spoil: Callable[[bytes], bytes], named: str
) -> None:
    started(tmp_path, *(result(number) for number in range(3)))
    begun, first, *rest = lines(tmp_path)
    damaged = spoil(first)
    assert damaged != first
    (tmp_path / "results.jsonl").write_bytes(b"".join([begun, damaged, *rest]))
    folder = read_folder(tmp_path)
    assert folder.results == (result(1), result(2))
    (problem,) = folder.problems
    assert problem.startswith("results.jsonl:2: ")
    assert named in problem
    assert len(problem) < 300
    with RunWriter(tmp_path, resume=True) as writer:
        assert writer.problems == [f"{tmp_path}: {problem}"]


def test_a_file_of_garbage_is_told_in_a_few_lines(tmp_path: Path) -> None:
    started(tmp_path, result(0))
    with (tmp_path / "results.jsonl").open("ab") as writer:
        writer.write(b"garbage\n" * 10_000)
    folder = read_folder(tmp_path)
    assert folder.results == (result(0),)
    assert len(folder.problems) == 21
    assert folder.problems[-1] == "and 9980 more like these"


@pytest.mark.parametrize(
    ("second", "problems"),
    [
        (result(1), 0),
        (replace(result(1), seconds=9.0, message="again"), 0),
        (result(1, Verdict.WRONG, reason="value"), 1),
        (result(1, Verdict.UNAVAILABLE), 0),
    ],
)
def test_a_result_that_is_there_twice_counts_once(tmp_path: Path, second: Result, problems: int) -> None:
    started(tmp_path, result(0), result(1), second, result(2))
    folder = read_folder(tmp_path)
    assert folder.results == (result(0), result(1), result(2))
    assert len(folder.problems) == problems
    if problems:
        assert folder.problems[0].startswith(f"results.jsonl:4: a second result of case {result(1).case} on t (wrong)")
    with RunWriter(tmp_path, resume=True) as writer:
        assert writer.done == [result(0), result(1), result(2)]


@pytest.mark.skipif(os.name != "posix", reason="needs locks")
def test_only_one_journal_at_a_time(tmp_path: Path) -> None:
    with RunWriter(tmp_path), pytest.raises(RecordError, match="another"):
        RunWriter(tmp_path, resume=True)
    RunWriter(tmp_path, resume=True).__exit__(None, None, None)


def test_the_same_run_goes_on_also_with_a_target_more(tmp_path: Path) -> None:
    started(tmp_path / "o", result(1))
    more: AskedTarget = {**TARGET, "name": "other", "options": {"sizes": (1, 2)}}  # JSON returns the tuple as a list
    for _ in range(2):
        with RunWriter(tmp_path / "o", resume=True) as writer:
            writer.begin(replace(BEGUN, started="later", targets=[more, TARGET]))
    assert len(writer.loaded.headers) == 2
    with RunWriter(tmp_path / "new", resume=True) as writer:
        writer.begin(BEGUN)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"profile": "smoke"}, "profile"),
        ({"onnxspec": "0.2.0"}, "onnxspec"),
        ({"digests": {"LSTM-14": "e"}}, "digests"),
        ({"selection": {"op": ["LSTM"], "since_version": [], "type": [], "case": [], "directories": []}}, "selection"),
        ({"expected_failures": False}, "expected failures"),
        ({"targets": []}, "'t'"),
        ({"targets": [{**TARGET, "options": {"optimize": True}}]}, "'t'"),
        ({"targets": [{**TARGET, "class": "tf32"}]}, "'t'"),
    ],
)
@pytest.mark.parametrize("cut", [0, 20])
def test_another_run_does_not_and_nothing_is_touched(
    tmp_path: Path, changed: dict[str, Any], named: str, cut: int
) -> None:
    """This holds for a cut file too: its owner is not known yet."""
    started(tmp_path, result(1))
    path = tmp_path / "results.jsonl"
    path.write_bytes(path.read_bytes()[: -cut or None])
    before = content(tmp_path)
    with RunWriter(tmp_path, resume=True) as writer, pytest.raises(RecordError, match=named):
        writer.begin(replace(BEGUN, **changed))
    assert content(tmp_path) == before


OLD_RUN = b'{"schema": 1, "onnxspec": "0.2.0", "targets": []}'
NEW_BEGUN = encode(BEGUN).encode().replace(b'"schema":3', b'"schema":4').replace(b'"digests"', b'"sums"')


@pytest.mark.parametrize(
    ("resume", "files", "named"),
    [
        (False, {"results.jsonl": b"precious"}, "--resume"),
        (False, {"run.json": b"precious"}, "--resume"),
        (True, {"results.jsonl": b'{"case": "a"}\n', "run.json": OLD_RUN}, "holds a run in form unknown"),
        (True, {"run.json": OLD_RUN}, "holds run.json and no results.jsonl"),
        (True, {"results.jsonl": NEW_BEGUN + b'\n{"record":"result"}\n'}, "of onnxspec '0.1.0' in form 4"),
        (True, {"results.jsonl": b"somebody's\n"}, "has no header"),
        (True, {"results.jsonl": b"somebody's"}, "has no header"),
        (True, {"thesis.tex": b"chapter one"}, "holds other files and no run, and is left alone"),
    ],
)
def test_a_folder_of_somebody_else_is_left_alone(
    tmp_path: Path, resume: bool, files: dict[str, bytes], named: str
) -> None:
    for name, written in files.items():
        (tmp_path / name).write_bytes(written)
    with pytest.raises(RecordError, match=named), RunWriter(tmp_path, resume=resume) as writer:
        writer.begin(BEGUN)
    assert content(tmp_path) == files


def test_what_targets_say_and_take_is_kept(tmp_path: Path) -> None:
    started(tmp_path)
    for seconds in (1.5, 2.0):
        with RunWriter(tmp_path, resume=True) as writer:
            writer.begin(BEGUN)
            writer.append(TargetStarted(target="t", description={"version": "1"}))
            writer.append(RunFinished(complete=False, seconds=seconds, target_seconds={"t": seconds}))
    with RunWriter(tmp_path, resume=True) as writer:
        assert writer.loaded.descriptions == {"t": {"version": "1"}}
        assert writer.loaded.seconds == {"t": 3.5}


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started(tmp_path, result(1))
    with RunWriter(tmp_path, resume=True) as writer:
        before = content(tmp_path)

        def fail(self: Path, *arguments: Any, **options: Any) -> int:
            self.touch()
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", fail)
        with pytest.raises(OSError, match="space"):
            writer.describe({**RECORD, "cases": 9})
        assert content(tmp_path) == before


def test_fresh_folders_of_one_second_differ(tmp_path: Path) -> None:
    moment = datetime(2026, 11, 20, 17, 2, 3)
    names = [fresh_folder(tmp_path / "runs", moment).name for _ in range(3)]
    assert names == ["2026-11-20T170203", "2026-11-20T170203-2", "2026-11-20T170203-3"]


# Folders that were edited, cut or made up

RESULTS = [
    result(0),
    result(1, Verdict.WRONG, reason="value", where=WHERE, message="off", worst=3.5, judged=4, elements=4),
    result(2, Verdict.UNSUPPORTED, reason="load", message="not \x1b[31mimplemented\n"),
    result(3, interpretations={"empty": "zero"}, error_sums=(0.0, 0.5, 0.25, 1.0)),
]
LINES = [
    BEGUN,
    TargetStarted(target="t", description={"version": "1", "provider": None}),
    *RESULTS,
    ResultUpdate(by="diagnosis", target="t", case=RESULTS[1].case, diagnosis=("clip.missing",)),
    RunFinished(complete=True, seconds=1.5, target_seconds={"t": 1.5}),
]
TEXTS = [encode(line) for line in LINES]


def folder_of(path: Path, lines: list[bytes], run: bytes | None = encode(RECORD).encode()) -> Path:
    path.mkdir(exist_ok=True)
    (path / "results.jsonl").write_bytes(b"".join(lines))
    if run is None:
        (path / "run.json").unlink(missing_ok=True)
    else:
        (path / "run.json").write_bytes(run)
    return path


def test_a_folder_of_another_form_is_named(tmp_path: Path) -> None:
    folder_of(tmp_path, [], json.dumps({"schema": 1, "onnxspec": "0.2.0\x1b[2J", "results": 7}).encode())
    with pytest.raises(RecordError, match=r"of onnxspec '0\.2\.0\\x1b\[2J' in form 1, this version reads"):
        read_folder(tmp_path)
    for schema in (SCHEMA + 1, None, "2", [], 10**30):
        folder_of(tmp_path, [json.dumps({"record": "header", "schema": schema}).encode() + b"\n"], None)
        if schema == 10**30:  # the reader does not accept such numbers
            assert "64 bits" in read_folder(tmp_path).problems[1]
            continue
        with pytest.raises(RecordError, match="in form"):
            read_folder(tmp_path)


@pytest.mark.parametrize("name", ["run.json", "results.jsonl"])
def test_a_file_that_is_a_folder_is_no_run(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(RecordError, match="so it is no run"):
        read_folder(tmp_path)


TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\w.+-]+|[^\s\w]')
ODD = [
    *("", "null", "true", "-1", str(2**70), "0.5", "1e999", "NaN", '"other"', r'"\ud800"', "[]", "[[1]]", "{}"),
    *('{"a":{}}', '"case":1,"case":2,', '"new":1,"record":'),
]
"""What stands for a token of JSON: values, keys that are new or there twice, and nothing."""


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    """Draw a line with a token replaced by another or by any bytes, and perhaps with the rest cut off."""
    place = draw(st.sampled_from([*TOKEN.finditer(text)]))
    odd = draw(st.sampled_from(ODD).map(str.encode) | st.binary(max_size=4))
    return text[: place.start()].encode() + odd + draw(st.sampled_from([text[place.end() :].encode(), b""]))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_is_done_to_one_line_the_others_are_there(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    number = data.draw(st.integers(0, len(TEXTS) - 1))
    changed = data.draw(mutated(TEXTS[number]).filter(lambda line: b"\n" not in line))
    lines = [(changed if n == number else text.encode()) + b"\n" for n, text in enumerate(TEXTS)]
    folder = folder_of(tmp_path_factory.mktemp("run"), lines)
    reason = ""
    try:
        read = read_folder(folder)
    except RecordError as refusal:
        reason = str(refusal)
    if reason:
        assert number == 0  # of another format, by its first line
        assert re.fullmatch(".* in form .*", reason)
        return
    by_case = {r.case: r for r in read.results}
    assert len(read.results) == len(by_case) <= len(RESULTS)
    for n, before in enumerate(RESULTS, 2):
        if n != number:
            # The update may be one of another result now.
            assert by_case[before.case].verdict is before.verdict or number == 6
            assert by_case[before.case].message == before.message or number == 6
    assert not any("\n" in problem for problem in read.problems)
    for row in read.results:  # results survive writing and reading
        assert decode(encode(row), Result) == row


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_resuming_loses_no_whole_line(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """Lines are removed, doubled, moved and cut, with garbage between them.

    A refusal changes no file. Otherwise every byte of a whole line remains, and no case has two results.
    """
    lines = [f"{text}\n".encode() for text in TEXTS]
    chosen = data.draw(st.lists(st.sampled_from([*lines, b"garbage\n", b"\xff\n", b"{}\n"]), max_size=12))
    whole = b"".join([lines[0], *chosen])
    path = folder_of(tmp_path_factory.mktemp("run"), [whole[: data.draw(st.integers(0, len(whole)))]])
    before = content(path)
    try:
        with RunWriter(path, resume=True) as writer:
            writer.begin(BEGUN)
            done = {r.case for r in writer.done}
            assert len(done) == len(writer.done)
            for row in RESULTS:
                if row.case not in done:
                    writer.append(row)
    except RecordError:
        assert content(path) == before
        return
    after = content(path)
    kept = before["results.jsonl"].rpartition(b"\n")
    assert after["results.jsonl"].startswith(kept[0] + kept[1])
    read = read_folder(path).results
    assert sorted(r.case for r in read) == sorted(r.case for r in RESULTS)
    assert {r.case: r.verdict for r in read} == {r.case: r.verdict for r in RESULTS}
