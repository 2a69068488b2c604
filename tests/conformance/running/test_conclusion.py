"""The end of a run: findings, results and summary count the same failures."""

from __future__ import annotations

from msgspec import structs

from onnxspec.cases import CaseSpec
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.running.conclusion import final_findings

LISTED, NEW = "lengths.ignored", "activations.backward-as-forward"
PROBES = [SpecProbe(CaseSpec("LSTM", 14, seed=number)) for number in range(5)]
BY_ID = {probe.id: probe for probe in PROBES}


def failing(number: int, why: str | None, *faults: str) -> Result:
    judgement = Judgement(Verdict.WRONG, reason="value")
    result = result_of(PROBES[number], "target", judgement, 0.0, why, "onnxspec explain")
    return structs.replace(result, diagnosis=faults)


def test_findings_count_what_is_new_in_the_final_results() -> None:
    """An experiment names a listed fault after the findings were made."""
    before = [failing(number, None, LISTED) for number in range(4)]
    after = [failing(number, "accepted", LISTED) for number in range(4)]
    (finding,) = final_findings(findings_of(before, BY_ID), after)
    assert (finding["new"], finding["expected"], finding["why"]) == (0, True, "accepted")
    after[3] = failing(3, None, LISTED)
    (finding,) = final_findings(findings_of(before, BY_ID), after)
    assert (finding["new"], finding["expected"]) == (1, False)


def test_the_new_cause_comes_first() -> None:
    results = [failing(number, "accepted", LISTED) for number in range(3)]
    results += [failing(3, None, LISTED, NEW), failing(4, None, NEW)]
    findings = final_findings(findings_of(results, BY_ID), results)
    assert [(finding["fault"], finding["new"]) for finding in findings] == [(NEW, 2), (LISTED, 1)]


def test_cases_of_a_finding_are_distinct() -> None:
    results = [failing(0, None, NEW), failing(1, None, NEW)]
    (finding,) = findings_of(results, BY_ID)
    finding["cases"] = finding["cases"] * 2
    (final,) = final_findings([finding], results)
    assert (final["cases"], final["new"]) == ([results[0].case, results[1].case], 2)
