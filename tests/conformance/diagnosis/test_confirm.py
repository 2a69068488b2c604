"""A fault is confirmed if it predicts the target's results in new random cases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.staging import findings_on, of_faults
from onnxspec.cases import CaseSpec, build_case, family_of, profile
from onnxspec.cases.operators.causal_conv_with_state import CausalConvSpec
from onnxspec.conformance.diagnosis.confirm import Confirmation, FreshCases, confirm, fresh_specs
from onnxspec.conformance.diagnosis.explainer import failing_case_of_tried
from onnxspec.conformance.diagnosis.findings import titled
from onnxspec.conformance.diagnosis.match import Matcher
from onnxspec.conformance.diagnosis.observed_case import ObservedCase, ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.result import result_of
from onnxspec.reference import Fault, Node, evaluate, fault_named, run_fault

Arrays = Mapping[str, NDArray[Any]]
SPEC = CaseSpec("LSTM", 14, direction="bidirectional", initial="h")


def _one(probe: SpecProbe, target: Any) -> CaseRun:
    prepared = probe.prepare()
    outcomes = [staged_outcome(trial, target) for trial in prepared.trials]
    return CaseRun(probe, prepared, tuple(outcomes), prepared.judge(outcomes, "standard"))


def _observed(one: CaseRun) -> ObservedCase:
    case = failing_case_of_tried(one)
    assert case is not None
    return ObservedCase(case, TargetEvidence("standard"))


def _confirmed(
    target: Any,
    spec: CaseSpec = SPEC,
    fixed: Sequence[str] = (),
    expected: Fault | None = None,
    evidence: TargetEvidence | None = None,
) -> Confirmation:
    def run(probes: Sequence[SpecProbe]) -> Iterator[CaseRun]:
        return (_one(probe, target) for probe in probes)

    fresh = FreshCases(_one(SpecProbe(spec), target), run, fixed)
    observed = ObservedCases(evidence or TargetEvidence("standard"))
    return confirm(fresh, Matcher(observed, 3000), expected, lambda: False)


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


def test_a_fault_of_the_table_is_named() -> None:
    fault = fault_named("bias.ignored")
    assert isinstance(fault, Fault)
    confirmation = _confirmed(fault, CaseSpec("GRU", 14, bias=True))
    assert confirmation.fault is not None
    assert confirmation.fault.id == "bias.ignored"


def test_a_fault_that_passing_cases_contradict_is_no_alternative() -> None:
    """Both faults give ThresholdedRelu the alpha 0; one of them gives it to other functions too."""
    fault = fault_named("coefficients.default-thresholded-relu")
    assert isinstance(fault, Fault)
    spec = CaseSpec("RNN", 14, T=2, N=2, I=3, H=5, activations=("ThresholdedRelu",))
    assert _confirmed(fault, spec).fault is None
    passing = SpecProbe(CaseSpec("RNN", 14, T=2, N=2, I=3, H=5, activations=("LeakyRelu",)))
    result = result_of(passing, "target", _one(passing, fault).judgement, 0.0, None, "")
    assert result.verdict is Verdict.PASS
    evidence = TargetEvidence("standard", [result], {passing.id: passing})
    assert _confirmed(fault, spec, evidence=evidence).fault is fault


def test_a_fault_that_explains_why_simpler_cases_pass_is_preferred() -> None:
    """A function of beta 0 may return 0 for both, but without activation_beta the case passes."""
    spec = CaseSpec(
        "LSTM", 22, direction="bidirectional", beta=(-0.375,),
        activations=("Softsign", "ScaledTanh", "Softsign", "HardSigmoid", "Relu", "ScaledTanh"),
    )  # fmt: skip
    (finding,) = findings_on(of_faults(["beta.restarted"]), [spec])[0]
    assert finding["fault"] == "beta.restarted"


def test_a_fault_in_one_place_is_named_with_its_place() -> None:
    fault = fault_named("bias.ignored@reverse")
    assert isinstance(fault, Fault)

    def target(node: Node, inputs: Arrays) -> Arrays:
        return run_fault(fault, node, inputs)

    confirmation = _confirmed(target, CaseSpec("GRU", 14, direction="bidirectional", bias=True))
    assert confirmation.fault is not None
    assert confirmation.fault.id in ("bias.ignored@reverse", "bias.backward-ignored")


def test_what_fits_one_case_and_not_the_next_is_no_name() -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        right = evaluate(node, inputs)
        return {name: (0.9 * array + 0.01).astype(inputs["X"].dtype) for name, array in right.items()}

    assert _confirmed(target, CaseSpec("RNN", 14)).fault is None


def test_what_holds_at_the_size_in_question_and_at_no_larger_one_is_no_name() -> None:
    """The target stores lengths in a few bits: the first length that does not fit becomes 0, so that Y is zero."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        lengths = (inputs["sequence_lens"] % 8).astype(np.int32)
        outputs = evaluate(node, {**inputs, "sequence_lens": lengths})
        return {name: array.astype(inputs["X"].dtype) for name, array in outputs.items()}

    spec = CaseSpec("RNN", 14, T=8, lengths="full")
    zero = fault_named("outputs.zero@Y")
    assert isinstance(zero, Fault)
    assert _observed(_one(SpecProbe(spec), target)).fit((zero,)) is not None
    assert _confirmed(target, spec, ["T"]).fault is None
    assert _confirmed(target, spec, ["T"], zero) == Confirmation(refuted=True)


def test_a_fault_that_only_looks_the_same_in_small_cases_is_told_apart() -> None:
    """Only initial_c is taken from the first direction; a case with only initial_c does not show that."""
    fault = fault_named("initial-states.shared-directions@initial_c")
    assert isinstance(fault, Fault)

    def target(node: Node, inputs: Arrays) -> Arrays:
        return run_fault(fault, node, inputs)

    spec = CaseSpec("LSTM", 14, direction="bidirectional", initial="c")
    confirmation = _confirmed(target, spec, expected=fault_named("initial-states.shared-directions"))
    assert confirmation.fault is not None
    assert (confirmation.fault.id, confirmation.cases) == (fault.id, 10)


def test_a_fault_in_one_output_is_known_only_where_others_are_seen() -> None:
    alone = fault_named("bias.ignored@Y_h")
    assert isinstance(alone, Fault)

    def target(node: Node, inputs: Arrays) -> Arrays:
        if node.outputs == ("Y_h",):
            return run_fault(alone, node, inputs)
        return {name: 2 * array for name, array in evaluate(node, inputs).items()}

    spec = CaseSpec("RNN", 14, bias=True, outputs=("", "Y_h"))
    assert _confirmed(target, spec, expected=alone).fault is not alone


def test_a_fault_that_allows_any_number_explains_none() -> None:
    """With a NaN that saturates, the prediction has no bound; finite numbers are no evidence of it."""
    fault = fault_named("sigmoid.overflow")
    assert fault is not None

    def target(node: Node, inputs: Arrays) -> Arrays:
        Y = evaluate(node, inputs)["Y"].astype(np.float32)
        Y[0, 0, 1, 4] += np.float32(4e-6)
        return {"Y": Y}

    spec = CaseSpec("LSTM", 14, T=2, N=2, I=2, H=5, data="huge", seed=1, weights_seed=1)
    observed = _observed(_one(SpecProbe(spec), target))
    assert observed.fit((fault,)) is not None
    assert not observed.explained_by(fault)


def test_a_fault_that_changes_nothing_explains_nothing_beside_another() -> None:
    fault = fault_named("bias.ignored")
    other = fault_named("clip.ignored")
    assert isinstance(fault, Fault)
    assert isinstance(other, Fault)
    case_run = _one(SpecProbe(CaseSpec("GRU", 14, bias=True)), lambda node, inputs: run_fault(fault, node, inputs))
    assert _observed(case_run).explained_by(fault, [fault])
    assert not _observed(case_run).explained_by(other, [fault])


def test_what_a_run_shows_is_a_fact_only_once_it_is_confirmed() -> None:
    finding: Any = {"what": "Ignores clip", "fault": "clip.ignored", "foretold": 0, "expected": False, "kind": "wrong"}
    assert titled(finding, "", tried=False) == "Consistent with: ignores clip"
    assert titled({**finding, "foretold": 10}, "layout 1", tried=True) == "Ignores clip (with layout 1)"
    assert titled({**finding, "foretold": 10}, "layout 1", tried=True, passing=2) == (
        "Consistent with: ignores clip (seen with layout 1)"
    )
    assert titled({**finding, "expected": True}, "", tried=False) == "Consistent with: ignores clip"


def test_a_constant_that_is_written_is_not_memory_as_it_happened_to_be() -> None:
    """Y_h of a row without steps is left unwritten, or is always -1."""
    fault = fault_named("empty.uninitialized")
    assert isinstance(fault, Fault)
    spec = CaseSpec("GRU", 14, T=2, N=2, lengths="empty", outputs=("Y", "Y_h"), initial="all")

    def writing(fill: Any) -> Any:
        def target(node: Node, inputs: Arrays) -> Arrays:
            outputs = {n: a.astype(inputs["X"].dtype) for n, a in evaluate(node, inputs).items()}
            states = outputs["Y_h"].swapaxes(0, 1) if node.attributes.get("layout") else outputs["Y_h"]
            states[:, inputs["sequence_lens"] == 0] = fill
            return outputs

        return target

    memory = np.frombuffer(b"\x7f" * 4, np.float32)[0]
    for fill, constant in ((-1.0, True), (7.25, True), (memory, False)):
        assert _confirmed(writing(fill), spec, expected=fault).refuted is constant


def test_cases_whose_weights_have_no_seed_of_their_own_are_drawn_anew() -> None:
    spec = next(s for s in profile("smoke", "ExtendedLSTM", 1) if not s.illegal)
    assert hasattr(spec, "weights_seed")  # a derived attribute is not a field
    assert len({s.seed for s in fresh_specs(spec)}) == 10
