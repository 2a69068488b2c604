"""Diagnosis of faults made only in some places: by an unknown rule, or beyond some number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.staging import findings_on
from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.conformance.diagnosis.failing_case import DIAGNOSED, FailingCase, failing_case_of
from onnxspec.conformance.diagnosis.match import Matcher
from onnxspec.conformance.diagnosis.observed_case import ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import FAULTS, Node, evaluate, fault_named, run_fault

Arrays = Mapping[str, NDArray[Any]]
Target = Callable[[Node, Arrays], Arrays]

SPECS = [
    spec
    for spec in profile("core", "GRU", 14)
    if spec.type == "float32" and spec.T * spec.N * spec.H < 1000 and spec.N > 2 and spec.reruns == "none"
    if spec.outputs == ("Y", "Y_h") and spec.data == "dense" and not spec.illegal
][:16]


def named(target: Target) -> set[tuple[str, ...]]:
    """Return the explanations of a target's failing cases; an empty one for those without a name."""
    failing: list[FailingCase] = []
    for spec in SPECS:
        case, probe = build_case(spec), SpecProbe(spec)
        outcome = staged_outcome(case.trial, target)
        judgement = judge(case.trials[:1], [outcome])
        if judgement.verdict in DIAGNOSED:
            failing_case = failing_case_of(spec.id, case.trial, outcome, probe.clauses, probe.size)
            failing += [failing_case] if failing_case is not None else []
    assert len(failing) > 4
    explained = Matcher(ObservedCases(TargetEvidence("standard")), 20_000).names(failing)
    return {explained.get(failing_case.case, ()) for failing_case in failing}


def in_rows(id: str, first: int) -> Target:
    """Return a target that makes a fault only from row ``first`` on."""
    fault = fault_named(id)
    assert fault is not None

    def run(node: Node, inputs: Arrays) -> Arrays:
        right, wrong = evaluate(node, inputs), run_fault(fault, node, inputs)
        outputs = {}
        for name, array in right.items():
            axis = 0 if node.attributes.get("layout") else array.ndim - 2
            rows = np.arange(array.shape[axis]).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
            outputs[name] = np.where(rows >= first, wrong[name], array).astype(inputs["X"].dtype)
        return outputs

    return run


def test_a_fault_is_named_where_it_is_made_everywhere_and_not_in_some_rows() -> None:
    assert named(in_rows("steps.twice", 1)) == {()}
    assert named(in_rows("steps.twice", 0)) == {("steps.twice",)}


@pytest.mark.long
def test_zeros_in_some_places_are_no_name() -> None:
    """Zeros can have many causes."""

    def zeros(node: Node, inputs: Arrays) -> Arrays:
        outputs = {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()}
        return {**outputs, "Y": np.where(np.arange(outputs["Y"].shape[-1]) % 3 == 1, 0, outputs["Y"])}

    assert not any("outputs.zero" in id for names in named(zeros) for id in names)


@pytest.mark.long
def test_noise_in_some_places_is_no_name() -> None:
    def noisy(node: Node, inputs: Arrays) -> Arrays:
        outputs = {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()}
        dice = np.random.default_rng(7)
        Y = outputs["Y"]
        return {**outputs, "Y": np.where(dice.random(Y.shape) < 0.2, dice.uniform(-1, 1, Y.shape), Y).astype(Y.dtype)}

    assert named(noisy) == {()}


def test_a_state_goes_wrong_in_y_and_in_the_last_state_alike() -> None:
    """A last state that is one step old is not a skipped step, since Y has that step."""
    assert not any(
        id.startswith("steps.skipped") for names in named(in_rows("outputs.state-before-last", 1)) for id in names
    )


def length_in_a_byte(model: bytes) -> Callable[[Mapping[str, Any]], list[NDArray[Any]]]:
    """Return a kernel that stores sequence_lens in one byte."""
    read = read_model(model)

    def run(feeds: Mapping[str, Any]) -> list[NDArray[Any]]:
        inputs = read.bind(feeds)
        if inputs.get("sequence_lens") is not None:
            inputs = {**inputs, "sequence_lens": inputs["sequence_lens"] % 256}
        outputs = evaluate(read.node, inputs)
        return [outputs[name].astype(inputs["X"].dtype) for name in read.node.outputs]

    return run


def test_lengths_in_a_byte_are_named() -> None:
    specs: list[CaseSpec] = [
        spec
        for op in ("GRU", "LSTM", "RNN")
        for spec in profile("core", op, 22)
        if spec.T > 250 or (spec.T * spec.H < 60 and spec.lengths == "ragged" and spec.type == "float32")
        if not spec.illegal
    ]
    findings, results, _ = findings_on(length_in_a_byte, specs)
    assert {r.diagnosis for r in results if r.verdict in DIAGNOSED} == {("lengths.modulo-256",)}
    assert [f["fault"] for f in findings if f["verdict"] in {v.value for v in DIAGNOSED}] == ["lengths.modulo-256"]


def test_runs_of_a_session_stand_in_the_order_in_which_they_were_made() -> None:
    """A session runs all its feeds once, then all again: stale memory comes from the run before."""
    spec = next(s for s in profile("core", "LSTM", 14) if s.reruns == "data" and not s.illegal)
    case, probe = build_case(spec), SpecProbe(spec)
    right = [evaluate(case.trial.node, feed.inputs) for feed in case.trial.feeds]
    lists = tuple(
        tuple(tuple(number * outputs[name] for name in case.trial.node.outputs) for number in (1, 2))
        for outputs in right
    )
    returned = tuple((0, 1) for _ in lists)
    failing_case = failing_case_of(
        spec.id, case.trial, Outcome("x", "ran", outputs=lists, returned=returned), probe.clauses, (0.0, 0)
    )
    assert failing_case is not None
    assert [run.inputs for run in failing_case.runs] == [feed.inputs for feed in case.trial.feeds] * 2
    name = case.trial.node.outputs[0]
    largest = [np.abs(run.outputs[name]).max() for run in failing_case.runs]
    assert largest == [k * np.abs(outputs[name]).max() for k in (1, 2) for outputs in right]


def test_the_first_fault_of_a_family_stands_in_the_table_and_the_others_are_named() -> None:
    assert "lengths.modulo-16" in FAULTS
    assert "lengths.modulo-256" not in FAULTS
    fault = fault_named("lengths.modulo-256")
    assert fault is not None
    assert fault.summary.startswith("Keeps lengths in a number that holds less than 256")
