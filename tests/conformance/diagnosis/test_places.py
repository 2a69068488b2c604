"""Diagnosis of faults made only in some places: by an unknown rule, or beyond some number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.staging import Opened, Session, findings_on, of_faults
from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.diagnosis.failing_case import DIAGNOSED, failing_case_of
from onnxspec.conformance.workers.job import Outcome
from onnxspec.reference import Node, evaluate, run_fault

from .in_process import Arrays, Feeds, Target, conforming, failing_cases, fault_called, rounded, running
from .in_process import named as names_of

SPECS = [
    spec
    for spec in profile("core", "GRU", 14)
    if spec.type == "float32" and spec.T * spec.N * spec.H < 1000 and spec.N > 2 and spec.reruns == "none"
    if spec.outputs == ("Y", "Y_h") and spec.data == "dense" and not spec.illegal
][:16]


def named(target: Target) -> set[tuple[str, ...]]:
    """Return the explanations of a target's failing cases; an empty one for those without a name."""
    failing = failing_cases(target, SPECS)
    assert len(failing) > 4
    explained = names_of(failing)
    return {explained.get(case.case, ()) for case in failing}


def in_rows(id: str, first: int) -> Target:
    """Return a target that makes a fault only from row ``first`` on."""
    fault = fault_called(id)

    def run(node: Node, inputs: Arrays) -> Arrays:
        right, wrong = evaluate(node, inputs), run_fault(fault, node, inputs)
        outputs = {}
        for name, array in right.items():
            axis = 0 if node.attributes.get("layout") else array.ndim - 2
            rows = np.arange(array.shape[axis]).reshape([-1 if a == axis else 1 for a in range(array.ndim)])
            outputs[name] = np.where(rows >= first, wrong[name], array)
        return rounded(outputs, inputs)

    return run


def test_a_fault_is_named_where_it_is_made_everywhere_and_not_in_some_rows() -> None:
    assert named(in_rows("steps.twice", 1)) == {()}
    assert named(in_rows("steps.twice", 0)) == {("steps.twice",)}


@pytest.mark.long
def test_zeros_in_some_places_are_no_name() -> None:
    """Zeros can have many causes."""

    def zeros(node: Node, inputs: Arrays) -> Arrays:
        outputs = conforming(node, inputs)
        return {**outputs, "Y": np.where(np.arange(outputs["Y"].shape[-1]) % 3 == 1, 0, outputs["Y"])}

    assert not any("outputs.zero" in id for names in named(zeros) for id in names)


def test_a_state_goes_wrong_in_y_and_in_the_last_state_alike() -> None:
    """A last state that is one step old is not a skipped step, since Y has that step."""
    assert not any(
        id.startswith("steps.skipped") for names in named(in_rows("outputs.state-before-last", 1)) for id in names
    )


def length_in_a_byte(graph: Any, session: Session, feeds: Feeds) -> list[Any]:
    lengths = {name: array % 256 for name, array in feeds.items() if name == "sequence_lens"}
    return list(session({**feeds, **lengths}))


def test_lengths_in_a_byte_are_named() -> None:
    specs = [
        spec
        for op in ("GRU", "LSTM", "RNN")
        for spec in profile("core", op, 22)
        if spec.T > 250 or (spec.T * spec.H < 60 and spec.lengths == "ragged" and spec.type == "float32")
        if not spec.illegal
    ]
    findings, results, _ = findings_on(running(length_in_a_byte), specs)
    assert {r.diagnosis for r in results if r.verdict in DIAGNOSED} == {("lengths.modulo-256",)}
    (finding,) = [f for f in findings if f["verdict"] in {v.value for v in DIAGNOSED}]
    assert finding["fault"] == "lengths.modulo-256"
    assert "a number that holds less than 256" in finding["title"]


def test_runs_of_a_session_stand_in_the_order_in_which_they_were_made() -> None:
    """A session runs all its feeds once, then all again: stale memory comes from the run before."""
    spec = next(s for s in profile("core", "LSTM", 14) if s.reruns == "data" and not s.illegal)
    trial = build_case(spec).trial
    right = [evaluate(trial.node, feed.inputs) for feed in trial.feeds]
    lists = tuple(
        tuple(tuple(number * outputs[name] for name in trial.node.outputs) for number in (1, 2)) for outputs in right
    )
    outcome = Outcome("x", "ran", outputs=lists, returned=((0, 1),) * len(lists))
    case = failing_case_of(spec.id, trial, outcome, (), (0.0, 0))
    assert case is not None
    assert [run.inputs for run in case.runs] == [feed.inputs for feed in trial.feeds] * 2
    name = trial.node.outputs[0]
    largest = [np.abs(run.outputs[name]).max() for run in case.runs]
    assert largest == [k * np.abs(outputs[name]).max() for k in (1, 2) for outputs in right]


# Faults that are made only in the places where wrong numbers were seen, whatever the fault concerns


def one_finding(opened: Opened, *specs: CaseSpec) -> Any:
    findings, results, _ = findings_on(opened, specs)
    assert any(result.failing for result in results)
    (finding,) = [f for f in findings if f["kind"] in ("wrong", "inaccurate")]
    return finding


def test_a_share_of_rows_that_starts_from_the_states_of_the_first_ones_is_named() -> None:
    def target(graph: Any, session: Session, feeds: Feeds) -> list[Any]:
        """Run a kernel of two threads; the second one computes the later rows from the states of the first ones."""
        rows = feeds["X"].shape[1]
        half = (rows + 1) // 2
        right, wrong = session(feeds), session({**feeds, "initial_h": np.roll(feeds["initial_h"], half, axis=1)})
        late = np.arange(rows)[:, np.newaxis] >= half
        return [np.where(late, b, a) for a, b in zip(right, wrong, strict=True)]

    specs = [CaseSpec("RNN", 14, T=2, N=n, I=2, H=3, initial="h", seed=n) for n in (7, 9)]
    finding = one_finding(running(target), *specs)
    assert finding["fault"].startswith("sizes.states-by-larger-halves")


@pytest.mark.parametrize("block", [4, 16])
def test_equations_that_are_wrong_in_the_last_units_only_are_named(block: int) -> None:
    id = f"lstm.input-forget.ignored@units-past-{block}s"
    specs = [
        CaseSpec("LSTM", 14, T=2, N=2, I=2, H=h, input_forget=1, initial="all", seed=h) for h in (block + 1, block + 3)
    ]
    assert one_finding(of_faults([id]), *specs)["fault"] == id


def test_units_of_altered_equations_are_computed_from_those_of_all() -> None:
    """Each unit has the value it would have if all units were altered, step by step from the same states."""
    spec = CaseSpec("GRU", 14, T=1, N=2, I=3, H=6, linear_before_reset=1, bias=True, initial="h")
    trial = build_case(spec).trial
    inputs = trial.feeds[0].inputs
    id = "gru.linear-before-reset.ignored"
    wrong, mixed = (run_fault(fault_called(f"{id}{tail}"), trial.node, inputs)["Y"] for tail in ("", "@units-past-4s"))
    right = evaluate(trial.node, inputs)["Y"]
    assert (np.abs(wrong - right) > 1e-3).any()
    np.testing.assert_array_equal(mixed[..., 4:], wrong[..., 4:])
    np.testing.assert_allclose(mixed[..., :4], right[..., :4], rtol=1e-6)


def test_of_two_words_for_one_thing_one_is_told() -> None:
    """In RNN the activation's result is the hidden state: clipping either is the same fault."""
    specs = [
        CaseSpec("RNN", 14, T=3, N=2, I=2, H=3, activations=("Affine",), alpha=(1.5,), beta=(0.5,), clip=0.5, seed=n)
        for n in (1, 2)
    ]
    finding = one_finding(of_faults(["clip.on-hidden"]), *specs)
    assert finding["fault"] == "clip.after-activation"
    assert finding["foretold"] >= 5


def test_what_cases_of_other_lists_tell_apart_is_not_one_thing() -> None:
    """Without a list of activations both faults make Sigmoid HardSigmoid; with a list only the function's fault
    does."""
    specs = [CaseSpec("LSTM", 1, T=3, N=2, I=2, H=3, bias=True, seed=n) for n in (1, 2)]
    finding = one_finding(of_faults(["sigmoid.hard"]), *specs)
    assert finding["fault"] in ("sigmoid.hard", "")
    assert finding["title"].startswith("Consistent with") or not finding["fault"]
