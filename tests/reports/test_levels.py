"""Tests of the grade of quantized outputs, and its line on a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.grades import graded_line, level_records
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.showing.evidence import evidence_of
from onnxspec.reference import Node, operator_for
from onnxspec.reports.evidence import read_exhibit

PROBE = SpecProbe(CaseSpec("GRU", 14, T=2, N=1, I=2, H=3), wrap="qdq-u16")


def right() -> Result:
    (trial,) = PROBE.prepare().trials
    outcome = staged_outcome(trial, lambda node, inputs: operator_for(node).answer(node, inputs))
    return result_of(PROBE, "target", judge([trial], [outcome]), 0.0, None)


def off(levels: int, verdict: Verdict = Verdict.INACCURATE) -> Result:
    result = right()
    assert result.where is not None
    return replace(result, verdict=verdict, where={**result.where, "units": float(levels)})


def test_right_and_wrong_outputs_are_counted_apart() -> None:
    results = [right(), right(), off(1), off(34), off(2000, Verdict.WRONG)]
    (record,) = level_records(results)
    assert (record["operator"], record["bits"], record["within"]) == ("GRU", 16, 34)
    assert (record["off"], record["wrong"]) == ([[0, 2], [1, 1], [34, 1]], [[2000, 1]])
    line = "levels of 16 bits: within 34 levels (4 cases, 2 of them by one or more); wrong by up to 2,000 (1 case)"
    assert graded_line([record], 16) == line
    assert graded_line([record], 8) == ""


def test_a_case_without_levels_has_no_grade() -> None:
    spec = CaseSpec("GRU", 14, T=2, N=1, I=2, H=3)
    trial = build_case(spec).trial
    outcome = staged_outcome(trial, lambda node, inputs: operator_for(node).answer(node, inputs))
    plain = result_of(SpecProbe(spec), "target", judge([trial], [outcome]), 0.0, None)
    assert level_records([plain]) == []


def test_evidence_has_scales_and_zero_points_and_tells_levels_as_levels(tmp_path: Path) -> None:
    spec = CaseSpec(
        *("GRU", 14, "float32"), T=3, N=2, I=2, H=3, outputs=("Y", "Y_h"), weights="initializer",
        quantization="u8", channels="rows",
    )  # fmt: skip
    trial = build_case(spec).trial

    def four_off(node: Node, inputs: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        answer = operator_for(node).answer(node, inputs)
        return {name: array ^ np.uint8(4) for name, array in answer.items()}

    outcome = staged_outcome(trial, four_off)
    feeds = [feed.fed for feed in trial.feeds]
    record = evidence_of(trial.model, feeds, [trial], judge([trial], [outcome]), [outcome], "standard")
    assert record["codecs"]["Y"].startswith("uint8, scale 0.0")
    whole = {**record, "case": spec.id, "operator": "GRU-14"}
    (tmp_path / "evidence").mkdir()
    (tmp_path / "evidence" / "evidence.json").write_text(json.dumps(whole), encoding="utf-8")
    exhibit = read_exhibit(tmp_path, "evidence")
    assert exhibit is not None
    assert exhibit.evidence.numbers
    parting = exhibit.evidence.numbers.parting
    assert parting is not None
    assert (parting.off, parting.right) == (4, str(int(parting.got or 0) ^ 4))
    assert exhibit.evidence.codecs["W"].partition(", ")[2].startswith("9 channels along axis 1, scale 0.0")
