"""A fault is confirmed if it predicts the target's results in new random cases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.staging import findings_on, of_faults
from onnxspec.cases import CaseSpec, build_case, family_of, profile
from onnxspec.cases.operators.causal_conv_with_state import CausalConvSpec
from onnxspec.conformance.diagnosis.confirm import Confirmation, FreshCases, confirm, fresh_specs
from onnxspec.conformance.diagnosis.findings import titled
from onnxspec.conformance.diagnosis.observed_case import ObservedCase
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.reference import Fault, Node, evaluate, run_fault

from .in_process import Arrays, Target, case_run, conforming, failing_case, fault_called, matcher, results_on, unknown

SPEC = CaseSpec("LSTM", 14, direction="bidirectional", initial="h")


def _observed(spec: CaseSpec, target: Target | Fault) -> ObservedCase:
    return ObservedCase(failing_case(spec, target), TargetEvidence("standard"))


def _confirmed(
    target: Target | Fault,
    spec: CaseSpec = SPEC,
    fixed: Sequence[str] = (),
    expected: Fault | None = None,
    evidence: TargetEvidence | None = None,
) -> Confirmation:
    def run(probes: Sequence[SpecProbe]) -> Iterator[CaseRun]:
        return (case_run(probe, target) for probe in probes)

    fresh = FreshCases(case_run(spec, target), run, fixed)
    return confirm(fresh, matcher(3000, evidence=evidence), expected, lambda: False)


def test_fresh_cases_are_legal_and_have_other_numbers() -> None:
    fresh = fresh_specs(SPEC)
    assert len({s.seed for s in fresh} - {SPEC.seed}) == len(fresh) == 10
    assert len({s.N for s in fresh}) >= 4
    fixed = [s.H for s in fresh_specs(SPEC, ("H",))]
    assert fixed.count(SPEC.H) == 8  # two are larger: a property of one size may hold at no other
    for spec in fresh:
        build_case(spec)
        assert (spec.direction, spec.initial) == (SPEC.direction, SPEC.initial)


def test_fresh_cases_of_a_described_operator_have_other_sizes() -> None:
    """A fault may show only in sequences of one position, or with few kernel elements."""
    fresh = fresh_specs(CausalConvSpec())
    assert all(family_of(spec.op).goes_together(spec) for spec in fresh)
    for name in ("length", "k", "channels"):
        assert len({getattr(spec, name) for spec in fresh}) > 2


def test_cases_whose_weights_have_no_seed_of_their_own_are_drawn_anew() -> None:
    spec = next(s for s in profile("smoke", "ExtendedLSTM", 1) if not s.illegal)
    assert hasattr(spec, "weights_seed")  # a derived attribute is not a field
    assert len({s.seed for s in fresh_specs(spec)}) == 10


@pytest.mark.parametrize(
    ("made", "fields", "expected", "names"),
    [
        ("bias.ignored", {"bias": True}, "", {"bias.ignored"}),
        (
            "bias.ignored@reverse",
            {"bias": True, "direction": "bidirectional"},
            "",
            {"bias.ignored@reverse", "bias.backward-ignored"},
        ),
        # A case with only initial_c does not show that only initial_c is taken from the first direction.
        (
            "initial-states.shared-directions@initial_c",
            {"op": "LSTM", "direction": "bidirectional", "initial": "c"},
            "initial-states.shared-directions",
            {"initial-states.shared-directions@initial_c"},
        ),
    ],
    ids=["everywhere", "in one direction", "like another in small cases"],
)
def test_a_fault_is_named_with_its_place(made: str, fields: dict[str, Any], expected: str, names: set[str]) -> None:
    spec = CaseSpec(**{"op": "GRU", "version": 14, **fields})
    thought = fault_called(expected) if expected else None
    confirmation = _confirmed(fault_called(made), spec, expected=thought)
    assert confirmation.fault is not None
    assert confirmation.fault.id in names
    assert confirmation.cases == 10


def test_a_fault_that_passing_cases_contradict_is_no_alternative() -> None:
    """Both faults give ThresholdedRelu the alpha 0; one of them gives it to other functions too."""
    fault = fault_called("coefficients.default-thresholded-relu")
    spec, passing = (
        CaseSpec("RNN", 14, T=2, N=2, I=3, H=5, activations=(name,)) for name in ("ThresholdedRelu", "LeakyRelu")
    )
    assert _confirmed(fault, spec).fault is None
    results, probes, _ = results_on(fault, [passing])
    assert results[0].verdict is Verdict.PASS
    assert _confirmed(fault, spec, evidence=TargetEvidence("standard", results, probes)).fault is fault


def test_a_fault_that_explains_why_simpler_cases_pass_is_preferred() -> None:
    """A function of beta 0 may return 0 for both, but without activation_beta the case passes."""
    spec = CaseSpec(
        "LSTM", 22, direction="bidirectional", beta=(-0.375,),
        activations=("Softsign", "ScaledTanh", "Softsign", "HardSigmoid", "Relu", "ScaledTanh"),
    )  # fmt: skip
    (finding,) = findings_on(of_faults(["beta.restarted"]), [spec])[0]
    assert finding["fault"] == "beta.restarted"


def test_what_fits_one_case_and_not_the_next_is_no_name() -> None:
    assert _confirmed(unknown, CaseSpec("RNN", 14)).fault is None


def test_what_holds_at_the_size_in_question_and_at_no_larger_one_is_no_name() -> None:
    """The target stores lengths in a few bits: the first length that does not fit becomes 0, so that Y is zero."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        return conforming(node, {**inputs, "sequence_lens": (inputs["sequence_lens"] % 8).astype(np.int32)})

    spec = CaseSpec("RNN", 14, T=8, lengths="full")
    zero = fault_called("outputs.zero@Y")
    assert _observed(spec, target).fit((zero,)) is not None
    assert _confirmed(target, spec, ["T"]).fault is None
    assert _confirmed(target, spec, ["T"], zero) == Confirmation(refuted=True)


def test_a_fault_in_one_output_is_known_only_where_others_are_seen() -> None:
    alone = fault_called("bias.ignored@Y_h")

    def target(node: Node, inputs: Arrays) -> Arrays:
        if node.outputs == ("Y_h",):
            return run_fault(alone, node, inputs)
        return {name: 2 * array for name, array in evaluate(node, inputs).items()}

    spec = CaseSpec("RNN", 14, bias=True, outputs=("", "Y_h"))
    assert _confirmed(target, spec, expected=alone).fault is not alone


def test_a_fault_that_allows_any_number_explains_none() -> None:
    """With a NaN that saturates, the prediction has no bound; finite numbers are no evidence of it."""
    fault = fault_called("sigmoid.overflow")

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = conforming(node, inputs)
        outputs["Y"][0, 0, 1, 4] += np.float32(4e-6)
        return outputs

    observed = _observed(CaseSpec("LSTM", 14, T=2, N=2, I=2, H=5, data="huge", seed=1, weights_seed=1), target)
    assert observed.fit((fault,)) is not None
    assert not observed.explained_by(fault)


def test_a_fault_that_changes_nothing_explains_nothing_beside_another() -> None:
    fault, other = fault_called("bias.ignored"), fault_called("clip.ignored")
    observed = _observed(CaseSpec("GRU", 14, bias=True), fault)
    assert observed.explained_by(fault, [fault])
    assert not observed.explained_by(other, [fault])


def test_what_a_run_shows_is_a_fact_only_once_it_is_confirmed() -> None:
    finding: Any = {"what": "Ignores clip", "fault": "clip.ignored", "foretold": 0, "expected": False, "kind": "wrong"}
    assert titled(finding, "", tried=False) == "Consistent with: ignores clip"
    assert titled({**finding, "foretold": 10}, "layout 1", tried=True) == "Ignores clip (with layout 1)"
    assert titled({**finding, "foretold": 10}, "layout 1", tried=True, passing=2) == (
        "Consistent with: ignores clip (seen with layout 1)"
    )
    assert titled({**finding, "expected": True}, "", tried=False) == "Consistent with: ignores clip"


@pytest.mark.parametrize(
    ("fill", "constant"),
    [(-1.0, True), (7.25, True), (np.frombuffer(b"\x7f" * 4, np.float32)[0], False)],
    ids=["-1", "7.25", "memory"],
)
def test_a_constant_that_is_written_is_not_memory_as_it_happened_to_be(fill: Any, constant: bool) -> None:
    """Y_h of a row without steps is left unwritten, or is always the same number."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = conforming(node, inputs)
        states = outputs["Y_h"].swapaxes(0, 1) if node.attributes.get("layout") else outputs["Y_h"]
        states[:, inputs["sequence_lens"] == 0] = fill
        return outputs

    spec = CaseSpec("GRU", 14, T=2, N=2, lengths="empty", outputs=("Y", "Y_h"), initial="all")
    assert _confirmed(target, spec, expected=fault_called("empty.uninitialized")).refuted is constant
