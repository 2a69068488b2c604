"""The suite proved against implementations that are known: honest ones pass, faulty ones do not, each by its name."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import Case, CaseSpec, build_case, operator_versions, profile
from onnxspec.conformance.findings import BIAS_ERRORS, BIAS_UNITS
from onnxspec.conformance.staged import Implementation, judge_staged
from onnxspec.conformance.verdict import FAILING, Judgement, Verdict
from onnxspec.reference import DEVIATIONS, FORMATS, Node, Readings, configure, evaluate, run_deviation
from onnxspec.reference.kernels import STYLES, Style, run_kernel

ALL = ("Y", "Y_h", "Y_c")
NOT_ACCUSED = {Verdict.PASS, Verdict.UNJUDGED}


@lru_cache(maxsize=1)
def core() -> tuple[Case, ...]:
    return tuple(build_case(spec) for op, version in operator_versions() for spec in profile("core", op, version))


def cases(every: int = 1, first: int = 0, **fields: Any) -> list[Case]:
    """Cases of core with these values of their fields; every so many of them."""
    return [c for c in core() if all(getattr(c.spec, n) == v for n, v in fields.items())][first::every]


def kernel(style: Style, readings: Readings | None = None) -> Implementation:
    return lambda node, inputs: run_kernel(node, inputs, style, readings)


def deviation(id: str) -> Implementation:
    return lambda node, inputs: run_deviation(DEVIATIONS[id], node, inputs)


# Honest kernels.


@pytest.mark.parametrize(("position", "style"), list(enumerate(STYLES.values())), ids=list(STYLES))
def test_honest_kernels_are_not_accused(position: int, style: Style) -> None:
    for case in cases(every=5, first=position % 5):
        found = judge_staged(case, kernel(style))
        assert found.verdict in NOT_ACCUSED, found.message
        assert found.worst <= 1
        assert "outputs-differ-from-twin" not in found.flags


def test_every_case_of_core_is_judged() -> None:
    empty = 0
    for case in core():
        found = judge_staged(case, kernel(STYLES["library"]))
        assert found.verdict is Verdict.PASS, case.spec.id
        empty += not found.judged
        # The run before the case's own has no twin; without Y its late steps have too wide a radius.
        if case.spec.data not in ("nan-row", "inf-row") and (case.twin is None or case.spec.reruns == "none"):
            assert found.judged == found.elements, case.spec.id
    assert empty <= 2  # batches without rows


def test_flushing_kernels_pass_by_their_class() -> None:
    for case in cases(every=6):
        found = judge_staged(case, kernel(replace(STYLES["stored-sums"], flushes=True)), "flushing")
        assert found.verdict in NOT_ACCUSED, found.message


@pytest.mark.parametrize("position", range(4))
def test_every_reading_that_a_case_touches_passes(position: int) -> None:
    followed = 0
    for case in core():
        feed = case.trial.feeds[-1]
        possible = list(Readings().alternatives(configure(case.trial.node, feed.inputs).touched))
        if len(possible) <= position + 1:
            continue
        followed += 1
        found = judge_staged(case, kernel(STYLES["blocks"], possible[position + 1]))
        assert found.verdict in NOT_ACCUSED, (possible[position + 1], found.message)
    assert followed


def test_state_may_be_wider_than_what_is_shown_at_any_length() -> None:
    spec = CaseSpec("LSTM", 22, "bfloat16", T=60, N=2, I=3, H=9, outputs=ALL, bias=True)
    found = judge_staged(build_case(spec), kernel(STYLES["wide-state"]))
    assert found.verdict is Verdict.PASS
    assert found.judged == found.elements


# Faults.

SEEN_ELSEWHERE = {
    # A convention alone is no failure.
    "lstm.padding.state-repeated",
}
STRUCTURAL = [d.id for d in DEVIATIONS.values() if d.structural and d.id not in SEEN_ELSEWHERE]


def _effort(case: Case) -> tuple[int, int]:
    """Few readings first, for each multiplies the work of a verdict; then many features, so that faults show early."""
    return len(configure(case.trial.node, case.trial.feeds[-1].inputs).touched), -len(case.spec.marks)


def _shows(id: str, case: Case) -> bool:
    """Whether the fault changes anything in a case: the rest need no verdict."""
    feed = case.trial.feeds[-1]
    right, wrong = evaluate(case.trial.node, feed.inputs), run_deviation(DEVIATIONS[id], case.trial.node, feed.inputs)
    return any(not np.array_equal(wrong[n], right[n].astype(wrong[n].dtype)) for n in wrong)


@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "bfloat16"])
@pytest.mark.parametrize("id", STRUCTURAL)
def test_a_structural_fault_fails_a_case_of_core_in_every_type(id: str, kind: str) -> None:
    for case in sorted(cases(type=kind), key=_effort):
        found = judge_staged(case, deviation(id)) if _shows(id, case) else None
        if found is not None and found.verdict in (Verdict.WRONG, Verdict.MALFORMED):
            return
    pytest.fail("no case of core fails")


def test_a_broken_convention_is_a_flag() -> None:
    flagged = 0
    for case in cases(every=3, lengths="ragged"):
        found = judge_staged(case, deviation("lstm.padding.state-repeated"))
        assert found.verdict not in FAILING
        if found.flags == ("unconventional",):
            flagged += 1
            assert (found.reason, found.clause) == ("padding", "lstm.padding.zero")
    assert flagged > 5


def test_the_hidden_state_that_is_not_the_last_of_Y_is_named() -> None:
    spec = CaseSpec("LSTM", 14, direction="bidirectional", T=4, N=3, I=2, H=5, lengths="ragged", outputs=ALL)
    found = judge_staged(build_case(spec), deviation("lstm.outputs.last-row-of-tensor"))
    assert found.verdict is Verdict.WRONG
    assert found.clause == "lstm.outputs.last-hidden"
    assert found.where is not None
    assert found.where["output"] == "Y_h"


def test_one_unit_between_the_hidden_state_and_the_last_of_Y_may_be_two_roundings_but_more_is_wrong() -> None:
    case = build_case(CaseSpec("LSTM", 14, T=2, N=2, I=2, H=3, outputs=("Y", "Y_h")))

    def off(units: int) -> Implementation:
        def run(node: Node, inputs: Any) -> Any:
            outputs = run_kernel(node, inputs, STYLES["library"])
            for _ in range(units):
                outputs["Y_h"] = np.nextafter(outputs["Y_h"], np.float32(np.inf))
            return outputs

        return run

    assert judge_staged(case, off(1)).verdict is Verdict.PASS
    assert judge_staged(case, off(3)).verdict in FAILING


@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("outputs", [("", "Y_h", "Y_c"), ("", "Y_h"), ("", "", "Y_c")], ids=["both", "Y_h", "Y_c"])
def test_outputs_that_depend_on_what_is_asked_for_are_found(outputs: tuple[str, ...], kind: str) -> None:
    spec = CaseSpec("LSTM", 14, kind, T=4, N=3, I=2, H=5, lengths="ragged", outputs=outputs)
    found = judge_staged(build_case(spec), deviation("lstm.outputs.depend-on-request"))
    assert found.verdict is Verdict.WRONG
    assert "outputs-differ-from-twin" in found.flags
    # The same kernel in a case with Y is right: there is nothing else to find.
    with_y = replace(spec, outputs=("Y", *outputs[1:]))
    assert judge_staged(build_case(with_y), deviation("lstm.outputs.depend-on-request")).verdict is Verdict.PASS


def test_a_fault_that_shows_only_where_everything_is_asked_for_is_found_by_the_twin() -> None:
    case = build_case(CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, outputs=("", "Y_h")))

    def spoils_y(node: Node, inputs: Any) -> Any:
        outputs = run_kernel(node, inputs, STYLES["library"])
        if "Y" in outputs:
            outputs["Y"][1] = 0
        return outputs

    assert judge_staged(case, spoils_y).verdict is Verdict.WRONG


# Accuracy: what is wrong by rounding alone is inaccurate, and has a name.

ROUNDED = [("tf32", "tf32", {"tf32"}), ("bfloat16", "bf16-math", {"bf16-math", "f16-math", "tf32"})]


@pytest.mark.parametrize(("operands", "named", "allowed"), ROUNDED, ids=["tf32", "bfloat16"])
def test_rounded_operands_are_inaccurate_by_name(operands: str, named: str, allowed: set[str]) -> None:
    rounding = kernel(Style("s", operands=operands, accumulator="float32"))
    found = [judge_staged(c, rounding) for c in cases(every=3, type="float32")]
    assert {j.verdict for j in found} <= {Verdict.INACCURATE, *NOT_ACCUSED}
    inaccurate = [j for j in found if j.verdict is Verdict.INACCURATE]
    assert len(inaccurate) > len(found) / 2
    assert {j.accuracy for j in inaccurate} <= allowed
    assert sum(j.accuracy == named for j in inaccurate) > len(inaccurate) / 2
    assert all(f"wider class {j.accuracy}" in j.message for j in inaccurate)


@pytest.mark.parametrize(("inner", "named"), [("float16", "f16-storage"), ("bfloat16", "bf16-storage")])
def test_a_runtime_that_computes_in_a_half_type_throughout_is_inaccurate(inner: str, named: str) -> None:
    def narrow(node: Node, inputs: Any) -> Any:
        attributes = {n: v for n, v in node.attributes.items() if n != "output_sequence"}
        half = {n: a if n == "sequence_lens" else a.astype(FORMATS[inner].dtype) for n, a in inputs.items()}
        outputs = run_kernel(Node("LSTM", 22, attributes, node.outputs), half, STYLES["stored-sums-edge"])
        return {n: a.astype(np.float32) for n, a in outputs.items()}

    found = [judge_staged(c, narrow) for c in cases(every=3, type="float32") if c.spec.version > 1]
    assert Verdict.WRONG not in {j.verdict for j in found}
    assert sum(j.accuracy == named for j in found) > len(found) / 2


# Drift: what hides inside each radius shows in the mean of signed errors.


def bias(implementation: Implementation, chosen: Iterable[Case]) -> dict[str, tuple[float, float, float]]:
    """Mean signed error, the same towards larger magnitude, and their standard error, in u, by type."""
    sums: dict[str, Any] = defaultdict(lambda: np.zeros(4))
    for case in chosen:
        found: Judgement = judge_staged(case, implementation)
        assert found.verdict is Verdict.PASS
        sums[case.spec.type] += found.error_sums
    return {kind: (s[0] / s[3], s[1] / s[3], math.sqrt(s[2]) / s[3]) for kind, s in sums.items()}


def is_biased(shift: float, scale: float, error: float) -> bool:
    return max(abs(shift), abs(scale)) > max(BIAS_UNITS, BIAS_ERRORS * error)


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_honest_kernels_are_not_biased(style: Style) -> None:
    for kind, found in bias(kernel(style), cases(data="numerics")).items():
        assert not is_biased(*found), kind


DRIFTING = {
    "forget-gate": deviation("lstm.drift.forget-gate"),
    "one-unit-low": deviation("lstm.drift.one-unit-low"),
}


@pytest.mark.parametrize("id", DRIFTING)
def test_drift_within_the_radius_is_a_bias_in_every_type(id: str) -> None:
    found = bias(DRIFTING[id], cases(data="numerics"))
    assert set(found) == set(FORMATS)
    for kind, statistic in found.items():
        assert is_biased(*statistic), kind
        assert max(map(abs, statistic[:2])) > 15 * statistic[2]


def test_storing_by_cutting_digits_off_is_a_bias() -> None:
    # Half types from float32 by dropping bits: never far enough for a radius, always towards zero.
    found = bias(kernel(Style("s", work="float32", truncates=True)), cases(data="numerics"))
    for kind in ("float16", "bfloat16"):
        shift, scale, error = found[kind]
        assert is_biased(shift, scale, error)
        assert scale < -0.5
