"""Run folders that were edited, cut or made up: errors are reported, and the rest is used."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onnxspec.conformance.border.strict_json import decode, encode
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.results.folder import RunFolder, read_folder
from onnxspec.conformance.results.lines import ResultUpdate, RunFinished, TargetStarted
from onnxspec.conformance.results.records import SCHEMA
from onnxspec.conformance.results.result import Result
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.reference.errors import RecordError
from onnxspec.reports.run import read_runs

from .test_writer import BEGUN, RECORD, content, result

WHERE = {"output": "Y", "index": [0, 1, 2, 3], "step": 0}
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


def test_results_of_0_4_are_refused_in_one_line(tmp_path: Path) -> None:
    row = json.loads(encode(RESULTS[0]))
    del row["record"]
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(row)}\n" * 3, encoding="ascii")
    with pytest.raises(RecordError, match="in form unknown, this version reads and writes form 3"):
        read_folder(tmp_path)


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


ODD: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()  # infinity and NaN as Python writes them
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values inside a JSON value."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, inner in inside for found in places(inner, (*path, key)))]


@st.composite
def mutated(draw: st.DrawFn, text: str) -> bytes:
    """Draw a record with a value replaced, removed, added or doubled, or with its bytes cut or changed."""
    mutation = draw(st.sampled_from(["replaced", "left out", "added", "twice", "cut", "bytes"]))
    value = json.loads(text)
    if mutation == "cut":
        return text.encode()[: draw(st.integers(0, len(text) - 1))]
    if mutation == "bytes":
        raw = bytearray(text.encode())
        raw[draw(st.integers(0, len(raw) - 1))] = draw(st.integers(0, 255))
        return bytes(raw)
    if mutation == "twice":
        key = draw(st.sampled_from(sorted(value)))
        return (text[:-1] + "," + json.dumps({key: draw(ODD)})[1:]).encode()
    *path, last = draw(st.sampled_from(places(value)[1:]))
    inner = copy.deepcopy(value)
    holder = inner
    for key in path:
        holder = holder[key]
    if mutation == "left out":
        del holder[last]
    elif mutation == "added" and isinstance(holder, dict):
        holder[draw(st.text(max_size=4))] = draw(ODD)
    else:
        holder[last] = draw(ODD)
    return json.dumps(inner).encode()


def read_or_refused(folder: Path) -> RunFolder | str:
    """Read a folder, or return the reason of a refusal, which can only be another format."""
    try:
        return read_folder(folder)
    except RecordError as refusal:
        reason = str(refusal)
    assert "in form" in reason
    assert "\n" not in reason
    return reason


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_whatever_is_done_to_one_line_the_others_are_there(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    number = data.draw(st.integers(0, len(TEXTS) - 1))
    changed = data.draw(mutated(TEXTS[number]).filter(lambda line: b"\n" not in line))
    lines = [(changed if n == number else text.encode()) + b"\n" for n, text in enumerate(TEXTS)]
    folder = folder_of(tmp_path_factory.mktemp("run"), lines)
    read = read_or_refused(folder)
    if isinstance(read, str):
        assert number == 0  # of another format, by its first line
        return
    by_case = {r.case: r for r in read.results}
    untouched = {r.case: r for n, r in enumerate(RESULTS, 2) if n != number}
    for case, before in untouched.items():
        assert by_case[case].verdict is before.verdict or number == 6
        assert by_case[case].message == before.message or number == 6
    assert len(by_case) <= len(RESULTS)
    assert len(read.results) == len(by_case)
    for problem in read.problems:
        assert "\n" not in problem
    if read.damaged:
        assert any(problem.startswith(f"results.jsonl:{number + 1}: ") for problem in read.problems)
    for row in read.results:  # results survive writing and reading
        assert decode(encode(row), Result) == row


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_is_done_to_run_json_the_results_are_there(
    tmp_path_factory: pytest.TempPathFactory, data: Any
) -> None:
    changed = data.draw(mutated(encode(RECORD)))
    folder = folder_of(tmp_path_factory.mktemp("run"), [f"{text}\n".encode() for text in TEXTS], changed)
    read = read_or_refused(folder)
    if isinstance(read, str):
        return
    assert len(read.results) == len(RESULTS)
    assert (read.info is None) == any("run.json cannot be read" in problem for problem in read.problems)
    runs, _ = read_runs([folder])
    assert len(runs[0].results) == len(RESULTS)


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
