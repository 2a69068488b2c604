"""Tests of the diagnosis on pages: a finding's fault, its conditions, faults beside it, and unexplained results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import CLAUSES, Page, add_evidence, exhibit, pages, report, result, run_of
from .conftest import finding as whole_finding

OPERATORS = ("GRU", "LSTM", "RNN")
SUMMARY = "Ignores sequence_lens (with the reverse direction)"


def wrong(case: str, *diagnosis: str, **fields: Any) -> dict[str, Any]:
    return result(case, verdict="wrong", reason="value", diagnosis=list(diagnosis), **fields)


def finding(title: str, kind: str, cases: list[str], **fields: Any) -> dict[str, Any]:
    return {**whole_finding(title, kind, [], cases), "message": "m", "verdict": kind, **fields}


def run_with(path: Path, rows: list[dict[str, Any]], findings: list[dict[str, Any]], **clauses: Any) -> Path:
    return run_of(path, rows, findings, clauses=CLAUSES | clauses)


@pytest.fixture
def diagnosed(tmp_path: Path) -> Path:
    """Return a run with two faults: one in three operators, a case with both, and a case that neither explains."""
    lengths, clip = "lengths.ignored", "clip.ignored"
    rows = [wrong(f"{op}-a", lengths, op=op, features=["lengths"]) for op in OPERATORS]
    rows += [wrong("both", lengths, clip), wrong("c", clip), wrong("odd"), result("fine")]
    clause = {"status": "implied", "text": "A row of length L has L steps.", "source": "s"}
    arithmetic = {"status": "arithmetic", "text": "NaN stays NaN.", "source": "s"}
    ids = [f"{op.lower()}.lengths" for op in OPERATORS]
    named = [f"{op}-a" for op in OPERATORS]
    findings = [
        finding(
            SUMMARY,
            "wrong",
            [*named, "both"],
            fault=lengths,
            foretold=10,
            conditions="the reverse direction",
            clauses=ids,
        ),
        finding("Ignores clip", "wrong", ["c", "both"], fault=clip, clauses=["lstm.clip.gates"]),
        finding("wrong (value)", "wrong", ["odd"], clauses=["lstm.nan"]),
    ]
    return run_with(tmp_path / "run", rows, findings, **dict.fromkeys(ids, clause), **{"lstm.nan": arithmetic})


def test_a_fault_is_told_with_its_id_its_clause_and_its_condition(diagnosed: Path, tmp_path: Path) -> None:
    page, _ = report(tmp_path / "report", diagnosed)
    first = page.text("finding-1")
    assert SUMMARY in first
    assert "Fails only withthe reverse direction" in first  # two cells of a list
    assert "lengths.ignored (3 alone, 1 together with clip.ignored); it predicted 10 new cases" in first
    assert first.count("A row of length L has L steps.") == 1  # the three operators have the same text
    assert all(f"{op.lower()}.lengths" in first for op in OPERATORS)
    assert "implied: it follows from the document's equations" in first
    assert "GRU-14, LSTM-14, RNN-14" in first
    assert "#finding-2" in [attrs.get("href") for attrs in page.all("a")]
    assert "only with" not in page.text("finding-2")
    third = page.text("finding-3")
    assert "unknown: matches none of the known faults" in third
    assert "arithmetic: it follows from the format of numbers, and from no document" in third


def test_a_finding_that_is_only_consistent_with_a_fault_is_not_told_to_have_none(tmp_path: Path) -> None:
    rows = [wrong("odd"), result("fine")]
    lead = finding("Consistent with: ignores clip", "wrong", ["odd"], fault="clip.ignored", searched=False)
    run = run_with(tmp_path / "run", rows, [lead])
    add_evidence(run, {"odd": exhibit("odd") | {"diagnosis": []}})
    page, _ = report(tmp_path / "report", run)
    (finding_page,) = pages(tmp_path / "report", run)
    for text in (page.text("finding-1"), finding_page.whole):
        assert "clip.ignored: possible, not proven" in text
        assert "were tried" not in text


def test_what_a_class_or_a_list_explains_is_not_called_unexplained(page_of: Callable[..., Page]) -> None:
    listed = {"expected": True, "why": "known"}
    rows = [wrong("a", "clip.ignored"), wrong("odd"), wrong("known") | listed, result("loose", verdict="inaccurate")]
    findings = [
        finding("Ignores clip", "wrong", ["a"], fault="clip.ignored"),
        finding("wrong (value)", "wrong", ["odd"], searched=False),
        finding("wrong (value)", "wrong", ["known"], expected=True, why="known", searched=False),
        finding("inaccurate (no better than tf32)", "inaccurate", ["loose"]),
    ]
    page = page_of(rows, findings)
    texts = {n: page.text(f"finding-{n}") for n in range(1, 5)}
    assert ["not all known faults were tried" in texts[n] for n in texts].count(True) == 2
    assert not any("matches none" in text for text in texts.values() if "wider" in text or "tf32" in text)


@pytest.mark.parametrize(
    ("title", "verdict", "fields", "said", "unsaid"),
    [
        ("accepts what the document forbids", "not-rejected", {"fault": "accepts.types"}, "accepts.types", "explains"),
        ("crashed", "crashed", {}, "The process dies", "matches none"),
        (
            "Consistent with: ignores clip",
            "wrong",
            {"fault": "clip.ignored"},
            "clip.ignored (possible in 1 case); not confirmed on new cases",
            "matches none",
        ),
    ],
)
def test_a_cause_is_told_as_far_as_it_is_known(
    page_of: Callable[..., Page], title: str, verdict: str, fields: dict[str, Any], said: str, unsaid: str
) -> None:
    rows = [result("a", verdict=verdict, diagnosis=["clip.ignored"] if verdict == "wrong" else []), result("fine")]
    text = page_of(rows, [finding(title, verdict, ["a"], **fields)]).text("finding-1")
    assert said in text
    assert unsaid not in text


def test_the_page_of_a_fault_leads_to_those_beside_it(diagnosed: Path, tmp_path: Path) -> None:
    first, second, third = pages(tmp_path / "report", diagnosed)
    assert "together with clip.ignored" in first.text("answer")
    assert "02-ignores-clip.html" in [attrs.get("href") for attrs in first.all("a")]
    assert "1 alone, 1 together with lengths.ignored" in second.text("answer")
    assert "unknown: matches none of the known faults" in third.text("answer")


def test_what_fails_no_case_stands_apart_and_fails_no_run(tmp_path: Path) -> None:
    rows = [result(name) for name in "abc"] + [result("d", verdict="not-rejected"), result("e", verdict="unsupported")]
    title = "follows two interpretations of lstm.nan: quiet with float16, loud elsewhere"
    findings = [
        finding(title, "mixed", ["a"], verdict="pass", conditions="float16"),
        finding("biased in float32: errors do not average out", "biased", ["b"], verdict="pass"),
        finding("breaks a convention (padding)", "convention", ["c"], verdict="pass"),
        finding("accepts what the document forbids: layout is 2", "not-rejected", ["d"]),
        finding("refuses float64", "unsupported", ["e"], conditions="float64"),
    ]
    run = run_with(tmp_path / "run", rows, findings)
    page, _ = report(tmp_path / "report", run)
    order = [attrs["id"] for attrs in page.all("h3") if str(attrs.get("id")).startswith("findings-")]
    assert order == ["findings-validation", "findings-aside", "findings-unsupported"]
    assert [word in page.text(f"finding-{n}") for n, word in enumerate(("mixed", "biased", "convention"), 2)] == [
        True
    ] * 3
    assert "Refusesfloat64" in page.text("answer")
    assert "Invalid models that were accepted" in page.text("answer")
    assert "What is wrong" not in page.text("answer")
    accepted, mixed, biased, convention, refused = pages(tmp_path / "second", run)
    assert "so it fails the run" in accepted.text("answer")
    for aside in (mixed, biased, convention):
        assert "not a failure" in aside.text("answer")
        assert "fails the run" not in aside.text("answer")
    assert "keep to one answer" in mixed.text("answer")
    assert "lean to one side" in biased.text("answer")
    assert "clean error" in refused.text("answer")


def test_many_clauses_of_one_finding_fold(page_of: Callable[..., Page]) -> None:
    ids = [f"lstm.c{n}" for n in range(6)]
    clauses = {id: {"status": "stated", "text": f"Statement {id}.", "source": ""} for id in ids}
    page = page_of([wrong("a")], [finding("t", "wrong", ["a"], clauses=ids)], clauses=clauses)
    assert "3 more clauses" in page.text("finding-1")
    assert all(f"Statement {id}." in page.text("finding-1") for id in ids)
