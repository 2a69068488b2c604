"""Cases of a search: legal and reproducible; and ``onnxspec fuzz``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from onnxspec.cases.portable import check_case
from onnxspec.conformance.fuzzing.search import Search
from onnxspec.conformance.probes.probe import Probe
from onnxspec.reference import FORMATS

from ..miniatures import Inside

VERSIONS = [("LSTM", 14), ("GRU", 22), ("RNN", 7)]
TYPES = list(FORMATS)


def searched(search: Search) -> list[Probe]:
    """Return all cases of a search."""
    return [*itertools.chain.from_iterable(iter(search.next_cases, []))]


def test_what_is_drawn_is_legal_and_varies() -> None:
    specs: list[Any] = [probe.spec for probe in searched(Search([("LSTM", 14)], ["float32"], 1, cases=300))]  # type: ignore[attr-defined]
    assert {(spec.op, spec.version, spec.type) for spec in specs} == {("LSTM", 14, "float32")}
    assert {s.direction for s in specs} == {"forward", "reverse", "bidirectional"}
    assert {s.lengths for s in specs} >= {"absent", "ragged", "full", "short"}
    assert {s.layout for s in specs} == {0, 1}
    assert any(s.H > 32 for s in specs)
    assert any(s.alpha and not s.beta for s in specs)
    assert sum(spec.activations is not None for spec in specs) > 40
    for spec in specs[:20]:
        check_case(spec)


def test_a_search_whose_draws_are_never_cases_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(spec: Any) -> None:
        raise ValueError("no inputs")

    monkeypatch.setattr("onnxspec.conformance.fuzzing.search.check_case", broken)
    assert searched(Search([("LSTM", 14)], ["float32"], 1, cases=100)) == []


def test_a_search_repeats_from_its_seed_and_has_each_case_once() -> None:
    first, second, other = (
        [probe.id for probe in searched(Search(VERSIONS, TYPES, seed, cases=200))] for seed in (1, 1, 2)
    )
    assert first == second != other
    assert len(set(first)) == len(first)
    assert len(first) == 200


def test_cases_that_do_not_fit_into_a_surrounding_graph_count_as_drawn() -> None:
    probes = searched(Search([("LSTM", 14)], ["float32"], 1, cases=60, wrap="neg"))
    assert 0 < len(probes) < 60


def test_a_search_ends_when_its_time_is_over() -> None:
    assert searched(Search(VERSIONS, TYPES, 1, seconds=0)) == []


# The command

SHORT = ("--op", "GRU", "--type", "float32", "--examples", "4:1")


def test_a_folder_that_holds_a_run_is_left_alone(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "fuzz").mkdir()
    (tmp_path / "fuzz" / "results.jsonl").write_text("no JSON")
    done = inside("fuzz", *SHORT, "--out", "fuzz")
    assert done.code == 2
    assert "already holds a run" in done.err
    assert (tmp_path / "fuzz" / "results.jsonl").read_text() == "no JSON"


def test_a_target_that_does_not_start_is_said_in_a_line(inside: Inside, tmp_path: Path) -> None:
    (tmp_path / "targets.toml").write_text("[dead]\nadapter = 'dead.py'\n")
    (tmp_path / "dead.py").write_text("raise OSError('the device is away')\n")
    done = inside("fuzz", "--target", "dead", *SHORT)
    assert done.code == 3
    assert "the device is away" in done.out
    assert "Traceback" not in done.err


def test_a_search_is_a_run_with_findings_that_can_be_repeated(inside: Inside, tmp_path: Path) -> None:
    """onnxruntime uses 0 if ThresholdedRelu has no alpha."""
    words = ("--op", "RNN", "--type", "float32", "--examples", "120:2", "--out", "found")
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
