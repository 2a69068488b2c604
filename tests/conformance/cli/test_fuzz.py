"""Cases of a search: legal and reproducible; and ``onnxspec fuzz``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from onnxspec.cases.portable import check_case
from onnxspec.conformance.probes.drawn import random_batches
from onnxspec.reference import FORMATS

from ..miniatures import Inside

VERSIONS = [("LSTM", 14), ("GRU", 22), ("RNN", 7)]
PLAIN = ([("LSTM", 14)], ["float32"])


def drawn(*arguments: Any, **limits: Any) -> list[Any]:
    """Return all cases of a search."""
    return [*itertools.chain.from_iterable(random_batches(*arguments, **limits))]


def test_what_is_drawn_is_legal_and_varies() -> None:
    specs = [probe.spec for probe in drawn(*PLAIN, 1, count=300)]
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

    monkeypatch.setattr("onnxspec.conformance.probes.drawn.check_case", broken)
    assert drawn(*PLAIN, 1, count=100) == []


def test_a_search_repeats_from_its_seed_and_has_each_case_once() -> None:
    first, second, other = (
        [probe.id for probe in drawn(VERSIONS, list(FORMATS), seed, count=200)] for seed in (1, 1, 2)
    )
    assert first == second != other
    assert len({*first}) == len(first) == 200


def test_cases_that_do_not_fit_into_a_surrounding_graph_count_as_drawn() -> None:
    assert 0 < len(drawn(*PLAIN, 1, count=60, wrap="neg")) < 60


def test_a_search_ends_when_its_time_is_over() -> None:
    assert drawn(*PLAIN, 1, seconds=0) == []


# The command


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
