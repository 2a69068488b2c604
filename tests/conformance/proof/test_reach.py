"""How far cases reach that nobody has measured."""

from __future__ import annotations

from dataclasses import replace

from onnxspec.cases import CaseSpec
from onnxspec.cases.profiles import pool_of
from onnxspec.conformance.proof import Reach, faults_of, shown_by, tally


def test_what_cases_show_is_among_what_they_reach_and_nearly_all_of_it() -> None:
    pool = pool_of("GRU")
    cases = pool.cases[40:100]
    reach = Reach()
    for case in cases:
        reach.add(case.spec)
    shown = tally("GRU", ([(case.spec, shown_by(case, pool.parts))] for case in cases)).score(faults_of("GRU"))
    pairs, triples = reach.scores["GRU"]
    assert (pairs[1], triples[1]) == (shown.pairs[1], shown.triples[1])
    assert 0.98 * pairs[0] < shown.pairs[0] <= 1.01 * pairs[0]
    assert 0.95 * triples[0] < shown.triples[0] <= 1.01 * triples[0]
    assert reach.text.startswith("GRU 97.")


def test_a_name_in_another_letter_case_is_the_same_function_and_an_illegal_case_reaches_nothing() -> None:
    reach = Reach()
    assert not reach.text
    spec = CaseSpec("RNN", 14, type="float32", activations=("scaledtanh",), alpha=(0.5,), beta=(0.5,))
    reach.add(replace(spec, illegal="layout-7"))
    assert not reach.scores
    reach.add(spec)
    assert reach.scores["RNN"][0][0] > 0
