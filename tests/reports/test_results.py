"""Results as columns, and that large runs stay small and quick."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.results.result import Result
from onnxspec.reports.page import write_report
from onnxspec.reports.results import columns_of

from .conftest import result, sample_results


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def read(rows: list[dict[str, Any]]) -> list[Result]:
    return [Result.from_line(json.dumps(row)) for row in rows]


def test_columns_hold_what_the_results_say() -> None:
    rows = sample_results()
    columns = columns_of(read(rows))
    assert len(columns) == len(rows)
    for place, row in enumerate(rows):
        kind, labels = columns.kinds[columns.kind_of[place]], columns.abouts[columns.about_of[place]]
        for name in ("op", "domain", "version", "type", "target", "verdict", "expected"):
            assert getattr(kind, name) == row[name], name
        assert (kind.reason, list(kind.flags), list(kind.diagnosis)) == (
            row["reason"] or "",
            row["flags"],
            row["diagnosis"],
        )
        assert (list(labels.clauses), list(labels.features)) == (row["clauses"], row["features"])
        assert columns.case[place] == row["case"]
        assert columns.worst[place] == (-1 if row["worst"] is None else row["worst"])
        assert columns.seconds[place] == row["seconds"]
        assert columns.repeat(place) == row["repeat"]
        note = columns.notes.get(place)
        assert (note.message if note else "") == row["message"]
        if row["where"] is not None:
            step = row["where"]["step"]
            index = ", ".join(map(str, row["where"]["index"]))
            words = f"{row['where']['output']}[{index}]" + (f", step {step}" if step is not None else "")
            assert note is not None
            assert note.where == words
    assert len(columns.kinds) < len(rows) / 2


def test_a_result_counts_in_each_of_its_groups() -> None:
    rows = [
        result("a", features=["clip", "reverse"]),
        result("b", features=["reverse"]),
        result("c", features=[], clauses=[]),
        result("d", features=["clip", "reverse"], verdict="wrong"),
        result("e", features=["reverse", "clip"]),
    ]
    results = columns_of(read(rows))
    counted = {(results.kinds[kind].verdict, group): n for kind, group, n in results.group_counts}
    assert counted == {("pass", "clip"): 2, ("pass", "reverse"): 3, ("wrong", "clip"): 1, ("wrong", "reverse"): 1}
    assert replace(results, about_of=[2] * 5).group_counts == []


@pytest.mark.long
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
