"""Tests of the counts of results, their icons, refusals with one message, and the size of pages for large runs."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.judging.vocabulary import STATES
from onnxspec.conformance.results.sections import sections_of
from onnxspec.conformance.results.summary import summary_of
from onnxspec.reports import presentation
from onnxspec.reports.page import write_report
from onnxspec.reports.run import read_run
from onnxspec.reports.subject import subjects_of

from .conftest import finding, result, sample_info, write_run
from .test_report import report


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


def test_refusals_with_one_message_are_one_line(tmp_path: Path) -> None:
    rows = [result("right")]
    findings = []
    for name in ("Relu", "Elu", "Softplus"):
        rows.append(result(name, verdict="unsupported", message=f"Unknown activation function '{name}'."))
        refusal = finding(f"refuses {name}", "unsupported", [], [name], conditions=name, types=["float32"])
        refusal["message"] = rows[-1]["message"]
        findings.append(refusal)
    info = sample_info(rows)
    info["targets"][0]["findings"] = findings
    page, _ = report(tmp_path / "report", write_run(tmp_path / "run", rows, info))
    (section,) = (s for s in sections_of(summary_of([], findings), findings, []) if "not support" in s.heading)
    assert [(item.text, item.extent) for item in section.items] == [
        ("Relu, Elu, Softplus", " (3 cases, LSTM, float32)")
    ]
    text = page.text("findings")
    assert text.count("Unknown activation function") == 1
    assert "Relu, Elu, Softplus 3 cases" in text
    assert [page.text(f"finding-{number}") for number in (1, 2, 3)] == ["Relu", "Elu", "Softplus"]


def test_what_fails_is_drawn_as_a_failure_and_nothing_else_is() -> None:
    failing = {verdict for verdict in Verdict if presentation.presentation_of(verdict.value).tone == "fail"}
    assert failing == FAILING
    assert presentation.presentation_of("pass").tone == "pass"
    assert set(presentation.STATES) == set(STATES)


def test_a_verdict_of_another_version_claims_nothing() -> None:
    assert presentation.presentation_of("of tomorrow") == ("question", "quiet")
