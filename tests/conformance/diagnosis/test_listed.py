"""A list of known failures written from a run's diagnoses does not change the diagnoses of the next run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec
from onnxspec.conformance.diagnosis.explainer import Explainer, explained
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.expected.entries import Entry
from onnxspec.conformance.results.result import result_of
from onnxspec.reference import FAULTS, Node, evaluate
from onnxspec.reference.faults.computing import layered
from onnxspec.reference.faults.fault import Compute
from onnxspec.reference.recurrent.computation import computation_of

SPEC = CaseSpec("GRU", 14, T=3, N=2, direction="reverse", initial="h", outputs=("Y", "Y_h"))
EXPLAINING = ("initial-h.ignored", "initial-states.reverse-zero")
"""Two faults that explain the same case, since its direction is reverse."""


def without_state(node: Node, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
    outputs = evaluate(node, {**inputs, "initial_h": np.zeros_like(inputs["initial_h"])})
    return {name: array.astype(np.float32) for name, array in outputs.items()}


def seen(spec: CaseSpec, target: Callable[..., Any] = without_state) -> CaseRun:
    probe = SpecProbe(spec)
    prepared = probe.prepare()
    outcomes = tuple(staged_outcome(trial, target) for trial in prepared.trials)
    return CaseRun(probe, prepared, outcomes, judge(prepared.trials, outcomes))


@pytest.mark.parametrize("listed", EXPLAINING)
def test_of_faults_that_explain_a_case_the_one_that_is_listed_for_it_is_named(listed: str) -> None:
    case_run = seen(SPEC)
    (other,) = set(EXPLAINING) - {listed}
    entries = (
        Entry("", "GRU", cases=("another-case",), faults=(other,)),
        Entry("", "GRU", cases=(case_run.probe.id,), faults=(listed,)),
    )
    kept = Kept()
    kept.offer(case_run)
    result = result_of(case_run.probe, "staged", case_run.judgement, 0.0, None)
    names = explained([result], {case_run.probe.id: case_run.probe}, kept, "standard", entries)
    assert names == {case_run.probe.id: (listed,)}
    assert Explainer("standard", 3000, entries).explain(case_run) == (listed,)


def test_a_fault_that_is_listed_for_a_case_and_does_not_explain_it_is_not_named() -> None:
    case_run = seen(SPEC)
    entries = (Entry("", "GRU", cases=(case_run.probe.id,), faults=("clip.ignored",)),)
    names = Explainer("standard", 3000, entries).explain(case_run)
    assert names
    assert "clip.ignored" not in names


@pytest.mark.parametrize("ids", list(permutations(("outputs.last-position", "lengths.reverse-flips-tensor"))))
def test_faults_of_one_case_are_listed_in_any_order(ids: tuple[str, str]) -> None:
    """Both faults change outputs, so that the result depends on the order in which they are made."""
    made = [FAULTS["outputs.last-position"], FAULTS["lengths.reverse-flips-tensor"]]

    def target(node: Node, inputs: Mapping[str, NDArray[Any]]) -> Mapping[str, NDArray[Any]]:
        outputs = layered(Compute(), made, {})(computation_of(node, inputs))
        return {name: outputs[name].astype(np.float32) for name in node.outputs}

    case_run = seen(CaseSpec("GRU", 14, T=4, N=3, direction="reverse", lengths="ragged", outputs=("Y", "Y_h")), target)
    entries = [Entry("", "GRU", faults=(id,)) for id in ids]
    assert {*Explainer("standard", 3000, entries).explain(case_run)} == {*ids}
