"""Reading results.jsonl by pattern gives what reading it line by line gives, and large runs stay small and quick."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnxspec.reports import write_report
from onnxspec.reports.lexer import _line_by_line, lex
from onnxspec.reports.results import Results, read_results

from .conftest import result, sample_results

TRICKY = ['", "op": "GRU', "]", "}", "a\\b", 'say "no"', "tab\there", "line\nbreak", "caf\u00e9", "{[,]}", "null", ""]


def written(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    path.write_text("".join(json.dumps(row, **options) + "\n" for row in rows), encoding="utf-8")
    return path


def as_rows(results: Results) -> list[tuple[Any, ...]]:
    return [
        (
            results.case[row],
            results.kinds[results.kind_of[row]],
            results.abouts[results.about_of[row]],
            results.worst[row],
            results.seconds[row],
            results.notes.get(row),
            results.repeat(row),
        )
        for row in range(len(results))
    ]


@pytest.mark.parametrize("options", [{}, {"sort_keys": True}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_the_pattern_reads_what_the_parser_reads(tmp_path: Path, options: dict[str, Any]) -> None:
    rows = sample_results()
    draw = random.Random(7)
    for row in rows:
        if draw.random() < 0.3:
            row[draw.choice(["case", "message", "reason", "op"])] = draw.choice(TRICKY)
        if draw.random() < 0.2:
            row["flags"] = [draw.choice(TRICKY)]
        if draw.random() < 0.1:
            row["where"] = {"output": draw.choice(TRICKY), "index": None, "step": 3}
    path = written(tmp_path / "results.jsonl", rows, **options)
    fast = read_results(path)
    # A line of another layout forces the whole file through the parser.
    path.write_text(path.read_text(encoding="utf-8") + '{"odd": {"deep": {"er": []}}}\n', encoding="utf-8")
    slow = read_results(path)
    assert as_rows(fast) == as_rows(slow)[:-1]


@pytest.mark.parametrize("trick", TRICKY)
def test_no_string_ends_a_value_early(trick: str) -> None:
    row = result("a", message=trick, op=trick, clauses=[trick, "b"], where={"output": trick, "index": [1], "step": 0})
    text = json.dumps(row) + "\n"
    fast, slow = lex(text * 2), _line_by_line(text.split("\n"))
    for name in ("case", "worst", "where", "message", "seconds", "repeat"):
        assert [json.loads(part) for part in getattr(fast, name)] == [json.loads(getattr(slow, name)[0])] * 2
    for name in ("kind", "about"):
        first = [json.loads("{" + ", ".join(pieces) + "}") for pieces in getattr(fast, name)]
        assert first == [json.loads("{" + getattr(slow, name)[0][0] + "}")] * 2


def test_keys_inside_a_value_are_not_taken_for_the_line_s_own() -> None:
    inner = {"x": 1, "op": "GRU", "domain": "", "version": 7, "worst": 2}
    for name in ("case", "clauses", "features", "version", "where"):
        line = json.dumps(result("a") | {name: inner}, separators=(",", ":"))
        plain = json.dumps(result("a"), separators=(",", ":"))
        text = f"{plain}\n{line}\n"
        fast, slow = lex(text), _line_by_line(text.split("\n"))
        for row in range(2):
            for column in ("kind", "about"):
                read = [json.loads("{" + ", ".join(getattr(c, column)[row]) + "}") for c in (fast, slow)]
                assert read[0] == read[1]
            for column in ("case", "worst", "where"):
                assert json.loads(getattr(fast, column)[row]) == json.loads(getattr(slow, column)[row])


def test_a_result_counts_in_each_of_its_groups(tmp_path: Path) -> None:
    rows = [
        result("a", features=["clip", "reverse"]),
        result("b", features=["reverse"]),
        result("c", features=[], clauses=[]),
        result("d", features=["clip", "reverse"], verdict="wrong"),
        result("e", features=["reverse", "clip"]),
    ]
    results = read_results(written(tmp_path / "results.jsonl", rows))
    counted = {(results.kinds[kind].verdict, group): n for kind, group, n in results.group_counts}
    assert counted == {("pass", "clip"): 2, ("pass", "reverse"): 3, ("wrong", "clip"): 1, ("wrong", "reverse"): 1}
    assert replace(results, about_of=[2] * 5).group_counts == []


def test_a_hundred_thousand_results_stay_within_eight_megabytes(tmp_path: Path) -> None:
    draw = random.Random(1)
    groups = [
        draw.sample(["clip", "reverse", "ragged", "layout1", "peepholes"], draw.randint(1, 4)) for _ in range(1500)
    ]
    rows = []
    for number in range(100_000):
        version, kind = (1, 7, 14, 22)[number // 4 % 4], ("float16", "float32", "float64", "bfloat16")[number % 4]
        size = f"T{number % 17}N{number % 5}I{number % 7}H{number % 33}"
        row = result(f"LSTM-{version}-{kind}-{size}-{draw.getrandbits(32):08x}", version=version, type=kind)
        row |= {"worst": draw.random(), "seconds": draw.random() / 100, "features": groups[number // 16 % 1500]}
        if draw.random() < 0.15:
            row |= {
                "verdict": "wrong",
                "reason": "value",
                "where": {"output": "Y", "index": [3, 0, 1, number], "step": 3},
            }
            row["message"] = f"Y[3, 0, 1, {number}] is {draw.random()}, the document gives {draw.random()} within 1e-07"
        rows.append(row)
    (tmp_path / "run").mkdir()
    written(tmp_path / "run" / "results.jsonl", rows)
    page = write_report([tmp_path / "run"], tmp_path / "report", warn=lambda line: None)
    assert page.stat().st_size <= 8_000_000


def test_long_messages_are_cut_to_the_budget(tmp_path: Path) -> None:
    rows = [result(f"c{number}", verdict="crashed", message=f"{number} " + "x" * 3000) for number in range(5000)]
    (tmp_path / "run").mkdir()
    written(tmp_path / "run" / "results.jsonl", rows)
    page = write_report([tmp_path / "run"], tmp_path / "report", warn=lambda line: None)
    assert page.stat().st_size <= 4_000_000
