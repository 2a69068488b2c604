"""Verdicts: precedence, interpretations, all-outputs runs, conventions and undefined results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from onnxspec.cases import Case, CaseSpec, Trial, build_case, profile
from onnxspec.cases.profiles import written_cases
from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.judging.verdict import judge, judge_each
from onnxspec.conformance.proof.staged import judge_staged, staged_outcome
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import (
    FAULTS,
    Interpretations,
    Node,
    clause_named,
    run_fault,
)

from .implementations import Outputs, conforming, each_changed, judged

Array = NDArray[Any]
Arrays = Mapping[str, Array]

ALL = ("Y", "Y_h", "Y_c")
SHAPE: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5}
SMALL = CaseSpec("LSTM", 14, **SHAPE, outputs=ALL)
RAGGED = replace(SMALL, lengths="ragged", direction="bidirectional", initial="all")
EMPTY = replace(SMALL, lengths="empty", initial="all")


def faulty(name: str) -> Callable[[Node, Arrays], Outputs]:
    """Return a fault as a function, which is run once."""
    return lambda node, inputs: run_fault(FAULTS[name], node, inputs)


def reading(**interpretations: str) -> Callable[[Node, Arrays], Outputs]:
    """Return a right target that reads the document in another way."""
    return partial(conforming, interpretations=Interpretations(**interpretations))


def outcome(case: Case, **changes: Any) -> Outcome:
    """Return the outcome of a conforming target, with changes."""
    return replace(staged_outcome(case.trial, conforming), **changes)


def with_outputs(case: Case, *runs: Mapping[str, Array]) -> Outcome:
    """Return the outcome of a case with one feed whose repeated runs returned ``runs``."""
    names = case.trial.node.outputs
    return outcome(case, outputs=(tuple(tuple(run[name] for name in names) for run in runs),))


def right_outputs(case: Case) -> Outputs:
    return conforming(case.trial.node, case.trial.feeds[-1].inputs)


def test_of_a_session_with_several_runs_the_one_that_is_wrong_is_named() -> None:
    case = build_case(CaseSpec("RNN", 14, T=3, outputs=("Y", "Y_h"), reruns="data"))
    first, second = (tuple(repeats[0]) for repeats in outcome(case).outputs)
    spoilt_second = (second[0] + np.float32(0.5), *second[1:])
    judgement = judge(case.trials, [outcome(case, outputs=((first,), (spoilt_second,)))])
    assert "(run 2 of 2, step 0, forward, row 0)" in judgement.message
    lone = CaseSpec("RNN", 14, T=3, outputs=("Y", "Y_h"))
    assert "(step 0, forward, row 0)" in judged(lone, each_changed(lambda array: array + np.float32(0.5))).message


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
    right = right_outputs(case)
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
    judgement = judged(SMALL, lambda outputs: outputs.update({name: change(outputs[name])}))
    assert (judgement.verdict, judgement.reason) == (Verdict.MALFORMED, reason)
    assert judgement.where == {"output": name, "index": None, "step": None}
    assert name in judgement.message


@pytest.mark.parametrize("count", [0, 1, 2, 4])
def test_another_number_of_outputs_is_malformed(count: int) -> None:
    case = build_case(SMALL)
    (run,) = staged_outcome(case.trial, conforming).outputs[0]
    judgement = judge(case.trials, [outcome(case, outputs=(((*run, run[0])[:count],),))])
    assert (judgement.verdict, judgement.reason) == (Verdict.MALFORMED, "count")


# Conventions


@pytest.mark.parametrize("layout", [0, 1])
def test_padding_that_is_not_zero_passes_with_a_flag(layout: int) -> None:
    case = build_case(replace(RAGGED, layout=layout))
    judgement = judge_staged(case, faulty("padding.state-repeated"))
    assert (judgement.verdict, judgement.reason, judgement.flags) == (Verdict.PASS, "padding", ("unconventional",))
    assert judgement.clause == "lstm.padding.zero"
    step, row = judgement.where["step"], judgement.where["index"][0 if layout else 2]
    assert step >= case.trial.feeds[-1].inputs["sequence_lens"][row]


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_padding_may_hold_anything(value: float) -> None:
    lengths = build_case(RAGGED).trial.feeds[-1].inputs["sequence_lens"]

    def change(outputs: Outputs) -> None:
        for row, length in enumerate(lengths):
            outputs["Y"][length:, :, row] = value

    judgement = judged(RAGGED, change)
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
    def spoil(node: Node, inputs: Arrays) -> Outputs:
        outputs = faulty("padding.state-repeated")(node, inputs)
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


# NaN


losing_nan = each_changed(lambda array: np.nan_to_num(array, nan=0.5))
NAN_ROW = replace(SMALL, data="nan-row")


def test_nan_that_is_lost_passes_with_a_flag_and_says_where_it_enters() -> None:
    assert judged(NAN_ROW, lambda outputs: None).flags == ()
    judgement = judged(NAN_ROW, losing_nan)
    assert (judgement.verdict, judgement.reason, judgement.flags) == (Verdict.PASS, "nan", ("loses-nan",))
    assert judgement.clause == "lstm.nan.kept"
    assert judgement.where == {"output": "Y", "index": [2, 0, 1, 0], "step": 2}
    assert judgement.message.startswith("NaN enters at X[2, 1, 0]; Y[2, 0, 1, 0] is 0.5")
    assert judgement.message.endswith("lost in Y (10 of 10), Y_h (5 of 5), Y_c (5 of 5)")


@pytest.mark.parametrize(
    ("spec", "off", "verdict", "flags"),
    [
        (replace(NAN_ROW, N=1, T=1, outputs=("Y",)), 0, Verdict.INCONCLUSIVE, ("loses-nan",)),
        (NAN_ROW, 0.1, Verdict.WRONG, ("loses-nan",)),
        (replace(NAN_ROW, clip=0.5), 0, Verdict.PASS, ()),
    ],
    ids=["nothing else can be judged", "beside a failure", "not asked for through a clip, which selects"],
)
def test_nan_that_is_lost_changes_no_verdict(
    spec: CaseSpec, off: float, verdict: Verdict, flags: tuple[str, ...]
) -> None:
    def change(outputs: Outputs) -> None:
        losing_nan(outputs)
        each_changed(lambda array: array + np.float32(off))(outputs)

    judgement = judged(spec, change)
    assert (judgement.verdict, judgement.flags) == (verdict, flags)
    if off:
        assert judgement.reason == "value"


def test_ranges_that_look_alike_together_are_not_told_apart() -> None:
    of_op = profile("core", "DynamicQuantizeLSTM", 1)
    case = build_case(next(spec for spec in of_op if spec.id.endswith(".huge.int8-by-direction.T6N5I3H9.525741")))
    chosen = {"input_range": "vector", "state_range": "held", "reverse_pace": "clock"}
    answered = judge_staged(case, reading(**chosen)).interpretations or {}
    assert all(chosen[name] == option for name, option in answered.items() if name in chosen)


# Open or undefined results


@pytest.mark.parametrize("empty", ["initial", "zero"])
def test_after_no_steps_the_state_is_the_initial_one_or_zero(empty: str) -> None:
    judgement = judge_staged(build_case(EMPTY), reading(empty=empty))
    assert judgement.verdict is Verdict.PASS
    assert judgement.interpretations["empty"] == empty


@pytest.mark.parametrize("name", ["Y_h", "Y_c"])
def test_after_no_steps_the_state_is_nothing_else(name: str) -> None:
    (row,) = np.flatnonzero(build_case(EMPTY).trial.feeds[-1].inputs["sequence_lens"] == 0)

    def change(outputs: Outputs) -> None:
        outputs[name][:, row] += np.float32(1e-3)

    judgement = judged(EMPTY, change)
    assert judgement.verdict is Verdict.WRONG
    assert (judgement.where["output"], judgement.where["index"][1]) == (name, row)


def test_both_states_follow_the_same_interpretation() -> None:
    def mixed(node: Node, inputs: Arrays) -> Outputs:
        return {**conforming(node, inputs), "Y_c": reading(empty="zero")(node, inputs)["Y_c"]}

    assert judge_staged(build_case(EMPTY), mixed).verdict is Verdict.WRONG


def test_all_runs_of_a_case_follow_the_same_interpretation() -> None:
    case = build_case(replace(EMPTY, reruns="data"))
    assert len(case.trial.feeds) == 2
    runs = iter(("zero", "initial"))
    changing = judge_staged(case, lambda node, inputs: reading(empty=next(runs))(node, inputs))
    assert changing.verdict is Verdict.WRONG
    for choice in ("zero", "initial"):
        assert judge_staged(case, reading(empty=choice)).verdict is Verdict.PASS


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


EXTENDED = next(spec for spec in written_cases("full", "ExtendedLSTM", 1) if spec.features >= {"about-realistic"})


@pytest.mark.parametrize("spec", [replace(SMALL, outputs=("Y",)), EXTENDED], ids=lambda spec: spec.op)
def test_repeated_runs_may_differ_within_the_radius_are_wrong_if_all_are_and_else_unstable(spec: Any) -> None:
    case = build_case(spec)
    right = right_outputs(case)
    wrong, other_wrong = ({"Y": right["Y"] + np.float32(off)} for off in (0.5, -0.25))
    assert judge(case.trials, [with_outputs(case, wrong, other_wrong)]).verdict is Verdict.WRONG
    assert judge(case.trials, [with_outputs(case, right, other_wrong)]).verdict is Verdict.UNSTABLE
    near = {"Y": np.nextafter(right["Y"], np.float32(0))}
    judgement = judge(case.trials, [with_outputs(case, right, near)])
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ("nondeterministic",))


def test_only_the_fault_of_an_earlier_feed_is_a_fault_too() -> None:
    case = build_case(replace(SMALL, reruns="data"))
    whole = staged_outcome(case.trial, conforming)
    ((y, *others),), last = whole.outputs
    spoilt_first = replace(whole, outputs=(((y + np.float32(0.1), *others),), last))
    assert judge(case.trials, [spoilt_first]).verdict is Verdict.WRONG
    assert judge(case.trials, [whole]).verdict is Verdict.PASS


STATES = replace(SMALL, outputs=("", "Y_h", "Y_c"), T=7)


@pytest.fixture
def with_companion() -> tuple[Case, Trial]:
    """Return a case without Y, and its run with all outputs."""
    case = build_case(STATES)
    assert case.companion is not None
    return case, case.companion


def test_a_companion_with_equal_outputs_stands_for_a_case_without_y(with_companion: tuple[Case, Trial]) -> None:
    case, companion = with_companion
    judgement = judge_staged(case, conforming)
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ())
    assert judgement.elements == companion.feeds[-1].inputs["X"][..., 0].size * 5 + 2 * 15


def test_outputs_that_depend_on_what_is_asked_for_are_found() -> None:
    judgement = judge_staged(build_case(replace(STATES, T=3, lengths="ragged")), faulty("outputs.depend-on-request"))
    assert judgement.verdict is Verdict.WRONG
    assert "outputs-differ-from-companion" in judgement.flags


def test_a_difference_from_the_companion_within_the_radius_is_only_flagged(with_companion: tuple[Case, Trial]) -> None:
    case, companion = with_companion
    right = right_outputs(case)
    near = {**right, "Y_c": np.nextafter(right["Y_c"], np.float32(0))}
    judgement = judge(case.trials, [with_outputs(case, near), staged_outcome(companion, conforming)])
    assert (judgement.verdict, judgement.flags) == (Verdict.PASS, ("outputs-differ-from-companion",))


@pytest.mark.parametrize("status", ["crashed", "timed-out", "unavailable", "refused"])
def test_a_companion_that_ends_the_process_is_not_passed_over(with_companion: tuple[Case, Trial], status: str) -> None:
    """One that is refused leaves the case to itself."""
    case, companion = with_companion
    judgement = judge(case.trials, [outcome(case), Outcome(companion.key, status, "load", message="SIGABRT")])
    verdict, reason = ("pass", None) if status == "refused" else (status, "companion")
    assert (judgement.verdict.value, judgement.reason, judgement.flags) == (verdict, reason, ())
    assert ("SIGABRT" in judgement.message) == (status != "refused")


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
    right = right_outputs(case)
    returned = with_outputs(case, {**right, "Y": right["Y"] + np.float32(off)})
    judgement = judge(case.trials, [returned], "graded")
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, "graded")
    assert judgement.worst == judge(case.trials, [returned]).worst
    assert judgement.message.startswith("graded only; ")
    assert judge(case.trials, [replace(returned, status="crashed")], "graded").verdict is Verdict.CRASHED
