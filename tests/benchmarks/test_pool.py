"""Dense cases are chosen by what they add, exchanged while all gain, and measured where something may be expected."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))  # benchmarks are no part of the package

from benchmarks.pool.choose import candidates
from benchmarks.pool.chooser import Candidate, Chooser
from benchmarks.pool.promising import promising, telling
from onnxspec.cases import CaseSpec
from onnxspec.cases.profiles import pool_of
from onnxspec.conformance.proof import faults_of, pool_tally, shown_by


@pytest.fixture(scope="module")
def pool() -> list[Candidate]:
    there = pool_of("RNN")
    some = [case for case in there.cases if case.level == "complete"][:60]
    return candidates("RNN", [((c.level, c.index, c.sibling), c.spec, shown_by(c, there.parts)) for c in some])


def shown(chooser: Chooser) -> int:
    return int(np.unpackbits(chooser.triples).sum())


def test_an_exchange_loses_nothing_and_keeps_to_the_models(pool: list[Candidate]) -> None:
    chooser = Chooser(pool)
    chooser.run(lambda case: True, 8, 12)
    count, before = len(chooser.chosen), shown(chooser)
    assert chooser.cost <= 8
    chooser.exchange(lambda case: True, 8)
    assert len(set(chooser.chosen)) == count
    assert chooser.cost <= 8
    assert shown(chooser) >= 0.99 * before  # pairs count more than triples
    anew = Chooser(pool)
    for k in chooser.chosen:
        anew.choose(k)
    assert (anew.triples == chooser.triples).all()
    assert (anew.counts == chooser.counts).all()


def test_an_exchange_mends_a_poor_choice(pool: list[Candidate]) -> None:
    chooser = Chooser(pool)
    for k in sorted(range(len(pool)), key=chooser.worth)[:6]:
        chooser.choose(k)
    before = shown(chooser)
    chooser.exchange(lambda case: True, chooser.cost)
    assert shown(chooser) > before


def test_what_is_promising_shows_more_than_what_is_not() -> None:
    """By what is pinned of the cases: nothing is measured to choose them."""
    there = pool_of("RNN")
    known, others = there.cases[:80], [case for case in there.cases[there.pinned :] if case.level == "complete"][:80]
    tally = pool_tally("RNN", known)
    order = promising("RNN", [case.spec for case in others], tally.triples > 0, 10)
    assert len(set(order)) == 10

    def adds(places: list[int]) -> int:
        more = pool_tally("RNN", [*known, *(others[k] for k in places)])
        return more.score(faults_of("RNN")).triples[0]

    rest = [k for k in range(len(others)) if k not in order]
    assert adds(order) > adds(rest[:10])


def test_a_case_that_judges_little_where_all_is_right_tells_nothing() -> None:
    usual = CaseSpec("LSTM", 22, "bfloat16", T=7, N=2, I=3, H=8)
    assert not telling(usual)
    assert telling(replace(usual, T=1, activations=("HardSigmoid", "Relu", "Relu")))
    assert telling(replace(usual, type="float32"))
