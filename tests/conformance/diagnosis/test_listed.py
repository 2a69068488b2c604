"""A list of known failures written from a run's diagnoses does not change the diagnoses of the next run."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from onnxspec.cases import CaseSpec
from onnxspec.conformance.diagnosis.explainer import Explainer, explained
from onnxspec.conformance.results.expected.entries import Entry
from onnxspec.reference import Node

from .in_process import Arrays, case_run, conforming, making, results_on

SPEC = CaseSpec("GRU", 14, T=3, N=2, direction="reverse", initial="h", outputs=("Y", "Y_h"))
EXPLAINING = ("initial-h.ignored", "initial-states.reverse-zero")
"""Two faults that explain the same case, since its direction is reverse."""


def without_state(node: Node, inputs: Arrays) -> Arrays:
    return conforming(node, {**inputs, "initial_h": np.zeros_like(inputs["initial_h"])})


@pytest.mark.parametrize("listed", EXPLAINING)
def test_of_faults_that_explain_a_case_the_one_that_is_listed_for_it_is_named(listed: str) -> None:
    (other,) = set(EXPLAINING) - {listed}
    entries = (
        Entry("", "GRU", cases=("another-case",), faults=(other,)),
        Entry("", "GRU", cases=(SPEC.id,), faults=(listed,)),
    )
    assert explained(*results_on(without_state, [SPEC]), "standard", entries) == {SPEC.id: (listed,)}
    assert Explainer("standard", 3000, entries).explain(case_run(SPEC, without_state)) == (listed,)


def test_a_fault_that_is_listed_for_a_case_and_does_not_explain_it_is_not_named() -> None:
    entries = (Entry("", "GRU", cases=(SPEC.id,), faults=("clip.ignored",)),)
    names = Explainer("standard", 3000, entries).explain(case_run(SPEC, without_state))
    assert names
    assert "clip.ignored" not in names


@pytest.mark.parametrize("ids", list(permutations(("outputs.last-position", "lengths.reverse-flips-tensor"))))
def test_faults_of_one_case_are_listed_in_any_order(ids: tuple[str, str]) -> None:
    """Both faults change outputs, so that the result depends on the order in which they are made."""
    target = making("outputs.last-position", "lengths.reverse-flips-tensor")
    spec = CaseSpec("GRU", 14, T=4, N=3, direction="reverse", lengths="ragged", outputs=("Y", "Y_h"))
    entries = [Entry("", "GRU", faults=(id,)) for id in ids]
    assert {*Explainer("standard", 3000, entries).explain(case_run(spec, target))} == {*ids}
