"""Diagnosis names all faults that a target makes, and no others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.diagnosis.explainer import Explainer, explained, failing_case_of_tried
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.reference import FAULTS, Fault, IllegalNode, Interpretations, Node, evaluate, operator_for
from onnxspec.reference.faults.alterations import with_functions
from onnxspec.reference.faults.contexts import Run
from onnxspec.reference.faults.fault import Compute, made_together
from onnxspec.reference.faults.observation import Observation
from onnxspec.reference.kernels.kernel import Style, run_kernel
from onnxspec.reference.numbers.activations import ACTIVATIONS
from onnxspec.reference.recurrent.computation import computation_of

from .in_process import (
    Arrays,
    Target,
    case_run,
    conforming,
    failing_case,
    failing_cases,
    fault_called,
    making,
    matcher,
    named,
    results_on,
    rounded,
    unknown,
)

SPECS = [
    s
    for op in ("LSTM", "GRU", "RNN")
    for s in profile("core", op, 14)
    if s.type == "float32" and s.T * s.N * s.H < 200 and s.data == "dense" and not (s.illegal or s.seed)
    # Subnormal numbers vanish beside the values of another function, so several faults hide each other there.
    if s.extremes != "subnormal"
]

SPECS_OF_ALL_SEEDS = [s for s in profile("core", "RNN", 14) if s.type == "float32" and not s.illegal]


@pytest.mark.long
@pytest.mark.parametrize(
    "ids",
    [
        ("lengths.ignored",),
        ("lengths.ignored", "clip.ignored", "activations.ignored"),
        ("activations.backward-as-forward", "initial-h.ignored"),
        ("gru.linear-before-reset.ignored", "lstm.input-forget.ignored", "bias.recurrent-half-ignored"),
        # Every case that has one of them has the other: no case shows one alone.
        ("lstm.peepholes.output-from-previous-cell", "lstm.peepholes.ifo"),
        ("clip.ignored", "initial-states.shared-directions@initial_h"),
    ],
)
def test_faults_made_at_once_are_all_found_and_no_others(ids: Sequence[str]) -> None:
    cases = failing_cases(making(*ids), SPECS)
    explained_by = named(cases)
    assert {case.case for case in cases} == set(explained_by)
    # In an operator with a single state, a fault of one state (`@...`) is the fault of all states.
    assert {fault for faults in explained_by.values() for fault in faults} <= {
        *ids,
        *(d.partition("@")[0] for d in ids),
    }
    of_lstm = {fault for case in cases if case.op == "LSTM" for fault in explained_by[case.case]}
    assert of_lstm == {d for d in ids if not d.startswith("gru")}


@pytest.mark.parametrize("name", ["gates.interleaved", "bias.recurrent-half-ignored", "rows.share-first-state"])
def test_a_fault_of_a_quantized_node_has_the_name_that_it_has_in_a_float_node(name: str) -> None:
    spec = CaseSpec("GRU", 14, T=6, N=3, I=4, H=5, bias=True, initial="all", outputs=("Y", "Y_h"))
    assert named([failing_case(SpecProbe(spec, wrap="qdq-u8"), FAULTS[name])], 2000) == {spec.id: (name,)}


def test_what_nothing_explains_is_left_unexplained() -> None:
    assert named(failing_cases(unknown, SPECS[:20]), 1500) == {}
    results, probes, _ = results_on(unknown, SPECS[:20])
    # No experiment was made, and the effort did not suffice for all faults: a page that reads this must not claim
    # otherwise.
    assert {(f["fault"], f["searched"]) for f in findings_of(results, probes)} == {("", False)}


def test_a_wrong_output_of_the_run_with_all_outputs_is_explained_by_that_run() -> None:
    """Only Y_c is wrong, and the case itself asks for Y_h alone."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = conforming(node, inputs)
        if "Y_c" in outputs:
            outputs["Y_c"][1] = outputs["Y_c"][0]
        return outputs

    run = case_run(CaseSpec("LSTM", 22, direction="bidirectional", outputs=("", "Y_h")), target)
    assert (run.judgement.where or {})["output"] == "Y_c"
    assert Explainer("standard", 5000).explain(run) == ("direction.states-shared@Y_c",)


def test_a_case_whose_own_outputs_are_wrong_is_explained_by_them() -> None:
    """Y is wrong too, in the run with all outputs."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        return {name: 2 * array for name, array in conforming(node, inputs).items()}

    run = case_run(CaseSpec("LSTM", 22, T=2, outputs=("", "Y_h")), target)
    assert (run.judgement.where or {})["output"] == "Y"
    case = failing_case_of_tried(run)
    assert case is not None
    assert "Y" not in case.trial.node.outputs


def test_right_outputs_are_explained_by_no_fault() -> None:
    """A class of wider bounds is no explanation of numbers that lie within the declared one."""
    assert named([failing_case(CaseSpec("LSTM", 22, outputs=("", "Y_h")), conforming)]) == {}


def test_the_search_ends_when_its_effort_is_spent() -> None:
    cases = failing_cases(making("lengths.ignored"), SPECS[:40])
    short = matcher(7)
    assert short.names(cases) == matcher(0, short.known).names(cases)
    assert short.effort <= 0


def test_a_finding_has_the_clauses_of_its_fault() -> None:
    specs = [s for s in SPECS if s.op == "LSTM"]
    explained_by = named(failing_cases(making("lengths.ignored"), specs))
    results, probes, _ = results_on(making("lengths.ignored"), specs)
    results = [structs.replace(r, diagnosis=explained_by.get(r.case, ())) for r in results]
    (finding,) = [f for f in findings_of(results, probes) if f["fault"]]
    assert (finding["fault"], finding["clauses"], finding["statuses"]) == (
        "lengths.ignored",
        ["lstm.lengths"],
        ["implied"],
    )
    assert finding["conditions"] in finding["title"]
    assert set(finding["cases"]) == set(explained_by)


def test_two_interpretations_of_one_clause_are_a_finding() -> None:
    """Every result is legal, but the target clips the argument of h in bidirectional cases only."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        interpretation = "clipped" if node.attributes.get("direction") == "bidirectional" else "unclipped"
        return rounded(evaluate(node, inputs, Interpretations(cell_output_clip=interpretation)), inputs)

    specs = [
        CaseSpec("LSTM", 14, T=3, N=2, I=3, H=4, bias=True, initial="all", clip=0.125, direction=d, seed=seed)
        for d in ("forward", "bidirectional")
        for seed in (0, 1)
    ]
    results, probes, _ = results_on(target, specs)
    assert {r.verdict.value for r in results} == {"pass"}
    (finding,) = findings_of(results, probes)
    assert (finding["kind"], finding["clauses"]) == ("mixed", ["lstm.clip.cell-output"])


def test_a_refusal_is_no_failing_case() -> None:
    def refusing(node: Node, inputs: Arrays) -> Arrays:
        raise IllegalNode("lstm.clip", "no")

    assert failing_case_of_tried(case_run(SPECS[0], refusing)) is None


def _slightly_off(node: Node, inputs: Arrays) -> Arrays:
    """Compute Tanh by two terms of its series for small arguments, where they are nearly right."""
    tanh = ACTIVATIONS["Tanh"]

    def value(x: NDArray[Any], alpha: float, beta: float) -> NDArray[Any]:
        return np.where(np.abs(x) < 0.125, x - x**3 / 3, np.tanh(x))

    near = replace(tanh, value=value, slope=None)
    computation = computation_of(node, inputs)
    outputs = Compute()(with_functions(computation, lambda f, *_: replace(f, kind=near) if f.kind is tanh else f))
    return rounded({name: outputs[name] for name in node.outputs}, inputs)


def _part_of_the_sum(terms: int) -> Target:
    """Return a target that sums at most ``terms`` products of X."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        X = inputs["X"].copy()
        X[..., terms:] = 0
        return conforming(node, {**inputs, "X": X})

    return run


LONG_SUMS = [
    s
    for version in (14, 22)
    for s in profile("core", "GRU", version)
    if s.type in ("float16", "bfloat16") and s.data == "one-sign" and not s.illegal
]
OF_RNN = [
    s
    for version in (14, 22)
    for s in profile("core", "RNN", version)
    if s.type == "float32" and s.data == "dense" and s.neighbours == "none" and not s.illegal
]


@pytest.mark.long
@pytest.mark.parametrize(("target", "specs"), [(_slightly_off, OF_RNN), (_part_of_the_sum(100), LONG_SUMS)])
def test_what_fits_by_chance_is_not_believed(target: Target, specs: list[CaseSpec]) -> None:
    """In small cases, or with wide error bounds, some of hundreds of faults give the same numbers by chance."""
    assert named(failing_cases(target, specs)) == {}


@pytest.mark.long
def test_a_prediction_too_wide_to_tell_numbers_from_zero_speaks_for_nothing() -> None:
    """Where a gate saturates, 0 with a wide error bound contains any small number that a truncated sum gives."""
    assert {*named(failing_cases(_part_of_the_sum(128), LONG_SUMS)).values()} == {("sizes.input-past-128",)}


def test_numbers_far_smaller_than_is_right_speak_for_a_fault_all_the_same() -> None:
    """Sigmoid saturates where HardSigmoid does not: 1e-7 with an error bound as large, where 8 is right."""
    chosen = [s for s in profile("core", "GRU", 14) if s.type == "float32" and s.data == "one-sign" and s.T == 1]
    cases = failing_cases(making("activations.ignored"), chosen)
    assert named(cases) == {case.case: ("activations.ignored",) for case in cases}


def test_memory_that_was_never_written_is_known_by_its_place() -> None:
    """The memory holds other numbers in each run."""
    numbers = iter(range(10**6))

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = dict(making()(node, inputs))
        lengths = inputs.get("sequence_lens")
        if lengths is not None and node.attributes.get("layout", 0) == 0:
            garbage = np.reshape([next(numbers) for _ in range(outputs["Y_h"].size)], outputs["Y_h"].shape)
            outputs["Y_h"] = np.where((lengths == 0)[:, np.newaxis], garbage.astype(np.float32), outputs["Y_h"])
        return outputs

    cases = failing_cases(target, [s for s in SPECS_OF_ALL_SEEDS if s.lengths == "empty"])
    assert set(named(cases).values()) == {("empty.uninitialized",)}


def test_of_two_faults_that_explain_all_that_is_told_which_passing_cases_do_not_contradict() -> None:
    """The fault "all omitted coefficients are 0" explains the failures too, but other functions have their defaults."""
    fault = "coefficients.default-thresholded-relu"
    diagnosis = explained(*results_on(making(fault), [s for s in SPECS_OF_ALL_SEEDS if s.activations]), "standard")
    assert set(diagnosis.values()) == {(fault,)}


def test_interpretations_that_no_right_result_tells_of_are_tried() -> None:
    """Omitted coefficients of Affine are 0, one of two interpretations; the default of ThresholdedRelu is wrong."""
    fault = FAULTS["coefficients.default-thresholded-relu"]

    def target(node: Node, inputs: Arrays) -> Arrays:
        computation = computation_of(node, inputs, Interpretations(defaults="zero"))
        outputs = fault.wrong(Compute(attributes=node.attributes), computation)
        return rounded({name: outputs[name] for name in node.outputs}, inputs)

    class Zeros(TargetEvidence):
        def counterexamples(self, fault: Fault, op: str, type: str = "") -> int:
            return int(fault.id.endswith("zero"))

    specs = [s for s in SPECS_OF_ALL_SEEDS if "ThresholdedRelu" in (s.activations or ()) and not s.alpha]
    assert {*named(failing_cases(target, specs), evidence=Zeros("standard")).values()} == {(fault.id,)}


@pytest.mark.long
def test_faults_that_do_not_go_together_explain_nothing() -> None:
    """Two faults are incompatible for one of three reasons.

    Both replace the arithmetic, one needs a property that the other's numbers lack, or both change the form.
    """
    spec = next(s for s in profile("core", "GRU", 14) if s.type == "float64" and s.data == "dense" and not s.illegal)
    inputs = build_case(spec).trial.feeds[0].inputs
    run = Run(inputs, conforming(spec.node, inputs))
    faults = [d for d in FAULTS.values() if d.applies("GRU", 14, "float64") and not d.accepts]
    arithmetic = FAULTS["precision.computed-in-single"]
    observation = Observation(operator_for(spec.node), spec.node, (run,), "standard")
    for other in faults:
        for pair in ((arithmetic, other), (other, arithmetic)):
            assert observation.fit(pair) is None or other is not arithmetic
            together = made_together(pair)
            assert (together is None) == (other.layer in ("arithmetic", "operands"))
            assert together is None or together[0] is arithmetic
    assert made_together([FAULTS["direction.summed"], FAULTS["outputs.float32"]]) is None


@pytest.mark.long
def test_an_unknown_fault_does_not_eat_the_known_ones() -> None:
    """A fault that is in no table changes most cases, and clip is ignored everywhere."""
    ignoring = making("clip.ignored")

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = ignoring(node, inputs)
        return {name: array * 0.9 + 0.01 for name, array in outputs.items()} if "B" in inputs else outputs

    cases = failing_cases(target, SPECS[::2])
    plain = {case.case for case in cases if "B" not in case.runs[0].inputs}
    assert plain
    assert named(cases) == dict.fromkeys(plain, ("clip.ignored",))


def test_structure_is_named_in_whatever_arithmetic() -> None:
    """The target computes float64 in float32 and ignores clip: no fault fits within float64's accuracy class."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        single = {name: a.astype(np.float32) if a.dtype == np.float64 else a for name, a in inputs.items()}
        outputs = making("clip.ignored")(node, {n: a.astype(np.float64) for n, a in single.items()})
        return rounded({name: array.astype(np.float32) for name, array in outputs.items()}, inputs)

    specs = [s for v in (7, 14, 22) for s in profile("core", "RNN", v) if s.type == "float64" and s.clip and s.T < 8]
    cases = failing_cases(target, [s for s in specs if not s.illegal][:8])
    by_class = TargetEvidence("standard")
    by_class.__dict__["arithmetics"] = {"float64": ("f32-math",)}
    assert set(named(cases, 5000).values()) != {("clip.ignored",)}
    assert set(named(cases, 5000, by_class).values()) >= {("clip.ignored",)}


def test_an_arithmetic_that_some_results_show_is_looked_for_in_all() -> None:
    def in_single(node: Node, inputs: Arrays) -> Arrays:
        # The kernel has its own order of summation, so that no hypothesis has the same roundings.
        narrow = {name: array.astype(np.float32) for name, array in inputs.items()}
        return rounded(run_kernel(node, narrow, Style("lanes", order="lanes")), inputs)

    specs = [CaseSpec("RNN", 14, type="float64", T=3, N=2, I=19, H=24, bias=True, seed=seed) for seed in (1, 2)]
    results, probes, kept = results_on(in_single, specs)
    assert [result.accuracy for result in results] == ["f32-math", "f32-math"]
    # Small or saturated values have no signature by which a single case could be identified.
    results[1] = structs.replace(results[1], accuracy=None)
    names = ("precision.computed-in-single",)
    assert explained(results, probes, kept, "standard") == dict.fromkeys(probes, names)


def test_a_fault_that_is_known_in_two_places_is_one_fault() -> None:
    plain = CaseSpec("LSTM", 14, T=4, N=3, H=5, bias=True, lengths="ragged")
    specs = [replace(plain, outputs=outputs) for outputs in (("", "Y_h"), ("", "", "Y_c"))]
    knowing = matcher()
    knowing.known += map(fault_called, ("lengths.ignored@Y_h", "lengths.ignored@Y_c"))
    assert {*knowing.names(failing_cases(making("lengths.ignored"), specs)).values()} == {("lengths.ignored",)}
    assert knowing.known == [FAULTS["lengths.ignored"]]
