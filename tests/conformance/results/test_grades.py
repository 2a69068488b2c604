"""Grades of targets: signed errors, which show the precision in digits, and levels of quantized outputs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from onnxspec.cases import Case, CaseSpec, build_case, profile
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import judge_staged, staged_outcome
from onnxspec.conformance.results.grades import (
    biased_types,
    biases,
    digits_left,
    graded_line,
    grades,
    level_records,
)
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.showing.evidence import evidence_of
from onnxspec.reference import FORMATS, Node, operator_for
from onnxspec.reference.kernels.kernel import STYLES, Style, run_kernel
from onnxspec.reports.evidence import read_exhibit

from ...recurrent import recurrent_versions

Arrays = dict[str, Any]


@cache
def graded() -> list[Case]:
    """Return the one-step accuracy cases of core."""
    specs = [spec for op, version in recurrent_versions() for spec in profile("core", op, version)]
    return [build_case(spec) for spec in specs if spec.graded and spec.op in ("LSTM", "GRU", "RNN")]


def results_of(run: Callable[[Node, Arrays], Arrays]) -> list[Result]:
    return [result_of(SpecProbe(case.spec), "t", judge_staged(case, run), 0.0, None) for case in graded()]


def cut(lost: int, style: str = "forward") -> Callable[[Node, Arrays], Arrays]:
    """Return a kernel that truncates ``lost`` digits of each state that it stores."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        outputs = run_kernel(node, inputs, STYLES[style])
        return {name: _shortened(array, lost) for name, array in outputs.items()}

    return run


def _shortened(array: Any, lost: int) -> Any:
    return _to_digits(array.astype(float), FORMATS[array.dtype.name].precision - lost).astype(array.dtype)


def _to_digits(numbers: Any, digits: int) -> Any:
    fraction, exponent = np.frexp(numbers)
    return np.ldexp(np.trunc(np.ldexp(fraction, digits)), exponent - digits)


@pytest.mark.parametrize("lost", [2, 3])
def test_a_state_cut_by_some_digits_is_graded_in_digits(lost: int) -> None:
    by_type = biases(results_of(cut(lost)))
    for dtype in ("float32", "float64", "float16", "bfloat16"):
        if dtype == "bfloat16" and lost == 3:
            continue  # beyond the bound in places, which fails
        assert by_type[dtype]["biased"], dtype
        assert abs(by_type[dtype]["digits"] - (FORMATS[dtype].precision - lost)) < 0.7, by_type[dtype]
    assert biased_types(results_of(cut(2)))["float32"].endswith(" of 24 digits")


@pytest.mark.parametrize("style", STYLES.values(), ids=lambda s: s.name)
def test_no_conforming_variant_is_graded_so(style: Style) -> None:
    assert biased_types(results_of(lambda node, inputs: run_kernel(node, inputs, style))) == {}


def test_digits_follow_from_the_mean_of_what_is_cut_off() -> None:
    random = np.random.default_rng(1)
    exact = 2 ** random.uniform(-4, 4, 100_000)
    for lost in (0, 1, 2, 5):
        unit = FORMATS["float32"].unit
        off = np.abs(_to_digits(exact, 24 - lost) - exact)
        mean = off.sum() / (unit * exact).sum()
        assert abs(digits_left(float(mean), "float32") - (24 - lost)) < 0.2
    assert digits_left(1e4, "bfloat16") == 0.0  # run.json cannot hold fewer


def test_a_biased_type_is_not_graded_strict() -> None:
    right, leaning = results_of(cut(0, "wide")), results_of(cut(2, "wide"))
    assert grades([r for r in right if r.strict], "standard")["float32"] == "strict"
    assert grades([r for r in leaning if r.strict], "standard")["float32"] == "standard"


# Grades of quantized outputs, in levels

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
    plain = replace(right(), features=())  # without levels
    results = [plain, right(), right(), off(1), off(34), off(2000, Verdict.WRONG)]
    (record,) = level_records(results)
    assert (record["operator"], record["bits"], record["within"]) == ("GRU", 16, 34)
    assert (record["off"], record["wrong"]) == ([[0, 2], [1, 1], [34, 1]], [[2000, 1]])
    line = "levels of 16 bits: at most 34 levels off (4 cases, 2 of them by one or more); wrong by up to 2,000 (1 case)"
    assert graded_line([record], 16) == line
    assert graded_line([record], 8) == ""


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
    (tmp_path / "evidence").mkdir()
    whole = {**record, "case": spec.id, "operator": "GRU-14"}
    (tmp_path / "evidence" / "evidence.json").write_text(json.dumps(whole), encoding="utf-8")
    exhibit = read_exhibit(tmp_path, "evidence")
    assert exhibit is not None
    assert exhibit.evidence.codecs["Y"].startswith("uint8, scale 0.0")
    parting = exhibit.evidence.numbers and exhibit.evidence.numbers.parting
    assert parting
    assert (parting.off, parting.right) == (4, str(int(parting.got or 0) ^ 4))
    assert exhibit.evidence.codecs["W"].partition(", ")[2].startswith("9 channels along axis 1, scale 0.0")
