"""Tests of the counts of results, and of the size of pages for large runs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from onnxspec.reports.page import write_report
from onnxspec.reports.run import read_run
from onnxspec.reports.subject import subjects_of

from .conftest import result


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_result_counts_in_each_of_its_groups(tmp_path: Path) -> None:
    rows = [
        result("a", features=["clip", "reverse"]),
        result("b", features=["reverse"]),
        result("c", features=[], clauses=[]),
        result("d", features=["clip", "reverse"], verdict="wrong"),
        result("e", features=["reverse", "clip"]),
    ]
    written(tmp_path / "results.jsonl", rows)
    (subject,) = subjects_of([read_run(tmp_path)])
    counted = {group: dict(tally.verdicts) for (group, _), tally in subject.by_feature.items()}
    assert counted == {"clip": {"pass": 2, "wrong": 1}, "reverse": {"pass": 3, "wrong": 1}}


@pytest.mark.long
def test_twenty_thousand_results_stay_within_six_megabytes(tmp_path: Path) -> None:
    draw = random.Random(1)
    groups = [
        draw.sample(["clip", "reverse", "ragged", "layout1", "peepholes"], draw.randint(1, 4)) for _ in range(1500)
    ]
    rows = []
    for number in range(20_000):
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
    assert page.stat().st_size <= 6_000_000


def test_long_messages_are_cut_to_the_budget(tmp_path: Path) -> None:
    rows = [result(f"c{number}", verdict="crashed", message=f"{number} " + "x" * 3000) for number in range(5000)]
    (tmp_path / "run").mkdir()
    written(tmp_path / "run" / "results.jsonl", rows)
    page = write_report([tmp_path / "run"], tmp_path / "report", warn=lambda line: None)
    assert page.stat().st_size <= 4_000_000
