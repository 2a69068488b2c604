"""Verdicts: precedence, interpretations, all-outputs runs, conventions and undefined results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import Case, CaseSpec, build_case, profile
from onnxspec.cases.profiles import written_cases
from onnxspec.conformance.judging.judgement import FAILING, Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge, judge_each
from onnxspec.conformance.proof.staged import judge_staged, staged_outcome
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import (
    FAULTS,
    WIDER_PRESETS,
    Interpretations,
    Node,
    clause_named,
    evaluate,
    run_fault,
)
from onnxspec.reference.numbers.accuracy import any_of
from onnxspec.reference.recurrent.expectation import Expecting

Array = NDArray[Any]
Outputs = Mapping[str, Array]

ALL = ("Y", "Y_h", "Y_c")
SHAPE: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5}
SMALL = CaseSpec("LSTM", 14, **SHAPE, outputs=ALL)
RAGGED = replace(SMALL, lengths="ragged", direction="bidirectional", initial="all")
EMPTY = replace(SMALL, lengths="empty", initial="all")


def conforming(node: Node, inputs: Outputs, interpretations: Interpretations | None = None) -> dict[str, Array]:
    return {n: a.astype(inputs["X"].dtype) for n, a in evaluate(node, inputs, interpretations).items()}


def faulty(name: str) -> Callable[[Node, Outputs], dict[str, Array]]:
    return lambda node, inputs: run_fault(FAULTS[name], node, inputs)


def outcome(case: Case, **changes: Any) -> Outcome:
    """Return the outcome of a conforming target, with changes."""
    return replace(staged_outcome(case.trial, conforming), **changes)


def with_outputs(case: Case, *runs: Mapping[str, Array]) -> Outcome:
    """Return the outcome of a case with one feed whose repeated runs returned ``runs``."""
    names = case.trial.node.outputs
    return outcome(case, outputs=(tuple(tuple(run[name] for name in names) for run in runs),))


def spoilt(case: Case, name: str, change: Callable[[Array], Array]) -> Judgement:
    """Return the verdict on a target that changes one output."""
    right = conforming(case.trial.node, case.trial.feeds[-1].inputs)
    return judge(case.trials, [with_outputs(case, {**right, name: change(right[name])})])


def test_of_a_session_with_several_runs_the_one_that_is_wrong_is_named() -> None:
    case = build_case(CaseSpec("RNN", 14, T=3, outputs=("Y", "Y_h"), reruns="data"))
    first, second = (tuple(repeats[0]) for repeats in outcome(case).outputs)
    spoilt_second = (second[0] + np.float32(0.5), *second[1:])
    judgement = judge(case.trials, [outcome(case, outputs=((first,), (spoilt_second,)))])
    assert "(run 2 of 2, step 0, forward, row 0)" in judgement.message
    lone = build_case(CaseSpec("RNN", 14, T=3, outputs=("Y", "Y_h")))
    assert "(step 0, forward, row 0)" in spoilt(lone, "Y", lambda array: array + np.float32(0.5)).message


# Precedence


def test_the_order_of_verdicts_and_which_of_them_fail() -> None:
    names = "unavailable not-run not-judged crashed timed-out fallback unsupported not-tried not-rejected malformed"
    names += " input-modified unstable wrong inaccurate"
    assert [verdict.value for verdict in Verdict] == [*names.split(), "inconclusive", "pass"]
    others = {"unavailable", "not-run", "not-judged", "fallback", "unsupported", "not-tried"}
    assert {v.value for v in FAILING} == set(names.split()) - others


@pytest.mark.parametrize("status", ["unavailable", "crashed", "timed-out", "fell-back", "refused"])
def test_what_did_not_run_is_not_looked_into(status: str) -> None:
    case = build_case(SMALL)
    judgement = judge(
        case.trials, [outcome(case, status=status, phase="load", message="m", malformed="x", changed=("X",))]
    )
    verdict = {"fell-back": "fallback", "refused": "unsupported"}.get(status, status)
    assert (judgement.verdict.value, judgement.message, judgement.judged) == (verdict, "m", 0)


def test_the_first_of_several_faults_decides() -> None:
    case = build_case(SMALL)
    right = conforming(case.trial.node, case.trial.feeds[-1].inputs)
    zero = {name: np.zeros_like(array) for name, array in right.items()}
    both = with_outputs(case, right, zero)
    everything = replace(both, malformed="returned a dog", changed=("X",))
    assert judge(case.trials, [everything]).verdict is Verdict.MALFORMED
    assert judge(case.trials, [replace(everything, malformed="")]).verdict is Verdict.INPUT_MODIFIED
    assert judge(case.trials, [both]).verdict is Verdict.UNSTABLE
    assert judge(case.trials, [with_outputs(case, zero)]).verdict is Verdict.WRONG
    assert judge(case.trials, [with_outputs(case, zero, {**zero, "Y": zero["Y"] + 1})]).verdict is Verdict.WRONG
    assert judge(case.trials, [with_outputs(case, right)]).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda a: a[..., np.newaxis], "shape"),
        (lambda a: a.reshape(-1), "shape"),
        (lambda a: a.swapaxes(0, 2), "shape"),
        (lambda a: a.astype(np.float64), "type"),
        (lambda a: a.astype(np.int64), "type"),
        (lambda a: None, "form"),
    ],
)
@pytest.mark.parametrize("name", ALL)
def test_outputs_of_another_form_are_malformed(name: str, change: Callable[[Array], Array], reason: str) -> None:
    judgement = spoilt(build_case(SMALL), name, change)
    assert (judgement.verdict, judgement.reason) == (Verdict.MALFORMED, reason)
    assert judgement.where == {"output": name, "index": None, "step": None}
    assert name in judgement.message


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_another_number_of_outputs_is_malformed(count: int) -> None:
    case = build_case(SMALL)
    (run,) = staged_outcome(case.trial, conforming).outputs[0]
    judgement = judge(case.trials, [outcome(case, outputs=(((*run, run[0])[:count],),))])
    assert (judgement.verdict, judgement.reason) == (Verdict.MALFORMED, "count")


# Values


def test_a_wrong_element_is_found_where_it_is() -> None:
    def nudge(array: Array) -> Array:
        array[2, 0, 1, 3] += np.float32(0.25)
        return array

    judgement = spoilt(build_case(SMALL), "Y", nudge)
    assert (judgement.verdict, judgement.reason) == (Verdict.WRONG, "value")
    assert judgement.where == {"output": "Y", "index": [2, 0, 1, 3], "step": 2}
    assert judgement.worst > 100
    assert judgement.message.startswith("Y[2, 0, 1, 3] (step 2, forward, row 1) is ")


def test_in_layout_1_the_step_is_the_second_index() -> None:
    def nudge(array: Array) -> Array:
        array[1, 2, 0, 3] += np.float32(0.25)
        return array

    judgement = spoilt(build_case(replace(SMALL, layout=1)), "Y", nudge)
    assert judgement.where == {"output": "Y", "index": [1, 2, 0, 3], "step": 2}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ALL)
def test_what_is_not_finite_where_it_must_be_has_a_reason_of_its_own(name: str, value: float) -> None:
    def spoil(array: Array) -> Array:
        array.flat[-1] = value
        return array

    judgement = spoilt(build_case(SMALL), name, spoil)
    assert (judgement.verdict, judgement.reason) == (Verdict.WRONG, "nonfinite")
    assert judgement.worst == np.inf


def test_coarse_arithmetic_is_inaccurate_with_the_class_that_explains_it() -> None:
    def rounded(node: Node, inputs: Outputs) -> dict[str, Array]:
        import ml_dtypes

        coarse = {n: a if a.dtype.kind == "i" else a.astype(ml_dtypes.bfloat16) for n, a in inputs.items()}
        wide = {n: a.astype(np.float32) if a.dtype == ml_dtypes.bfloat16 else a for n, a in coarse.items()}
        return conforming(node, wide)

    case = build_case(replace(SMALL, T=1, initial="all", data="numerics", H=8, N=8))
    judgement = judge_staged(case, rounded)
    assert judgement.verdict is Verdict.INACCURATE
    assert judgement.accuracy is not None
    assert judgement.message.endswith(f"right by the wider class {judgement.accuracy}")
    assert judgement.worst > 1
    assert judge_staged(case, rounded, judgement.accuracy).verdict is Verdict.PASS
    assert judge_staged(case, rounded, "tf32").verdict is Verdict.INACCURATE


def test_what_no_class_holds_is_asked_of_all_wider_ones_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six classes are tried if one of them may contain the result, and none if their union does not."""
    classes: list[str] = []

    def noted(self: Expecting, accuracy: str = "standard", interpretations: Interpretations | None = None) -> Any:
        classes.append(accuracy)
        return expecting(self, accuracy, interpretations)

    expecting = Expecting.__call__
    monkeypatch.setattr(Expecting, "__call__", noted)
    case = build_case(CaseSpec("RNN", 14, outputs=("Y", "Y_h")))
    right = conforming(case.trial.node, case.trial.feeds[0].inputs)
    wrong = {name: -array for name, array in right.items()}
    assert judge(case.trials, [with_outputs(case, wrong)]).verdict is Verdict.WRONG
    assert classes == ["standard", any_of(WIDER_PRESETS["float32"])]
    classes.clear()
    coarse = {name: (array * np.float32(1 + 2.0**-9)).astype(np.float32) for name, array in right.items()}
    coarse["Y_h"] = coarse["Y"][-1]
    assert judge(case.trials, [with_outputs(case, coarse)]).verdict in (Verdict.WRONG, Verdict.INACCURATE)
    assert {"tf32", "bf16-math"} & {*classes}


def test_only_one_step_cases_are_graded() -> None:
    assert judge_staged(build_case(SMALL), conforming).strict is None
    assert judge_staged(build_case(replace(SMALL, T=1, initial="all", data="numerics")), conforming).strict is True


# Conventions


@pytest.mark.parametrize("layout", [0, 1])
def test_padding_that_is_not_zero_passes_with_a_flag(layout: int) -> None:
    case = build_case(replace(RAGGED, layout=layout))
    judgement = judge_staged(case, faulty("padding.state-repeated"))
    assert (judgement.verdict, judgement.reason, judgement.flags) == (Verdict.PASS, "padding", ("unconventional",))
    assert judgement.clause == "lstm.padding.zero"
    assert judgement.where is not None
    step, row = judgement.where["step"], judgement.where["index"][0 if layout else 2]
    assert step >= case.trial.feeds[-1].inputs["sequence_lens"][row]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_padding_may_hold_anything(value: float) -> None:
    case = build_case(RAGGED)
    lengths = case.trial.feeds[-1].inputs["sequence_lens"]

    def spoil(array: Array) -> Array:
        for row, length in enumerate(lengths):
            array[length:, :, row] = value
        return array

    judgement = spoilt(case, "Y", spoil)
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ("unconventional",))


def test_a_convention_makes_nothing_inconclusive() -> None:
    """The reason is that bfloat16's bounds are as wide as the signal, whatever the values past the lengths are."""
    sizes: dict[str, int] = {"T": 10, "N": 9, "I": 5, "H": 33}
    spec = CaseSpec("RNN", 22, type="bfloat16", direction="bidirectional", **sizes, bias=True, lengths="ragged")
    spec = replace(spec, initial="all", outputs=("Y", "Y_h"), weights="initializer")
    judgement = judge_staged(build_case(spec), faulty("padding.state-repeated"))
    assert (judgement.verdict, judgement.reason, judgement.clause) == (Verdict.INCONCLUSIVE, "wide", None)
    assert judgement.flags == ("unconventional",)
    assert "convention" not in judgement.message


def test_a_fault_beside_unconventional_padding_is_still_a_fault() -> None:
    def spoil(node: Node, inputs: Outputs) -> dict[str, Array]:
        outputs = run_fault(FAULTS["padding.state-repeated"], node, inputs)
        return {**outputs, "Y_c": outputs["Y_c"] + np.float32(0.1)}

    assert judge_staged(build_case(RAGGED), spoil).verdict is Verdict.WRONG


@pytest.mark.parametrize("op", ["LSTM", "GRU", "RNN"])
@pytest.mark.parametrize("name", ["lengths.reverse-from-end", "lengths.reverse-one-early"])
def test_what_fails_a_case_breaks_a_clause_that_may_fail(name: str, op: str) -> None:
    # Reading padding, or skipping a step, breaks the consequences of sequence_lens; no convention is involved.
    outputs = ALL if op == "LSTM" else ALL[:2]
    judgement = judge_staged(build_case(replace(RAGGED, op=op, direction="reverse", outputs=outputs)), faulty(name))
    assert judgement.verdict is Verdict.WRONG
    assert clause_named(FAULTS[name].clause(op)).may_fail


# NaN and overflow


def losing_nan(node: Node, inputs: Outputs) -> dict[str, Array]:
    return {name: np.nan_to_num(array, nan=0.5) for name, array in conforming(node, inputs).items()}


def test_nan_that_is_lost_passes_with_a_flag_and_says_where_it_enters() -> None:
    case = build_case(replace(SMALL, data="nan-row"))
    assert judge_staged(case, conforming).flags == ()
    judgement = judge_staged(case, losing_nan)
    assert (judgement.verdict, judgement.reason, judgement.flags) == (Verdict.PASS, "nan", ("loses-nan",))
    assert judgement.clause == "lstm.nan.kept"
    assert judgement.where == {"output": "Y", "index": [2, 0, 1, 0], "step": 2}
    assert judgement.message.startswith("NaN enters at X[2, 1, 0]; Y[2, 0, 1, 0] is 0.5")
    assert judgement.message.endswith("lost in Y (10 of 10), Y_h (5 of 5), Y_c (5 of 5)")


def test_where_nothing_else_can_be_judged_nan_that_is_lost_is_flagged_all_the_same() -> None:
    judgement = judge_staged(build_case(replace(SMALL, N=1, T=1, data="nan-row", outputs=("Y",))), losing_nan)
    assert (judgement.verdict, judgement.flags) == (Verdict.INCONCLUSIVE, ("loses-nan",))


def test_a_failure_that_loses_nan_too_keeps_its_own_words() -> None:
    def spoil(node: Node, inputs: Outputs) -> dict[str, Array]:
        return {name: array + np.float32(0.1) for name, array in losing_nan(node, inputs).items()}

    judgement = judge_staged(build_case(replace(SMALL, data="nan-row")), spoil)
    assert (judgement.verdict, judgement.reason, judgement.flags) == (Verdict.WRONG, "value", ("loses-nan",))


def test_nan_through_what_selects_is_not_asked_for() -> None:
    judgement = judge_staged(build_case(replace(SMALL, data="nan-row", clip=0.5)), losing_nan)
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ())


def test_a_finite_number_that_another_reading_gives_is_no_overflow() -> None:
    # Which rows count for the range of Ht-1 shows only in elements beyond Softplus's own formula.
    of_op = profile("core", "DynamicQuantizeLSTM", 1)
    case = build_case(next(spec for spec in of_op if spec.data == "huge" and "Softplus" in (spec.activations or ())))
    judgement = judge_staged(case, partial(conforming, interpretations=Interpretations(state_range="held")))
    assert "state_range" not in (judgement.interpretations or {})
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ())


def test_ranges_that_look_alike_together_are_not_told_apart() -> None:
    of_op = profile("core", "DynamicQuantizeLSTM", 1)
    case = build_case(next(spec for spec in of_op if spec.id.endswith(".huge.int8-by-direction.T6N5I3H9.525741")))
    reading = {"input_range": "vector", "state_range": "held", "reverse_pace": "clock"}
    judgement = judge_staged(case, partial(conforming, interpretations=Interpretations(**reading)))
    answered = judgement.interpretations or {}
    assert all(reading[name] == option for name, option in answered.items() if name in reading)


# Open or undefined results


@pytest.mark.parametrize("empty", ["initial", "zero"])
def test_after_no_steps_the_state_is_the_initial_one_or_zero(empty: str) -> None:
    judgement = judge_staged(
        build_case(EMPTY), lambda node, inputs: conforming(node, inputs, Interpretations(empty=empty))
    )
    assert judgement.verdict is Verdict.PASS
    assert judgement.interpretations is not None
    assert judgement.interpretations["empty"] == empty


@pytest.mark.parametrize("name", ["Y_h", "Y_c"])
def test_after_no_steps_the_state_is_nothing_else(name: str) -> None:
    case = build_case(EMPTY)
    (row,) = np.flatnonzero(case.trial.feeds[-1].inputs["sequence_lens"] == 0)

    def spoil(array: Array) -> Array:
        array[:, row] += np.float32(1e-3)
        return array

    judgement = spoilt(case, name, spoil)
    assert judgement.verdict is Verdict.WRONG
    assert judgement.where is not None
    assert (judgement.where["output"], judgement.where["index"][1]) == (name, row)


def test_both_states_follow_the_same_interpretation() -> None:
    def mixed(node: Node, inputs: Outputs) -> dict[str, Array]:
        zero = conforming(node, inputs, Interpretations(empty="zero"))
        return {**conforming(node, inputs), "Y_c": zero["Y_c"]}

    assert judge_staged(build_case(EMPTY), mixed).verdict is Verdict.WRONG


def test_all_runs_of_a_case_follow_the_same_interpretation() -> None:
    case = build_case(replace(EMPTY, reruns="data"))
    assert len(case.trial.feeds) == 2
    runs = iter(("zero", "initial"))

    def changing(node: Node, inputs: Outputs) -> dict[str, Array]:
        return conforming(node, inputs, Interpretations(empty=next(runs)))

    assert judge_staged(case, changing).verdict is Verdict.WRONG
    for choice in ("zero", "initial"):
        interpretation = Interpretations(empty=choice)
        steady = judge_staged(
            case, lambda node, inputs, interpretation=interpretation: conforming(node, inputs, interpretation)
        )  # type: ignore[misc]
        assert steady.verdict is Verdict.PASS


def test_interpretations_that_a_case_does_not_touch_are_not_claimed() -> None:
    assert judge_staged(build_case(SMALL), conforming).interpretations == {}
    clipped = judge_staged(build_case(replace(SMALL, clip=0.25, initial="all")), conforming).interpretations
    assert clipped == {"cell_output_clip": "clipped"}


def test_where_nothing_can_be_judged_nothing_is_claimed() -> None:
    case = build_case(replace(SMALL, N=1, T=1, data="nan-row", weights="initializer"))
    judgement = judge_staged(case, conforming)
    assert judgement.judged == 0
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, "inconclusive")


def test_no_elements_at_all_pass() -> None:
    judgement = judge_staged(build_case(replace(SMALL, N=0)), conforming)
    assert (judgement.verdict, judgement.elements) == (Verdict.PASS, 0)


# Repetition and all-outputs runs


def test_repeated_runs_that_differ_within_the_radius_pass_with_a_flag() -> None:
    case = build_case(replace(SMALL, outputs=("Y",)))
    right = conforming(case.trial.node, case.trial.feeds[-1].inputs)
    near = {"Y": right["Y"].copy()}
    near["Y"][-1] = np.nextafter(near["Y"][-1], np.float32(0))
    judgement = judge(case.trials, [with_outputs(case, right, near)])
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ("nondeterministic",))


EXTENDED = next(spec for spec in written_cases("full", "ExtendedLSTM", 1) if spec.features >= {"about-realistic"})


@pytest.mark.parametrize("spec", [replace(SMALL, outputs=("Y",)), EXTENDED], ids=lambda spec: spec.op)
def test_repeated_runs_that_are_all_wrong_are_wrong_and_only_some_unstable(spec: Any) -> None:
    case = build_case(spec)
    right = conforming(case.trial.node, case.trial.feeds[-1].inputs)
    wrong, other_wrong = ({"Y": right["Y"] + np.float32(off)} for off in (0.5, -0.25))
    assert judge(case.trials, [with_outputs(case, wrong, other_wrong)]).verdict is Verdict.WRONG
    assert judge(case.trials, [with_outputs(case, right, other_wrong)]).verdict is Verdict.UNSTABLE


def test_only_the_fault_of_an_earlier_feed_is_a_fault_too() -> None:
    case = build_case(replace(SMALL, reruns="data"))
    whole = staged_outcome(case.trial, conforming)
    ((y, *others),), last = whole.outputs
    assert y is not None
    spoilt_first = replace(whole, outputs=(((y + np.float32(0.1), *others),), last))
    assert judge(case.trials, [spoilt_first]).verdict is Verdict.WRONG
    assert judge(case.trials, [whole]).verdict is Verdict.PASS


STATES = replace(SMALL, outputs=("", "Y_h", "Y_c"), T=7)


def test_a_companion_with_equal_outputs_stands_for_a_case_without_y() -> None:
    case = build_case(STATES)
    assert case.companion is not None
    judgement = judge_staged(case, conforming)
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ())
    assert judgement.elements == case.companion.feeds[-1].inputs["X"][..., 0].size * 5 + 2 * 15


def test_outputs_that_depend_on_what_is_asked_for_are_found() -> None:
    judgement = judge_staged(build_case(replace(STATES, T=3, lengths="ragged")), faulty("outputs.depend-on-request"))
    assert judgement.verdict is Verdict.WRONG
    assert "outputs-differ-from-companion" in judgement.flags


def test_a_difference_from_the_companion_within_the_radius_is_only_flagged() -> None:
    case = build_case(STATES)
    assert case.companion is not None
    right = conforming(case.trial.node, case.trial.feeds[-1].inputs)
    near = {**right, "Y_c": np.nextafter(right["Y_c"], np.float32(0))}
    judgement = judge(case.trials, [with_outputs(case, near), staged_outcome(case.companion, conforming)])
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ("outputs-differ-from-companion",))


@pytest.mark.parametrize("status", ["crashed", "timed-out", "unavailable"])
def test_a_companion_that_ends_the_process_is_not_passed_over(status: str) -> None:
    case = build_case(STATES)
    assert case.companion is not None
    judgement = judge(case.trials, [outcome(case), Outcome(case.companion.key, status, message="SIGABRT")])
    assert (judgement.verdict.value, judgement.reason) == (status, "companion")
    assert "SIGABRT" in judgement.message


def test_a_companion_that_is_refused_leaves_the_case_to_itself() -> None:
    case = build_case(STATES)
    assert case.companion is not None
    judgement = judge(case.trials, [outcome(case), Outcome(case.companion.key, "refused", "load", message="no Y here")])
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ())


# Several targets at once


@pytest.mark.parametrize(
    "spec",
    [RAGGED, replace(RAGGED, layout=1, outputs=("", "Y_h")), replace(EMPTY, reruns="sizes", dimensions="symbolic")],
    ids=["ragged", "companion", "two feeds"],
)
def test_what_is_judged_together_is_judged_as_it_is_alone(spec: CaseSpec) -> None:
    case = build_case(spec)
    ids = ("clip.ignored", "lengths.ignored", "outputs.no-direction-axis", "session.varies", "lstm.gates.ifco")
    outcomes_by_fault = [[staged_outcome(trial, FAULTS[id]) for trial in case.trials] for id in ids]
    outcomes_by_fault.append([staged_outcome(trial, conforming) for trial in case.trials])
    outcomes_by_fault.append([outcome(case, status="crashed", message="SIGABRT"), *outcomes_by_fault[-1][1:]])
    together = judge_each(case.trials, outcomes_by_fault)
    assert len({judgement.verdict for judgement in together}) >= 4
    for judgement, outcomes in zip(together, outcomes_by_fault, strict=True):
        alone = judge(case.trials, outcomes)
        assert judgement.worst == pytest.approx(alone.worst, rel=1e-9)
        assert judgement.error_sums == pytest.approx(alone.error_sums, rel=1e-9)
        assert replace(judgement, worst=0, error_sums=()) == replace(alone, worst=0, error_sums=())


@pytest.mark.parametrize("off", [0.0, 0.5])
def test_a_target_that_is_graded_is_neither_right_nor_wrong(off: float) -> None:
    """A toolkit that calibrates a model itself returns results that no specification covers."""
    case = build_case(SMALL)
    right = conforming(case.trial.node, case.trial.feeds[-1].inputs)
    returned = with_outputs(case, {**right, "Y": right["Y"] + np.float32(off)})
    judgement = judge(case.trials, [returned], "graded")
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, "graded")
    assert judgement.worst == judge(case.trials, [returned]).worst
    assert judgement.message.startswith("graded only; ")
    assert judge(case.trials, [replace(returned, status="crashed")], "graded").verdict is Verdict.CRASHED
