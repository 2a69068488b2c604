"""Tests of axes of the session: the runs that they consist of, and the faults of sessions that they find."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, find, given, settings

from onnxspec.cases import ABILITIES, Case, CaseSpec, build_case, strategies
from onnxspec.cases.directories.graph_reading import read_model
from onnxspec.cases.portable import case_from_json
from onnxspec.cases.specs.space import settle
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.conformance.workers.in_process import run_in_process
from onnxspec.reference import FAULTS, evaluate, format_of
from onnxspec.reference.kernels.kernel import STYLES, run_kernel

AXES = {
    "reweighed": "weights",
    "waves": "sizes",
    "beside": "several",
    "many": "many",
    "after_refusal": "refusals",
    "kept": "held",
}
PLAIN = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, lengths="ragged", dimensions="symbolic")

Outputs = list[Any]


def with_axes(*names: str, **fields: Any) -> Case:
    return build_case(replace(PLAIN, **dict.fromkeys(names, True), **fields))


def judged(case: Case, run: Any) -> Judgement:
    return judge(case.trials, [run_in_process(run, trial) for trial in case.trials])


def right(model: bytes, inputs: dict[str, Any]) -> Outputs:
    model_read = read_model(model)
    bound = model_read.bind(inputs)
    return [array.astype(format_of(bound["X"].dtype).dtype) for array in evaluate(model_read.node, bound).values()]


@pytest.mark.parametrize("name", AXES)
def test_an_axis_needs_its_ability_and_a_right_target_passes(name: str) -> None:
    case = with_axes(name)
    assert case.trial.course is not None
    assert case.trial.course.needs == {AXES[name]}
    assert case_from_json(case.spec.to_json()) == case.spec
    assert judged(case, right).verdict is Verdict.PASS
    assert judge_staged(case, lambda node, inputs: run_kernel(node, inputs, STYLES["lanes"])).verdict is Verdict.PASS


def test_every_ability_has_an_axis_and_without_one_there_is_no_course() -> None:
    assert set(AXES.values()) == set(ABILITIES)
    assert build_case(PLAIN).trial.course is None
    assert build_case(replace(PLAIN, reruns="sizes")).trial.course is None


@pytest.mark.parametrize("weights", ["input", "initializer"])
@pytest.mark.parametrize("outputs", [("Y", "Y_h", "Y_c"), ("", "Y_h")])
def test_all_axes_go_together(weights: str, outputs: tuple[str, ...]) -> None:
    names = [name for name in AXES if name != "reweighed" or weights == "input"]
    case = with_axes(*names, weights=weights, outputs=outputs, reruns="data")
    assert judged(case, right).verdict is Verdict.PASS


def test_the_cases_own_run_is_the_last_feed() -> None:
    plain_inputs = build_case(PLAIN).trial.feeds[-1].inputs
    for name in AXES:
        for formal, array in with_axes(name).trial.feeds[-1].inputs.items():
            np.testing.assert_array_equal(array, plain_inputs[formal])


# Targets that fail only in sessions.


def keeping(names: tuple[str, ...], key: Callable[[Any], Any]) -> Any:
    """Return a target that reads inputs of these names again only if their key changes."""
    kept: dict[Any, Any] = {}

    def run(model: bytes, inputs: dict[str, Any]) -> Outputs:
        held = {n: kept.setdefault((model, n, key(a)), a) if n in names else a for n, a in inputs.items()}
        return right(model, held)

    return run


def whole_for_good() -> Any:
    """Return a target that takes all rows for whole if they are whole in the first run."""
    known: dict[bytes, bool] = {}

    def run(model: bytes, inputs: dict[str, Any]) -> Outputs:
        lengths, steps = inputs["sequence_lens"], len(inputs["X"])
        whole = known.setdefault(model, bool((lengths == steps).all()))
        return right(model, {**inputs, "sequence_lens": np.full_like(lengths, steps)} if whole else inputs)

    return run


def by_ends() -> Any:
    return keeping(("W", "R"), lambda array: (array.flat[0], array.flat[-1]))


@pytest.mark.parametrize(
    ("part", "make"),
    [
        ("middle", by_ends),
        ("element", by_ends),
        ("R", lambda: keeping(("W", "R", "B"), lambda array: None)),
        ("lengths", lambda: keeping(("sequence_lens",), lambda lengths: lengths.sum())),
        ("plain", whole_for_good),
    ],
)
def test_a_run_that_differs_in_a_part_finds_what_other_data_do_not(part: str, make: Callable[[], Any]) -> None:
    for passed in (build_case(PLAIN), *([with_axes("reweighed")] if make is by_ends else [])):
        assert judged(passed, make()).verdict is Verdict.PASS
    case = build_case(replace(PLAIN, nearly=part, outputs=("Y", "Y_h")))
    assert (case.trial.course is None) == (part in ("lengths", "plain"))
    assert judged(case, right).verdict is Verdict.PASS
    assert judged(case, make()).verdict in (Verdict.WRONG, Verdict.UNSTABLE)


@pytest.mark.parametrize("part", ["W", "R", "B", "middle", "tail", "element", "lengths", "states", "X", "plain"])
def test_a_part_of_the_inputs_is_another_one_in_the_run_before(part: str) -> None:
    before, last = build_case(replace(PLAIN, nearly=part, initial="all")).trial.feeds
    differs = {name: before.inputs[name] != last.inputs[name] for name in last.inputs}
    changed = {name for name, places in differs.items() if places.any()}
    weights = {"W", "R", "B"}
    states = {"initial_h", "initial_c"}
    named = {part: {part}, "lengths": {"sequence_lens"}, "states": states, "plain": {"sequence_lens", *states}}
    assert changed == (weights if part in ("middle", "tail", "element") else named[part])
    for name in weights & changed if part not in weights else ():
        flat = differs[name].reshape(-1)
        assert not flat[0]
        assert flat[-1] == (part == "tail")
        assert flat.sum() == 1 or part != "element"


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("reweighed", "weights-kept"),
        ("kept", "outputs-reused"),
        ("beside", "weights-shared"),
        ("many", "buffers-come-round"),
        ("after_refusal", "refusal-leaves-state"),
        ("waves", "larger-run-shows"),
    ],
)
def test_each_axis_finds_what_no_other_one_does(name: str, fault: str) -> None:
    weights, wrong = "initializer" if name == "beside" else "input", FAULTS[f"session.{fault}"]
    assert judge_staged(build_case(replace(PLAIN, weights=weights)), wrong).verdict is Verdict.PASS
    judgement = judge_staged(with_axes(name, weights=weights), wrong)
    assert judgement.verdict in (Verdict.WRONG, Verdict.UNSTABLE), judgement.message
    assert judgement.reason == ("held" if name == "kept" else "value")


def test_faults_of_sessions_keep_what_they_keep_for_each_session() -> None:
    case = with_axes("reweighed", N=9)
    assert judge_staged(case, FAULTS["session.bias-once"]).verdict in (Verdict.WRONG, Verdict.UNSTABLE)


# Draws


@pytest.mark.parametrize("name", ["waves", *(pytest.param(n, marks=pytest.mark.long) for n in AXES if n != "waves")])
def test_strategies_draw_every_axis(name: str) -> None:
    spec = find(
        strategies.operator_cases(),
        lambda spec: bool(getattr(spec, name, False)),
        settings=settings(max_examples=20000, phases=[Phase.generate, Phase.shrink], derandomize=True, database=None),
    )
    assert sum(bool(getattr(spec, other)) for other in AXES) == 1


@settings(derandomize=True, database=None, deadline=None, max_examples=15)
@given(spec=strategies.operator_cases(max_steps=3, max_rows=3, max_inputs=3, max_size=3))
def test_drawn_cases_with_all_axes_are_passed_by_what_is_right(spec: CaseSpec) -> None:
    # Conflicts of sessions with other fields: one of the two gives way.
    fields = {field: getattr(spec, field) for field in spec.__dataclass_fields__}
    case = build_case(CaseSpec(**settle({**fields, **dict.fromkeys(AXES, True)}, search=True)))
    assert judged(case, right).verdict in (Verdict.PASS, Verdict.INCONCLUSIVE)
