"""Diagnosis names all faults that a target makes, and no others."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.diagnosis.explainer import Explainer, explained, failing_case_of_tried
from onnxspec.conformance.diagnosis.failing_case import DIAGNOSED, FailingCase, failing_case_of
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.diagnosis.match import Matcher
from onnxspec.conformance.diagnosis.observed_case import ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.judging.verdict import judge
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.reference import FAULTS, Fault, IllegalNode, Interpretations, Node, evaluate, fault_named, operator_for
from onnxspec.reference.faults.alterations import with_functions
from onnxspec.reference.faults.computing import layered
from onnxspec.reference.faults.contexts import Run
from onnxspec.reference.faults.fault import Compute, made_together
from onnxspec.reference.faults.observation import Fit, Observation
from onnxspec.reference.kernels.kernel import Style, run_kernel
from onnxspec.reference.numbers.activations import ACTIVATIONS
from onnxspec.reference.recurrent.computation import computation_of

Arrays = Mapping[str, NDArray[Any]]
Target = Callable[[Node, Arrays], Arrays]

SPECS = [
    s
    for op in ("LSTM", "GRU", "RNN")
    for s in profile("core", op, 14)
    if s.type == "float32" and s.T * s.N * s.H < 200 and s.data == "dense" and not (s.illegal or s.seed)
    # Subnormal numbers vanish beside the values of another function, so several faults hide each other there.
    if s.extremes != "subnormal"
]

SPECS_OF_ALL_SEEDS = [s for s in profile("core", "RNN", 14) if s.type == "float32" and not s.illegal]


def target_with(*ids: str) -> Target:
    """Return a target that makes several faults at once, in every case."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        named = [fault_named(id) for id in ids]
        faults = [d for d in named if d is not None and d.applies(node.op_type, node.since_version)]
        computation = computation_of(node, inputs)
        with np.errstate(all="ignore"):
            outputs = layered(Compute(), faults, {})(computation)
            return {name: outputs[name].astype(inputs["X"].dtype) for name in node.outputs}

    return run


def failing(target: Target, specs: list[CaseSpec] = SPECS) -> tuple[list[FailingCase], list[Result]]:
    """Return the failing cases of a target and all its results."""
    failing_cases, results = [], []
    for spec in specs:
        case, probe = build_case(spec), SpecProbe(spec)
        outcome = staged_outcome(case.trial, target)
        companion = staged_outcome(case.companion, target) if case.companion is not None else None
        judgement = judge(case.trials, [outcome, companion])
        results.append(result_of(SpecProbe(spec), "staged", judgement, 0.0, None))
        if judgement.verdict in DIAGNOSED:
            failing_case = failing_case_of(spec.id, case.trial, outcome, probe.clauses, probe.size)
            assert failing_case is not None
            failing_cases.append(failing_case)
    return failing_cases, results


def named(
    cases: list[FailingCase], effort: float = 20_000, evidence: TargetEvidence | None = None
) -> dict[str, tuple[str, ...]]:
    """Return the ids of the faults that together explain each case."""
    return Matcher(ObservedCases(evidence or TargetEvidence("standard")), effort).names(cases)


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
def test_faults_made_at_once_are_all_found_and_no_others(ids: tuple[str, ...]) -> None:
    failing_cases, _ = failing(target_with(*ids))
    explained = named(failing_cases)
    assert {w.case for w in failing_cases} == set(explained)
    # In an operator with a single state, a fault of one state (`@...`) is the fault of all states.
    made = {d: d if failing_case.op == "LSTM" else d.partition("@")[0] for failing_case in failing_cases for d in ids}
    assert {made.get(fault, fault) for explanation in explained.values() for fault in explanation} <= {
        *ids,
        *made.values(),
    }
    assert {fault for w in failing_cases if w.op == "LSTM" for fault in explained[w.case]} == {
        d for d in ids if not d.startswith("gru")
    }


def test_known_faults_are_run_at_most_three_times_in_a_failing_case(monkeypatch: pytest.MonkeyPatch) -> None:
    failing_cases, _ = failing(target_with("lengths.ignored", "clip.ignored"))
    known = [FAULTS[id] for id in ("lengths.ignored", "clip.ignored", "activations.ignored", "bias.ignored")]
    matcher = Matcher(ObservedCases(TargetEvidence("standard")), 0, known)
    assert set(matcher.names(failing_cases)) == {case.case for case in failing_cases}
    runs: set[tuple[int, tuple[str, ...]]] = set()
    fit = Observation.fit

    def counted(observation: Observation, faults: Sequence[Fault], *options: Any) -> Fit | None:
        runs.add((id(observation), tuple(fault.id for fault in faults)))
        return fit(observation, faults, *options)

    monkeypatch.setattr(Observation, "fit", counted)
    again = [replace(case) for case in failing_cases]
    assert len(matcher.names(again)) == len(again)
    assert sum(bool(faults) for _, faults in runs) <= 3 * len(again)


def test_what_nothing_explains_is_left_unexplained() -> None:
    def strange(node: Node, inputs: Arrays) -> Arrays:
        right = evaluate(node, inputs)
        return {name: (0.9 * array + 0.01).astype(inputs["X"].dtype) for name, array in right.items()}

    failing_cases, results = failing(strange, SPECS[:20])
    assert failing_cases
    assert named(failing_cases, 1500) == {}
    findings = findings_of(results, {s.id: SpecProbe(s) for s in SPECS})
    assert all(f["fault"] == "" for f in findings)
    # No experiment was made, and the effort did not suffice for all faults: a page that reads this must not claim
    # otherwise.
    assert [f["searched"] for f in findings] == [False] * len(findings)


def test_a_wrong_output_of_the_run_with_all_outputs_is_explained_by_that_run() -> None:
    """Only Y_c is wrong, and the case itself asks for Y_h alone."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        outputs = {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()}
        if "Y_c" in outputs:
            outputs["Y_c"][1] = outputs["Y_c"][0]
        return outputs

    spec = CaseSpec("LSTM", 22, direction="bidirectional", outputs=("", "Y_h"))
    probe, case = SpecProbe(spec), build_case(spec)
    outcomes = [staged_outcome(trial, run) for trial in case.trials]
    prepared = probe.prepare()
    tried = CaseRun(probe, prepared, tuple(outcomes), prepared.judge(outcomes, "standard"))
    assert tried.judgement.where is not None
    assert tried.judgement.where["output"] == "Y_c"
    assert Explainer("standard", 5000).explain(tried) == ("direction.states-shared@Y_c",)


def test_a_case_whose_own_outputs_are_wrong_is_explained_by_them() -> None:
    """Y is wrong too, in the run with all outputs."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        return {name: 2 * array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()}

    spec = CaseSpec("LSTM", 22, T=2, outputs=("", "Y_h"))
    probe = SpecProbe(spec)
    prepared = probe.prepare()
    outcomes = tuple(staged_outcome(trial, run) for trial in prepared.trials)
    tried = CaseRun(probe, prepared, outcomes, prepared.judge(outcomes, "standard"))
    assert tried.judgement.where is not None
    assert tried.judgement.where["output"] == "Y"
    case = failing_case_of_tried(tried)
    assert case is not None
    assert "Y" not in case.trial.node.outputs


def test_right_outputs_are_explained_by_no_fault() -> None:
    """A class of wider bounds is no explanation of numbers that lie within the declared one."""
    case = build_case(CaseSpec("LSTM", 22, outputs=("", "Y_h")))
    right = staged_outcome(
        case.trial,
        lambda node, inputs: {name: array.astype(inputs["X"].dtype) for name, array in evaluate(node, inputs).items()},
    )
    failing_case = failing_case_of("right", case.trial, right, (), (0, 0))
    assert failing_case is not None
    assert named([failing_case]) == {}


def test_the_search_ends_when_its_effort_is_spent() -> None:
    failing_cases, _ = failing(target_with("lengths.ignored"), SPECS[:40])
    matcher = Matcher(ObservedCases(TargetEvidence("standard")), 7)
    assert matcher.names(failing_cases) == Matcher(matcher.observed, 0, matcher.known).names(failing_cases)
    assert matcher.effort <= 0


def test_a_finding_has_the_clauses_of_its_fault() -> None:
    specs = [s for s in SPECS if s.op == "LSTM"]
    failing_cases, results = failing(target_with("lengths.ignored"), specs)
    explained = named(failing_cases)
    results = [structs.replace(r, diagnosis=explained.get(r.case, ())) for r in results]
    (finding,) = [f for f in findings_of(results, {s.id: SpecProbe(s) for s in specs}) if f["fault"]]
    assert finding["fault"] == "lengths.ignored"
    assert finding["clauses"] == ["lstm.lengths"]
    assert finding["statuses"] == ["implied"]
    assert finding["conditions"] in finding["title"]
    assert set(finding["cases"]) == set(explained)


def test_two_interpretations_of_one_clause_are_a_finding() -> None:
    """Every result is legal, but the target clips the argument of h in bidirectional cases only."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        interpretation = "clipped" if node.attributes.get("direction") == "bidirectional" else "unclipped"
        right = evaluate(node, inputs, Interpretations(cell_output_clip=interpretation))
        return {name: array.astype(inputs["X"].dtype) for name, array in right.items()}

    specs = [
        CaseSpec("LSTM", 14, T=3, N=2, I=3, H=4, bias=True, initial="all", clip=0.125, direction=d, seed=seed)
        for d in ("forward", "bidirectional")
        for seed in (0, 1)
    ]
    _, results = failing(target, specs)
    assert {r.verdict.value for r in results} == {"pass"}
    (finding,) = findings_of(results, {s.id: SpecProbe(s) for s in specs})
    assert finding["kind"] == "mixed"
    assert finding["clauses"] == ["lstm.clip.cell-output"]


def test_a_refusal_is_no_failing_case() -> None:
    def refusing(node: Node, inputs: Arrays) -> Arrays:
        raise IllegalNode("lstm.clip", "no")

    case = build_case(SPECS[0])
    assert failing_case_of("x", case.trial, staged_outcome(case.trial, refusing), (), (1, 1)) is None


def _slightly_off(node: Node, inputs: Arrays) -> Arrays:
    """Compute Tanh by two terms of its series for small arguments, where they are nearly right."""
    tanh = ACTIVATIONS["Tanh"]

    def value(x: NDArray[Any], alpha: float, beta: float) -> NDArray[Any]:
        return np.where(np.abs(x) < 0.125, x - x**3 / 3, np.tanh(x))

    computation = computation_of(node, inputs)
    near = replace(tanh, value=value, slope=None)
    outputs = Compute()(with_functions(computation, lambda f, *_: replace(f, kind=near) if f.kind is tanh else f))
    return {name: outputs[name].astype(inputs["X"].dtype) for name in node.outputs}


def _part_of_the_sum(terms: int) -> Target:
    """Return a target that sums at most ``terms`` products of X."""

    def run(node: Node, inputs: Arrays) -> Arrays:
        X = inputs["X"].copy()
        X[..., terms:] = 0
        right = evaluate(node, {**inputs, "X": X})
        return {name: array.astype(inputs["X"].dtype) for name, array in right.items()}

    return run


LONG_SUMS = [
    s
    for version in (14, 22)
    for s in profile("core", "GRU", version)
    if s.type in ("float16", "bfloat16") and s.data == "one-sign" and not s.illegal
]


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "chosen"),
    [
        (
            _slightly_off,
            lambda s: s.type == "float32" and s.op == "RNN" and s.data == "dense" and s.neighbours == "none",
        ),
        (_part_of_the_sum(100), LONG_SUMS.__contains__),
    ],
)
def test_what_fits_by_chance_is_not_believed(target: Target, chosen: Callable[[CaseSpec], bool]) -> None:
    """In small cases, or with wide error bounds, some of hundreds of faults give the same numbers by chance."""
    specs = [
        s for op in ("GRU", "RNN") for v in (14, 22) for s in profile("core", op, v) if not s.illegal and chosen(s)
    ]
    failing_cases, _ = failing(target, specs)
    assert failing_cases
    assert named(failing_cases) == {}


@pytest.mark.long
def test_a_prediction_too_wide_to_tell_numbers_from_zero_speaks_for_nothing() -> None:
    """Where a gate saturates, 0 with a wide error bound contains any small number that a truncated sum gives."""
    failing_cases, _ = failing(_part_of_the_sum(128), LONG_SUMS)
    assert failing_cases
    assert {*named(failing_cases).values()} == {("sizes.input-past-128",)}


def test_numbers_far_smaller_than_is_right_speak_for_a_fault_all_the_same() -> None:
    """Sigmoid saturates where HardSigmoid does not: 1e-7 with an error bound as large, where 8 is right."""
    chosen = [s for s in profile("core", "GRU", 14) if s.type == "float32" and s.data == "one-sign" and s.T == 1]
    failing_cases, _ = failing(target_with("activations.ignored"), chosen)
    assert failing_cases
    assert named(failing_cases) == {w.case: ("activations.ignored",) for w in failing_cases}


def test_memory_that_was_never_written_is_known_by_its_place() -> None:
    """The memory holds other numbers in each run."""
    numbers = iter(range(10**6))

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = dict(target_with()(node, inputs))
        lengths = inputs.get("sequence_lens")
        if lengths is not None and node.attributes.get("layout", 0) == 0:
            garbage = np.reshape([next(numbers) for _ in range(outputs["Y_h"].size)], outputs["Y_h"].shape)
            outputs["Y_h"] = np.where((lengths == 0)[:, np.newaxis], garbage.astype(np.float32), outputs["Y_h"])
        return outputs

    failing_cases, _ = failing(target, [s for s in SPECS_OF_ALL_SEEDS if s.lengths == "empty" and s.op == "RNN"])
    assert failing_cases
    assert set(named(failing_cases).values()) == {("empty.uninitialized",)}


def test_of_two_faults_that_explain_all_that_is_told_which_passing_cases_do_not_contradict() -> None:
    """The fault "all omitted coefficients are 0" explains the failures too, but other functions have their defaults."""
    target = target_with("coefficients.default-thresholded-relu")
    specs = [s for s in SPECS_OF_ALL_SEEDS if s.op == "RNN" and s.activations]
    probes = {s.id: SpecProbe(s) for s in specs}
    kept, results = Kept(), []
    for spec in specs:
        outcome = staged_outcome(build_case(spec).trial, target)
        judgement = judge(build_case(spec).trials, [outcome])
        kept.offer(CaseRun(probes[spec.id], probes[spec.id].prepare(), (outcome,), judgement))
        results.append(result_of(SpecProbe(spec), "staged", judgement, 0.0, None))
    diagnosis = explained(results, probes, kept, "standard")
    assert diagnosis
    assert set(diagnosis.values()) == {("coefficients.default-thresholded-relu",)}


def test_interpretations_that_no_right_result_tells_of_are_tried() -> None:
    """Omitted coefficients of Affine are 0, one of two interpretations; the default of ThresholdedRelu is wrong."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        computation = computation_of(node, inputs, Interpretations(defaults="zero"))
        fault = FAULTS["coefficients.default-thresholded-relu"]
        outputs = fault.wrong(Compute(attributes=node.attributes), computation)
        return {name: outputs[name].astype(inputs["X"].dtype) for name in node.outputs}

    class Zeros(TargetEvidence):
        def counterexamples(self, fault: Fault, op: str) -> int:
            return int(fault.id.endswith("zero"))

    specs = [s for s in SPECS_OF_ALL_SEEDS if s.op == "RNN" and "ThresholdedRelu" in (s.activations or ())]
    failing_cases, _ = failing(target, [s for s in specs if not s.alpha])
    explained = named(failing_cases, evidence=Zeros("standard"))
    assert failing_cases
    assert set(explained.values()) == {("coefficients.default-thresholded-relu",)}


@pytest.mark.long
def test_faults_that_do_not_go_together_explain_nothing() -> None:
    """Two faults are incompatible for one of three reasons.

    Both replace the arithmetic, one needs a property that the other's numbers lack, or both change the form.
    """
    spec = next(s for s in profile("core", "GRU", 14) if s.type == "float64" and s.data == "dense" and not s.illegal)
    inputs = build_case(spec).trial.feeds[0].inputs
    outputs = {name: array.astype(inputs["X"].dtype) for name, array in evaluate(spec.node, inputs).items()}
    faults = [d for d in FAULTS.values() if d.applies("GRU", 14, "float64") and not d.accepts]
    arithmetic = FAULTS["precision.computed-in-single"]
    observation = operator_for(spec.node).observation(spec.node, (Run(inputs, outputs),), "standard")
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
    ignoring = target_with("clip.ignored")

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = dict(ignoring(node, inputs))
        if "B" in inputs:
            outputs = {name: (array * 0.9 + 0.01).astype(array.dtype) for name, array in outputs.items()}
        return outputs

    failing_cases, _ = failing(target, SPECS[::2])
    explained_by = named(failing_cases)
    plain = {w.case for w in failing_cases if "B" not in w.runs[0].inputs}
    assert plain
    assert {case: explained_by.get(case) for case in plain} == dict.fromkeys(plain, ("clip.ignored",))
    assert plain == set(explained_by)


def test_structure_is_named_in_whatever_arithmetic() -> None:
    """The target computes float64 in float32 and ignores clip: no fault fits within float64's accuracy class."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        single = {name: a.astype(np.float32) if a.dtype == np.float64 else a for name, a in inputs.items()}
        outputs = target_with("clip.ignored")(node, {n: a.astype(np.float64) for n, a in single.items()})
        return {name: array.astype(np.float32).astype(inputs["X"].dtype) for name, array in outputs.items()}

    specs = [s for v in (7, 14, 22) for s in profile("core", "RNN", v) if s.type == "float64" and s.clip and s.T < 8]
    failing_cases, _ = failing(target, [s for s in specs if not s.illegal][:8])
    assert failing_cases
    by_class = TargetEvidence("standard")
    by_class.__dict__["arithmetics"] = {"float64": ("f32-math",)}
    assert set(named(failing_cases, 5000).values()) != {("clip.ignored",)}
    assert set(named(failing_cases, 5000, by_class).values()) >= {("clip.ignored",)}


def test_an_arithmetic_that_some_results_show_is_looked_for_in_all() -> None:
    def in_single(node: Node, inputs: Arrays) -> Arrays:
        # The kernel has its own order of summation, so that no hypothesis has the same roundings.
        narrow = {name: array.astype(np.float32) for name, array in inputs.items()}
        outputs = run_kernel(node, narrow, Style("lanes", order="lanes"))
        return {name: array.astype(np.float64) for name, array in outputs.items()}

    specs = [CaseSpec("RNN", 14, type="float64", T=3, N=2, I=19, H=24, bias=True, seed=seed) for seed in (1, 2)]
    probes = {spec.id: SpecProbe(spec) for spec in specs}
    kept, results = Kept(), []
    for spec in specs:
        outcome = staged_outcome(build_case(spec).trial, in_single)
        judgement = judge(build_case(spec).trials, [outcome])
        kept.offer(CaseRun(probes[spec.id], probes[spec.id].prepare(), (outcome,), judgement))
        results.append(result_of(probes[spec.id], "staged", judgement, 0.0, None))
    assert [result.accuracy for result in results] == ["f32-math", "f32-math"]
    # Small or saturated values have no signature by which a single case could be identified.
    seen, unseen = results[0], structs.replace(results[1], accuracy=None)
    named = ("precision.computed-in-single",)
    assert explained([seen, unseen], probes, kept, "standard") == dict.fromkeys(probes, named)


def test_a_fault_that_is_known_in_two_places_is_one_fault() -> None:
    plain = CaseSpec("LSTM", 14, T=4, N=3, H=5, bias=True, lengths="ragged")
    specs = [replace(plain, outputs=outputs) for outputs in (("", "Y_h"), ("", "", "Y_c"))]
    cases, _ = failing(target_with("lengths.ignored"), specs)
    places = [d for d in map(fault_named, ("lengths.ignored@Y_h", "lengths.ignored@Y_c")) if d is not None]
    matcher = Matcher(ObservedCases(TargetEvidence("standard")), 0)
    matcher.known += places
    assert {*matcher.names(cases).values()} == {("lengths.ignored",)}
    assert matcher.known == [FAULTS["lengths.ignored"]]
