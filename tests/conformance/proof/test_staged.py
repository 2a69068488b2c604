"""Proof of the suite with known implementations: conforming ones pass, faulty ones get their expected verdicts."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from onnxspec.cases import Case, CaseSpec, build_case, profile
from onnxspec.cases.operators.extended_lstm.axes import B, R, W, X
from onnxspec.cases.operators.extended_lstm.spec import extended
from onnxspec.cases.specs.features import illegal_cases
from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.proof.staged import Implementation, Stage, judge_staged, staged_outcome
from onnxspec.conformance.results.grades import biases
from onnxspec.conformance.results.result import result_of
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FAULTS, FORMATS, IllegalNode, Interpretations, Node, configure, faults_of
from onnxspec.reference.kernels.kernel import STYLES, Style, run_kernel

from ...recurrent import recurrent_versions

ALL = ("Y", "Y_h", "Y_c")
BEYOND_RANGE = {("float16", "large"), ("float16", "huge")}
NOT_ACCUSED = {Verdict.PASS, Verdict.INCONCLUSIVE}


built = lru_cache(maxsize=None)(build_case)


def cases(every: int = 1, first: int = 0, **fields: Any) -> list[Case]:
    """Return every ``every``-th legal case of core with these values of its fields. ``onnxspec prove`` tries all."""
    specs = [s for op, version in recurrent_versions() for s in profile("core", op, version) if not s.illegal]
    return [built(s) for s in [s for s in specs if all(getattr(s, n) == v for n, v in fields.items())][first::every]]


def kernel(style: Style, interpretations: Interpretations | None = None) -> Implementation:
    return lambda node, inputs: run_kernel(node, inputs, style, interpretations)


# Conforming variants.


@pytest.mark.parametrize("every", [pytest.param(15, marks=pytest.mark.long), 80])
@pytest.mark.parametrize(("position", "style"), list(enumerate(STYLES.values())), ids=list(STYLES))
def test_conforming_variants_are_not_accused(position: int, style: Style, every: int) -> None:
    # In the long tests every case of core meets one of them; `onnxspec prove` tries all pairs.
    for case in cases(every=every, first=position % every):
        judgement = judge_staged(case, kernel(style))
        assert judgement.verdict in NOT_ACCUSED, judgement.message
        assert judgement.worst <= 1
        assert "outputs-differ-from-companion" not in judgement.flags


def test_cases_of_core_are_judged_whole() -> None:
    for case in cases(every=6):
        judgement = judge_staged(case, kernel(STYLES["library"]))
        if case.spec.type in ("float16", "bfloat16"):  # with so many numbers the bounds are too wide to prove anything
            assert judgement.verdict in NOT_ACCUSED, case.spec.id
            continue
        assert judgement.verdict is Verdict.PASS, case.spec.id
        assert judgement.judged or not case.spec.N, case.spec.id
        # Some large numbers leave the range of float16.
        doubtful = case.spec.data in ("nan-row", "inf-row") or (case.spec.type, case.spec.data) in BEYOND_RANGE
        # The run before the case's own has no all-outputs run; without Y the bounds of its late steps are too wide.
        if not doubtful and (case.companion is None or case.spec.reruns == "none"):
            assert 4 * judgement.judged >= judgement.elements, case.spec.id


def test_flushing_kernels_pass_by_their_class() -> None:
    for case in cases(every=23):
        judgement = judge_staged(case, kernel(replace(STYLES["stored-sums-edge"], flushes=True)), "flushing")
        assert judgement.verdict in NOT_ACCUSED, judgement.message


@pytest.mark.parametrize("position", range(4))
def test_every_interpretation_that_a_case_touches_passes(position: int) -> None:
    followed = 0
    for case in cases(every=10, first=position):
        first = case.trial.first
        possible = list(Interpretations().alternatives(configure(first.node, first.feeds[-1].inputs).open_questions))
        if len(possible) <= position + 1:
            continue
        followed += 1
        judgement = judge_staged(case, kernel(STYLES["forward"], possible[position + 1]))
        assert judgement.verdict in NOT_ACCUSED, (possible[position + 1], judgement.message)
    assert followed


def test_state_may_be_wider_than_what_is_shown_at_any_length() -> None:
    spec = CaseSpec("LSTM", 22, "bfloat16", T=60, N=2, I=3, H=9, outputs=ALL, bias=True)
    judgement = judge_staged(build_case(spec), kernel(STYLES["wide-state"]))
    assert (judgement.verdict, judgement.reason) == (Verdict.INCONCLUSIVE, "wide")
    assert judgement.worst < 1


# Faults.

# One case for each fault, and its expected verdict.
PLAIN = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, outputs=ALL)
STAGED: dict[str, tuple[CaseSpec, Verdict, str | None]] = {
    "lstm.gates.ifco": (PLAIN, Verdict.WRONG, "value"),
    "lengths.ignored": (replace(PLAIN, lengths="ragged"), Verdict.WRONG, "value"),
    "rows.nan-spreads": (replace(PLAIN, data="nan-row"), Verdict.WRONG, "nonfinite"),
    "outputs.last-hidden-missing": (PLAIN, Verdict.MALFORMED, "form"),
    "outputs.no-direction-axis": (PLAIN, Verdict.MALFORMED, "shape"),
    "outputs.float32": (replace(PLAIN, type="float16"), Verdict.MALFORMED, "type"),
    "outputs.not-skipped": (replace(PLAIN, outputs=("", "Y_h")), Verdict.MALFORMED, "shape"),
    "session.sizes-kept": (replace(PLAIN, reruns="sizes", dimensions="symbolic"), Verdict.MALFORMED, "shape"),
    "outputs.depend-on-request": (replace(PLAIN, outputs=("", "", "Y_c"), lengths="ragged"), Verdict.WRONG, "value"),
    "padding.state-repeated": (replace(PLAIN, lengths="ragged"), Verdict.PASS, "padding"),
    "inputs.x-overwritten": (PLAIN, Verdict.INPUT_MODIFIED, "inputs-changed"),
    "inputs.initial-h-overwritten": (replace(PLAIN, initial="all"), Verdict.INPUT_MODIFIED, "inputs-changed"),
    "session.varies": (PLAIN, Verdict.UNSTABLE, "value"),
    "session.state-kept": (PLAIN, Verdict.UNSTABLE, "value"),
    "session.bias-once": (replace(PLAIN, bias=True), Verdict.UNSTABLE, "value"),
    "session.lengths-kept": (replace(PLAIN, N=9, lengths="ragged", reruns="data"), Verdict.WRONG, "value"),
    "session.weights-kept": (replace(PLAIN, reweighed=True), Verdict.WRONG, "value"),
    "session.bias-kept": (replace(PLAIN, bias=True, reweighed=True), Verdict.WRONG, "value"),
    "session.weights-shared": (replace(PLAIN, beside=True), Verdict.WRONG, "value"),
    "session.scratch-shared": (replace(PLAIN, beside=True), Verdict.UNSTABLE, "value"),
    "session.refusal-leaves-state": (replace(PLAIN, after_refusal=True), Verdict.UNSTABLE, "value"),
    "session.buffers-come-round": (replace(PLAIN, many=True), Verdict.UNSTABLE, "value"),
    "session.outputs-reused": (replace(PLAIN, kept=True), Verdict.UNSTABLE, "held"),
    "constants.bias-ignored": (replace(PLAIN, bias=True, weights="initializer"), Verdict.WRONG, "value"),
    "precision.bfloat16-operands": (PLAIN, Verdict.INACCURATE, "value"),
}


@pytest.mark.parametrize("id", STAGED)
def test_a_fault_comes_to_its_verdict(id: str) -> None:
    spec, verdict, reason = STAGED[id]
    judgement = judge_staged(build_case(spec), FAULTS[id])
    assert (judgement.verdict, judgement.reason) == (verdict, reason), judgement.message


@pytest.mark.parametrize(
    ("id", "changes"),
    [
        ("constants.bias-ignored", {"bias": True, "weights": "input"}),
        ("session.lengths-kept", {"lengths": "ragged"}),
        ("session.sizes-kept", {"reruns": "data"}),
        ("inputs.initial-h-overwritten", {}),
        ("inputs.weights-repacked", {"weights": "initializer"}),
        ("outputs.not-skipped", {}),
        ("outputs.depend-on-request", {"lengths": "ragged"}),
        ("lstm.input-forget.ignored", {}),
    ],
)
def test_a_fault_passes_where_it_does_not_show(id: str, changes: dict[str, Any]) -> None:
    assert judge_staged(build_case(replace(PLAIN, **changes)), FAULTS[id]).verdict is Verdict.PASS


def test_a_session_is_run_again_only_where_something_is_kept() -> None:
    trial = build_case(PLAIN).trial
    for id, count in (("session.varies", 2), ("session.initial-h-kept", 1), ("bias.ignored", 1)):
        assert [len(lists) for lists in staged_outcome(trial, FAULTS[id]).outputs] == [count]


SHARING = {
    "LSTM": replace(PLAIN, type="float64", lengths="ragged", bias=True, beside=True, after_refusal=True, kept=True),
    "GRU": CaseSpec("GRU", 14, T=3, N=2, I=2, H=3, direction="bidirectional", reruns="sizes", dimensions="symbolic"),
    "RNN": CaseSpec("RNN", 14, T=3, N=2, I=2, H=3, neighbours="twins"),
    "ExtendedLSTM": extended("sharing", T=3, N=2, I=2, H=3, x=X, w=W, r=R, b=B, y=(2.0**-15, 32768)),
}


@pytest.mark.parametrize("op", SHARING)
def test_faults_on_one_stage_answer_what_each_answers_alone(op: str) -> None:
    """The order of faults does not matter: none depends on values that another has computed, kept or written."""
    trial = build_case(SHARING[op]).trial
    stage = Stage(trial)
    right = stage.outcome()
    faults = [fault for fault in faults_of(op, trial.node.since_version) if not fault.accepts]
    for fault in [*faults, *reversed(faults)]:
        outcome, alone = stage.outcome(fault), staged_outcome(trial, fault)
        assert (outcome.status, outcome.changed, outcome.altered) == (alone.status, alone.changed, alone.altered)
        np.testing.assert_equal(outcome.outputs, alone.outputs, fault.id)
    np.testing.assert_equal(stage.outcome().outputs, right.outputs)


def test_what_a_fault_keeps_ends_with_its_session() -> None:
    case = build_case(replace(PLAIN, outputs=("", "Y_h")))
    assert case.companion is not None
    kept = FAULTS["session.state-kept"]
    alone, companion = staged_outcome(case.trial, kept).outputs[0], staged_outcome(case.companion, kept).outputs[0]
    assert np.array_equal(np.asarray(alone[0][0]), np.asarray(companion[0][1]))


def test_a_changed_input_is_named_and_the_cases_own_arrays_stay() -> None:
    case = build_case(PLAIN)
    before = {n: a.copy() for n, a in case.trial.feeds[0].inputs.items()}
    assert staged_outcome(case.trial, FAULTS["inputs.x-overwritten"]).changed == ("X",)
    assert all(np.array_equal(case.trial.feeds[0].inputs[n], a) for n, a in before.items())


def test_a_fault_that_accepts_something_fails_where_that_is_forbidden_and_nowhere_else() -> None:
    accepting = {d.topic: d for d in FAULTS.values() if d.accepts and set(OPERATORS) & set(d.operators)}
    models = [build_case(spec) for op in OPERATORS for spec in illegal_cases(op, 14)]
    forbidden = [case for case in models if case.trial.violation is not None and not case.trial.violation.open]
    topics = [case.trial.violation.topic for case in forbidden if case.trial.violation is not None]
    assert set(topics) == set(accepting)
    for case, topic in zip(forbidden, topics, strict=True):
        assert judge_staged(case, accepting[topic]).verdict is Verdict.NOT_REJECTED, case.spec.id
        other = next(d for t, d in accepting.items() if t != topic)
        assert judge_staged(case, other).verdict is Verdict.PASS
        assert judge_staged(case, FAULTS["bias.ignored"]).verdict is Verdict.PASS
    assert judge_staged(build_case(PLAIN), accepting["layout"]).verdict is Verdict.PASS


def test_an_implementation_that_raises_refuses() -> None:
    def refusing(node: Node, inputs: Any) -> Any:
        raise IllegalNode("lstm.types", "LSTM-14: not for us")

    judgement = judge_staged(build_case(PLAIN), refusing)
    assert (judgement.verdict, judgement.message) == (Verdict.UNSUPPORTED, "LSTM-14: not for us")


def test_the_hidden_state_that_is_not_the_last_of_Y_is_named() -> None:
    spec = CaseSpec("LSTM", 14, direction="bidirectional", T=4, N=3, I=2, H=5, lengths="ragged", outputs=ALL)
    judgement = judge_staged(build_case(spec), FAULTS["outputs.last-row-of-tensor"])
    assert (judgement.verdict, judgement.clause) == (Verdict.WRONG, "lstm.outputs.last-hidden")
    assert (judgement.where or {})["output"] == "Y_h"


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


# Accuracy: a result that is wrong only by rounding is inaccurate, and its class is named.

ROUNDED = [("tf32", "tf32", {"tf32"}), ("bfloat16", "bf16-math", {"bf16-math", "f16-math", "tf32"})]


@pytest.mark.parametrize(("operands", "named", "allowed"), ROUNDED, ids=["tf32", "bfloat16"])
def test_rounded_operands_are_inaccurate_by_name(operands: str, named: str, allowed: set[str]) -> None:
    rounding = kernel(Style("s", operands=operands, accumulator="float32"))
    chosen = cases(every=11, type="float32")
    judgements = [judge_staged(c, rounding) for c in chosen]
    assert {j.verdict for j in judgements} <= {Verdict.WRONG, Verdict.INACCURATE, *NOT_ACCUSED}
    # If a clip, or a function's limit, bounds nearly all arguments, hardly an element is off: then roundings cannot be
    # distinguished from a structural fault. In all other cases they are.
    wrong = [c.spec for c, j in zip(chosen, judgements, strict=True) if j.verdict is Verdict.WRONG]
    # Subnormal operands lose more than the wider class covers.
    assert all(spec.clip is not None or spec.data == "huge" or spec.extremes == "subnormal" for spec in wrong)
    inaccurate = [j for j in judgements if j.verdict is Verdict.INACCURATE]
    assert len(inaccurate) > len(judgements) / 2
    # No class is named if bounds are wide compared with the numbers, or errors small compared with the bounds.
    assert {j.accuracy for j in inaccurate} <= {*allowed, None}
    assert sum(j.accuracy is None for j in inaccurate) < len(inaccurate) / 4
    assert sum(j.accuracy == named for j in inaccurate) > len(inaccurate) / 2
    assert all(f"wider class {j.accuracy}" in j.message for j in inaccurate if j.accuracy)


@pytest.mark.parametrize(("inner", "named"), [("float16", "f16-storage"), ("bfloat16", "bf16-storage")])
def test_a_runtime_that_computes_in_a_half_type_throughout_is_inaccurate(inner: str, named: str) -> None:
    def narrow(node: Node, inputs: Any) -> Any:
        attributes = {n: v for n, v in node.attributes.items() if n != "output_sequence"}
        half = {n: a if n == "sequence_lens" else a.astype(FORMATS[inner].dtype) for n, a in inputs.items()}
        outputs = run_kernel(Node(node.op_type, 22, attributes, node.outputs), half, STYLES["stored-sums-edge"])
        return {n: a.astype(np.float32) for n, a in outputs.items()}

    chosen = [c for c in cases(every=13, type="float32") if c.spec.version > 1]
    judgements = [judge_staged(c, narrow) for c in chosen]
    # Small states, huge arguments and subnormal ones have bounds beyond the signal, which would accept any result;
    # after a clip of 2^-10 only its own rounding remains.
    wrong = [c.spec for c, j in zip(chosen, judgements, strict=True) if j.verdict is Verdict.WRONG]
    assert all(s.data in ("small", "huge") or s.extremes != "none" or s.clip == 2.0**-10 for s in wrong)
    assert sum(j.accuracy == named for j in judgements) > len(judgements) / 2


def test_storing_by_cutting_digits_off_is_a_bias() -> None:
    """Dropping bits of float32 never exceeds a bound of a half type, and always errs towards zero."""
    cutting = kernel(Style("s", work="float32", truncates=True))
    judged = [(case.spec, judge_staged(case, cutting)) for case in cases(data="numerics")]
    assert {judgement.verdict for _, judgement in judged} <= NOT_ACCUSED
    by_type = biases([result_of(SpecProbe(spec), "", judgement, 0.0, None) for spec, judgement in judged])
    for dtype in ("float16", "bfloat16"):
        assert by_type[dtype]["biased"]
        assert by_type[dtype]["scale"] < -0.5
