"""Targets in this process: functions of a node and its inputs, the cases that fail on them, and their explanations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from benchmarks.staging import Opened, Session, of_faults
from onnxspec.conformance.diagnosis.explainer import failing_case_of_tried
from onnxspec.conformance.diagnosis.failing_case import DIAGNOSED, FailingCase
from onnxspec.conformance.diagnosis.match import Matcher
from onnxspec.conformance.diagnosis.observed_case import ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import Fault, Node, evaluate, fault_named
from onnxspec.reference.faults.computing import layered
from onnxspec.reference.faults.fault import Compute
from onnxspec.reference.recurrent.computation import computation_of

from ..judging.implementations import conforming as conforming

Arrays = Mapping[str, NDArray[Any]]
Target = Callable[[Node, Arrays], Arrays]

Feeds = dict[str, Any]


class Crash(Exception):
    """End of the target's process."""


def rounded(outputs: Arrays, inputs: Arrays) -> dict[str, NDArray[Any]]:
    """Return outputs in the type of X."""
    return {name: array.astype(inputs["X"].dtype) for name, array in outputs.items()}


def unknown(node: Node, inputs: Arrays) -> Arrays:
    """Make a fault that is in no table."""
    return rounded({name: 0.9 * array + 0.01 for name, array in evaluate(node, inputs).items()}, inputs)


def fault_called(id: str) -> Fault:
    fault = fault_named(id)
    assert fault is not None, id
    return fault


def making(*ids: str) -> Target:
    """Return a target that makes several faults at once, in every case."""
    faults = [fault_called(id) for id in ids]

    def run(node: Node, inputs: Arrays) -> Arrays:
        applying = [fault for fault in faults if fault.applies(node.op_type, node.since_version)]
        with np.errstate(all="ignore"):
            outputs = layered(Compute(), applying, {})(computation_of(node, inputs))
            return rounded({name: outputs[name] for name in node.outputs}, inputs)

    return run


def case_run(case: Any, target: Target | Fault) -> CaseRun:
    """Return the run of a case, or of a probe, on a target."""
    probe = case if isinstance(case, SpecProbe) else SpecProbe(case)
    prepared, outcomes = probe.prepare(), []
    for trial in prepared.trials:
        try:
            outcomes.append(staged_outcome(trial, target))
        except Crash as crash:
            outcomes.append(Outcome(trial.key, "crashed", message=str(crash), signal="SIGSEGV"))
    return CaseRun(probe, prepared, tuple(outcomes), prepared.judge(outcomes, "standard"))


def results_on(target: Target | Fault, specs: Iterable[Any]) -> tuple[list[Result], dict[str, Probe], Kept]:
    """Return the results of a target, its probes by id, and its outputs in memory."""
    results, probes, kept = [], {}, Kept()
    for spec in specs:
        run = case_run(spec, target)
        kept.offer(run)
        probes[run.probe.id] = run.probe
        results.append(result_of(run.probe, "staged", run.judgement, 0.0, None))
    return results, probes, kept


def failing_case(case: Any, target: Target | Fault) -> FailingCase:
    """Return the run of a failing case, or of its probe, as the matcher sees it."""
    failing = failing_case_of_tried(case_run(case, target))
    assert failing is not None
    return failing


def failing_cases(target: Target | Fault, specs: Iterable[Any]) -> list[FailingCase]:
    """Return the failing cases of a target that are diagnosed, at least one."""
    runs = [case_run(spec, target) for spec in specs]
    cases = [failing_case_of_tried(run) for run in runs if run.judgement.verdict in DIAGNOSED]
    failing = [case for case in cases if case is not None]
    assert failing
    assert len(failing) == len(cases)
    return failing


def matcher(effort: float = 0, known: Iterable[Fault] = (), evidence: TargetEvidence | None = None) -> Matcher:
    return Matcher(ObservedCases(evidence or TargetEvidence("standard")), effort, [*known])


def named(
    cases: list[FailingCase], effort: float = 20_000, evidence: TargetEvidence | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that together explain each case."""
    return matcher(effort, evidence=evidence).names(cases)


def running(run: Callable[[Any, Session, Feeds], list[Any]], *ids: str) -> Opened:
    """Return a target for findings: a function of a graph, of a session that makes these faults, and of the feeds."""
    making_faults = of_faults(ids)

    def opened(model: bytes) -> Session:
        graph, session = onnx.load_model_from_string(model).graph, making_faults(model)
        return lambda feeds: run(graph, session, feeds)

    return opened
