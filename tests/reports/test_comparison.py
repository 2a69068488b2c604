"""Tests of differences between runs: regressions, results that are not compared, and every output format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from onnxspec.conformance.cli.application import app
from onnxspec.reports.comparison import Changes, Comparison, compare
from onnxspec.reports.run import read_run
from onnxspec.reports.templates import markdown_of

from .conftest import editing, result, run_of, sample_info, write_run

RUNNER = CliRunner()

NARROWED = {"op": [], "since_version": [], "type": ["float32"], "case": [], "directories": []}


def compared(tmp_path: Path, was: list[dict[str, Any]], now: list[dict[str, Any]]) -> Changes:
    (changes,) = compare(read_run(run_of(tmp_path / "was", was)), read_run(run_of(tmp_path / "now", now))).targets
    return changes


@pytest.mark.parametrize(
    ("was", "now", "kind", "worse"),
    [
        ("pass", "wrong", "broke", True),
        ("unsupported", "wrong", "broke", True),
        ("inconclusive", "crashed", "broke", True),
        ("pass", "unsupported", "lost", True),
        ("pass", "fallback", "lost", True),
        ("wrong", "pass", "mended", False),
        ("unsupported", "pass", "gained", False),
        ("fallback", "pass", "gained", False),
        ("wrong", "crashed", "changed", False),
        ("crashed", "unsupported", "changed", False),
        ("pass", "inconclusive", "changed", False),
        ("pass", "pass", None, False),
        ("wrong", "wrong", None, False),
        ("unavailable", "wrong", None, False),
        ("pass", "unavailable", None, False),
    ],
)
def test_each_pair_of_verdicts(tmp_path: Path, was: str, now: str, kind: str | None, worse: bool) -> None:
    changes = compared(tmp_path, [result("a", verdict=was)], [result("a", verdict=now)])
    assert {name: len(changed) for name, changed in changes.changed.items() if changed} == ({kind: 1} if kind else {})
    assert changes.worse is worse


def test_the_same_verdict_by_another_fault_is_a_change(tmp_path: Path) -> None:
    was, now = (result("a", verdict="wrong", diagnosis=[name]) for name in ("x", "y"))
    assert compared(tmp_path, [was], [now]).changed["changed"][0].how == "wrong, with another diagnosis"


def test_cases_of_one_run_only_decide_nothing(tmp_path: Path) -> None:
    changes = compared(tmp_path, [result("a"), result("b")], [result("b"), result("c", verdict="wrong")])
    assert (changes.only_old, changes.only_new, changes.same, changes.worse) == (("a",), ("c",), 1, False)
    # Runs without a common case are not called the same.
    assert compared(tmp_path, [result("a")], [result("b")]).verdict == "unknown: the runs have no case in common"


@pytest.mark.parametrize(
    ("was", "now", "worst", "moved", "verdict"),
    [
        ("strict", "standard", 0.21, (0.21, 0.21), "worse: accuracy in float32 is down from strict to standard"),
        ("standard", "strict", 0.21, (0.21, 0.21), "the same in all 1 cases"),
        ("strict", "strict", 0.4, (0.21, 0.4), "the same in all 1 cases"),
        ("strict", "strict", 0.211, None, "the same in all 1 cases"),
    ],
    ids=["wider", "tighter", "moved", "hardly moved"],
)
def test_a_wider_grade_is_worse_and_errors_that_moved_are_told(
    tmp_path: Path, was: str, now: str, worst: float, moved: tuple[float, float] | None, verdict: str
) -> None:
    runs = run_of(tmp_path / "was", [result("a", worst=0.21)]), run_of(tmp_path / "now", [result("a", worst=worst)])
    for run, grade in zip(runs, (was, now), strict=True):
        with editing(run) as info:
            info["targets"][0]["grade"] = {"float32": grade}
    (changes,) = compare(*map(read_run, runs)).targets
    assert [(m.worst_was, m.worst_now) for m in changes.accuracy] == ([moved] if moved else [])
    assert (changes.verdict, changes.worse) == (verdict, verdict.startswith("worse"))


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        ({}, ""),
        ({"profile": "smoke"}, "profile: core, then smoke"),
        ({"selection": NARROWED}, "selected: everything, then type float32"),
        ({"digests": {"LSTM-14": "00"}}, "differ for LSTM-14"),
        ({"onnxspec": "9"}, "release of onnxspec"),
        ({"complete": False}, "did not finish"),
    ],
)
def test_what_makes_runs_less_than_comparable_is_said(tmp_path: Path, changed: dict[str, Any], warning: str) -> None:
    runs = run_of(tmp_path / "was", [result("a")]), run_of(tmp_path / "now", [result("a")], **changed)
    warnings = "\n".join(compare(*map(read_run, runs)).warnings)
    assert warning in warnings
    assert bool(warning) == bool(warnings)


def test_targets_are_paired_by_name_and_alone_by_being_alone(tmp_path: Path) -> None:
    one = run_of(tmp_path / "one", [result("a")])
    other = run_of(tmp_path / "other", [result("a", target="other")], target="other")
    alone = compare(read_run(one), read_run(other))
    assert [changes.same for changes in alone.targets] == [1]
    assert "different names: onnxruntime, then other" in alone.warnings[-1]
    version = alone.targets[0].old.version
    assert version
    lines = RUNNER.invoke(app, ["diff", str(one), str(other)]).stdout.splitlines()
    assert f"## onnxruntime {version}, then other {version}" in lines
    rows = [result("a", target="other"), result("a", target="third")]
    info = sample_info(rows, "other")
    info["targets"].append(dict(info["targets"][0], name="third"))
    several: Comparison = compare(read_run(one), read_run(write_run(tmp_path / "several", rows, info)))
    assert (several.targets, several.only_old, several.only_new) == ((), ("onnxruntime",), ("other", "third"))


@pytest.fixture
def pair(tmp_path: Path) -> tuple[str, str]:
    was = run_of(tmp_path / "was", [result("a"), result("b", verdict="wrong")])
    now = run_of(tmp_path / "now", [result("a", verdict="wrong", message="<b>|`x`"), result("b")])
    return str(was), str(now)


def test_every_form_tells_the_same(pair: tuple[str, str]) -> None:
    for form in ("text", "markdown"):
        done = RUNNER.invoke(app, ["diff", *pair, "--format", form])
        assert done.exit_code == 1
        assert "**Worse: 1 newly failing, 1 fixed.**" in done.stdout
        assert "onnxspec run --target onnxruntime --case a" in done.stdout
    assert RUNNER.invoke(app, ["diff", pair[0], pair[0]]).exit_code == 0


def test_what_a_runtime_said_does_not_format(tmp_path: Path) -> None:
    name = "a|b`c<i>_d_"
    wrong = {"verdict": "wrong", "message": "# <script> | [x](y)"}
    runs = [
        run_of(tmp_path / k, [result("a", target=name, **v)], target=name) for k, v in {"was": {}, "is": wrong}.items()
    ]
    comparison = compare(*map(read_run, runs))
    text = markdown_of("difference.md", comparison=comparison)
    assert "<script>" not in text
    assert "\\<script\\>" in text or "\\<i\\>" in text
    assert not any(line.startswith("# <") for line in text.splitlines())
