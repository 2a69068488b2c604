"""Experiments: the smallest case that fails in the same way, and the conditions that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs
from numpy.typing import NDArray

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.cases.specs.family import simpler_cases
from onnxspec.conformance.diagnosis import causes, experiments
from onnxspec.conformance.diagnosis.causes import DiagnosisContext
from onnxspec.conformance.diagnosis.diagnose import with_causes
from onnxspec.conformance.diagnosis.experiments import Budget, Shrunk, alike, shrink
from onnxspec.conformance.diagnosis.explainer import failing_case_of_tried
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.diagnosis.needs import UNSAID, Need, axis_of, conditions_of, stated
from onnxspec.conformance.diagnosis.observed_case import ObservedCases
from onnxspec.conformance.diagnosis.target_evidence import TargetEvidence
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.proof.staged import staged_outcome
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.workers.job import Job, Outcome
from onnxspec.reference import FAULTS, Node, evaluate, operator_for, run_fault

Arrays = Mapping[str, NDArray[Any]]
Target = Callable[[Node, Arrays], Arrays]

RICH = CaseSpec(
    "LSTM",
    14,
    type="float16",
    direction="bidirectional",
    T=7,
    N=3,
    I=4,
    H=9,
    bias=True,
    lengths="ragged",
    initial="all",
    peepholes=True,
    clip=0.25,
    outputs=("Y", "Y_h", "Y_c"),
    weights="initializer",
    dimensions="symbolic",
    activations=("HardSigmoid", "Tanh", "Relu", "Sigmoid", "Softsign", "Tanh"),
    seed=3,
)


class Crash(Exception):
    """End of the target's process."""


def one_of(probe: Probe, target: Target) -> CaseRun:
    prepared = probe.prepare()
    outcomes = []
    for trial in prepared.trials:
        try:
            outcomes.append(staged_outcome(trial, target))
        except Crash as crash:
            outcomes.append(Outcome(trial.key, "crashed", message=str(crash), signal="SIGSEGV"))
    return CaseRun(probe, prepared, tuple(outcomes), prepared.judge(outcomes, "standard"))


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> Callable[[Target], None]:
    """Return a function that replaces the target behind a worker by a target in this process."""

    def put(target: Target) -> None:
        def tried(process: object, probes: Sequence[Probe], accuracy: str) -> Iterator[CaseRun]:
            return (one_of(probe, target) for probe in probes)

        for module in (experiments, causes):
            monkeypatch.setattr(module, "tried", tried)

    return put


def needs_in_words(needs: Sequence[Need]) -> list[str]:
    """Return the words for the needs of a case."""
    return [conditions_of(need)[0].words for need in needs if need.field not in UNSAID]


def shrunk(target: Target, spec: CaseSpec = RICH, cases: float = math.inf) -> Shrunk:
    first = one_of(SpecProbe(spec), target)
    return shrink(None, first, alike(first), "standard", Budget(cases))  # type: ignore[arg-type]


def fails(spec: CaseSpec, target: Target) -> bool:
    return one_of(SpecProbe(spec), target).judgement.verdict is Verdict.WRONG


def conforming(node: Node, inputs: Arrays) -> Arrays:
    return {name: a.astype(inputs["X"].dtype) for name, a in evaluate(node, inputs).items()}


def mirroring(node: Node, inputs: Arrays) -> Arrays:
    """Reverse short rows from the end of the tensor."""
    return run_fault(FAULTS["lengths.reverse-from-end"], node, inputs)


def test_what_remains_is_what_it_takes(on: Any) -> None:
    on(mirroring)
    result = shrunk(mirroring)
    assert result.complete
    assert result.one.probe.spec == CaseSpec("LSTM", 14, direction="reverse", T=2, lengths="short")  # type: ignore[attr-defined]
    assert {n.field for n in result.needs} == {"direction", "lengths"}
    assert needs_in_words(result.needs) == ["the reverse direction", "a row shorter than the sequence"]
    assert all(n.verdict is Verdict.PASS for n in result.needs)


def test_crashes_are_shrunk_like_wrong_numbers(on: Any) -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        if node.attributes.get("direction") == "bidirectional" and "activations" in node.attributes:
            raise Crash("died at 0x1234")
        return conforming(node, inputs)

    on(target)
    result = shrunk(target)
    usual = ("Sigmoid", "Tanh", "Tanh")
    assert result.one.probe.spec == CaseSpec("LSTM", 14, direction="bidirectional", activations=usual * 2)  # type: ignore[attr-defined]
    assert needs_in_words(result.needs) == ["both directions", "activations Sigmoid/Tanh"]
    # Each crash costs a process: only a few of the tries may fail.
    assert result.tries < 60


def test_another_failure_does_not_take_its_place(on: Any) -> None:
    """Without lengths the target fails in another way: it crashes."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        if "sequence_lens" not in inputs:
            raise Crash("no lengths")
        return mirroring(node, inputs)

    on(target)
    result = shrunk(target)
    assert result.one.judgement.verdict is Verdict.WRONG
    assert result.one.probe.spec.lengths == "short"  # type: ignore[attr-defined]


def test_what_a_case_is_shrunk_to_is_legal(on: Any) -> None:
    """The shrinker removes one of two directions, with its function and the coefficients of that function."""
    graph_nodes: list[Node] = []

    def target(node: Node, inputs: Arrays) -> Arrays:
        graph_nodes.append(node)
        return {name: array + 1 for name, array in conforming(node, inputs).items()}

    on(target)
    functions = ("ScaledTanh", "HardSigmoid")
    spec = CaseSpec("RNN", 7, direction="bidirectional", activations=functions, alpha=(0.5, 0.5), beta=(0.5, 0.25))
    assert shrunk(target, spec).one.probe.spec == CaseSpec("RNN", 7)  # type: ignore[attr-defined]
    for node in graph_nodes:
        functions = node.attributes.get("activations", (b"Tanh",))
        assert all(
            len(node.attributes.get(f"activation_{coefficient}", ())) <= len(functions)
            for coefficient in ("alpha", "beta")
        )
    spec = CaseSpec("RNN", 7, activations=("Tanh",), beta=(0.5, 0.5))
    assert experiments.variant(SpecProbe(spec)) is None


def test_of_sizes_the_least_that_fails_is_told(on: Any) -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        return {n: a * (2 if inputs["R"].shape[2] > 4 else 1) for n, a in conforming(node, inputs).items()}

    on(target)
    result = shrunk(target)
    assert needs_in_words(result.needs) == ["5 units or more"]


def test_what_other_numbers_show_in_smaller_sizes_is_no_condition_of_size(on: Any) -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        wrong = bool((inputs["X"] > 0.9).any())  # only when one of many numbers is large
        return {n: a + np.asarray(wrong, a.dtype) for n, a in conforming(node, inputs).items()}

    on(target)
    spec = next(s for seed in range(99) if (s := CaseSpec("RNN", 14, T=7, N=5, I=3, seed=seed)) and fails(s, target))
    assert shrunk(target, spec).needs == ()


def test_when_the_budget_is_spent_nothing_is_said_that_was_not_tried(on: Any) -> None:
    on(mirroring)
    result = shrunk(mirroring, cases=0)
    assert not result.complete
    assert result.needs == ()
    assert result.one.probe.spec == RICH  # type: ignore[attr-defined]


def test_what_comes_and_goes_has_no_conditions(on: Any) -> None:
    """The target crashes once and never again: no trait of the case is the cause."""
    runs = iter(range(10**6))

    def target(node: Node, inputs: Arrays) -> Arrays:
        if next(runs) == 0:
            raise Crash("once")
        return conforming(node, inputs)

    on(target)
    result = shrunk(target)
    assert result.one.judgement.verdict is Verdict.CRASHED
    assert result.needs == ()
    assert not result.complete


def test_a_known_fault_stays_the_one_that_is_looked_at() -> None:
    ignoring = one_of(SpecProbe(RICH), lambda n, i: run_fault(FAULTS["bias.ignored"], n, i))
    other = one_of(SpecProbe(RICH), lambda n, i: run_fault(FAULTS["clip.ignored"], n, i))

    def holds(one: CaseRun) -> bool:
        case = failing_case_of_tried(one)
        return case is not None and observed[case].fit((FAULTS["bias.ignored"],)) is not None

    observed = ObservedCases(TargetEvidence("standard"))
    assert holds(ignoring)
    assert not holds(other)


def test_simpler_cases_are_legal_and_simpler() -> None:
    for change in simpler_cases(RICH):
        build_case(change.spec)
        assert getattr(change.spec, change.field) != getattr(RICH, change.field)
    assert {c.field for c in simpler_cases(RICH)} >= {
        "type",
        "direction",
        "T",
        "N",
        "bias",
        "lengths",
        "outputs",
        "seed",
    }
    assert simpler_cases(CaseSpec("LSTM", 14)) == []


def test_coefficients_go_with_their_functions() -> None:
    names = ("Sigmoid", "LeakyRelu", "Elu", "Sigmoid", "LeakyRelu", "Tanh")
    spec = CaseSpec("LSTM", 14, direction="bidirectional", activations=names, alpha=(1.0, 2.0, 3.0))
    one_way = [c.spec for c in simpler_cases(spec, "direction")]
    assert [(s.direction, s.activations, s.alpha) for s in one_way] == [
        ("forward", names[:3], (1.0, 2.0)),
        ("reverse", names[3:], (3.0,)),
    ]


def _findings(target: Target, specs: Sequence[CaseSpec]) -> list[dict[str, Any]]:
    probes: dict[str, Probe] = {s.id: SpecProbe(s) for s in specs}
    kept, results = Kept(), []
    for probe in probes.values():
        case_run = one_of(probe, target)
        kept.offer(case_run)
        results.append(result_of(probe, "staged", case_run.judgement, 0.0, None))
    context = DiagnosisContext(Silent(), "standard", lambda p: f"explain {p.id}", results, probes, kept)  # type: ignore[arg-type]
    findings, _ = with_causes(findings_of(results, probes), context, Budget(math.inf))
    assert sum(len(f["cases"]) for f in findings) == sum(r.failing for r in results)
    assert all(f["smallest"] in probes for f in findings)
    return findings


def test_failures_that_are_alike_are_told_apart_by_their_causes(on: Any) -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        if "P" in inputs or "clip" in node.attributes:
            raise Crash("died")
        return conforming(node, inputs)

    on(target)
    plain = CaseSpec("LSTM", 14, T=2, N=2, H=3)
    specs = [
        *(replace(plain, peepholes=True, bias=b, seed=s) for b in (False, True) for s in (0, 1)),
        *(replace(plain, clip=0.5, T=3, bias=b, seed=s) for b in (False, True) for s in (0, 1)),
        plain,
    ]
    findings = _findings(target, specs)
    assert {(f["conditions"], len(f["cases"])) for f in findings} == {("peepholes P", 4), ("clip", 4)}
    assert all(f["tried"] and f["title"] == f"crashed (with {f['conditions']})" for f in findings)


def test_the_output_that_the_smallest_case_keeps_is_no_condition_if_others_show_the_fault(on: Any) -> None:
    on(partial(run_fault, FAULTS["lengths.ignored"]))
    spec = CaseSpec("LSTM", 14, T=4, N=3, H=5, lengths="ragged", outputs=("Y", "Y_h", "Y_c"))
    (finding,) = _findings(partial(run_fault, FAULTS["lengths.ignored"]), [spec])
    assert (finding["fault"], finding["conditions"]) == ("lengths.ignored", "a row shorter than the sequence")


class Silent:
    """Process that refuses an invalid case."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        return (Outcome(job.key, "refused", "load") for job in jobs)


def test_what_nothing_explains_is_not_shrunk_to_what_a_known_fault_explains(on: Any) -> None:
    """Without clip the target still ignores the bias, and that is another finding."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = run_fault(FAULTS["bias.ignored"], node, inputs)
        return {n: a + (1 if "clip" in node.attributes else 0) for n, a in outputs.items()}

    on(target)
    known, unknown = CaseSpec("RNN", 14, bias=True), CaseSpec("RNN", 14, bias=True, clip=1.0)
    probes: dict[str, Probe] = {s.id: SpecProbe(s) for s in (known, unknown)}
    judged = [one_of(probe, target) for probe in probes.values()]
    results = [result_of(case_run.probe, "staged", case_run.judgement, 0.0, None) for case_run in judged]
    results[0] = structs.replace(results[0], diagnosis=("bias.ignored",))
    context = DiagnosisContext(Silent(), "standard", lambda p: p.id, results, probes, Kept())  # type: ignore[arg-type]
    (finding,) = [f for f in findings_of(results, probes) if not f["fault"]]
    (cause,) = causes.causes_of(finding, context, Budget(math.inf))
    assert needs_in_words(cause.shrunk.needs) == ["clip"]


def test_a_condition_that_was_not_tried_says_so(on: Any) -> None:
    results: list[Result] = []
    probes: dict[str, Probe] = {}
    for spec in (CaseSpec("LSTM", 14, bias=b, seed=s) for b in (False, True) for s in (0, 1, 2)):
        probe = probes[spec.id] = SpecProbe(spec)

        def target(node: Node, inputs: Arrays) -> Arrays:
            if "B" in inputs:
                raise Crash("died")
            return conforming(node, inputs)

        results.append(result_of(probe, "staged", one_of(probe, target).judgement, 0.0, None))
    (finding,) = findings_of(results, probes)
    assert not finding["tried"]
    assert finding["title"] == "crashed (seen only with bias)"


def _need(name: str, *more: Any, **given: Any) -> Need:
    return Need(name, *more, axis=axis_of(CaseSpec("LSTM", 14), name), **given)


def test_a_condition_of_one_case_is_none_of_a_finding_whose_other_cases_lack_it() -> None:
    needs = [
        _need("clip", 0.25, (None,), Verdict.PASS),
        _need("outputs", ("Y", "", "Y_c"), (("Y",),), Verdict.PASS),
        _need("H", 2, (1,), Verdict.PASS),
        _need("activations", ("Relu",), (None,), Verdict.PASS),
    ]
    gru = CaseSpec("GRU", 14, clip=0.5, H=5, outputs=("Y", "Y_h"))

    def words(*specs: CaseSpec) -> list[str]:
        return [c.words for c in stated(needs, [SpecProbe(s) for s in specs], []).conditions]

    assert words(RICH) == ["clip", "outputs Y, Y_c", "2 units or more", "activations Relu"]
    assert words(RICH, gru) == ["clip", "2 units or more"]
    assert words(gru, replace(gru, H=1)) == ["clip"]


@pytest.mark.parametrize("name", ["reach", "row_order", "zeros", "extremes", "alike"])
def test_conditions_are_words_not_values_of_fields(name: str) -> None:
    (axis,) = (axis for axis in CaseSpec.axes if axis.name == name)
    for value in axis.values[1:]:
        (condition,) = conditions_of(_need(name, value, (axis.values[0],), Verdict.PASS))
        assert condition.words != f"{name} {value}"
        assert condition.holds(SimpleNamespace(**{name: value}))
    absent = _need("absent", ("bias", "past_state"), ((),), Verdict.PASS)
    assert conditions_of(absent)[0].words == "no bias and past_state"


def test_a_condition_that_cases_meet_which_pass_is_only_seen_with_it() -> None:
    needs = [_need("lengths", "short", ("absent", "full"), Verdict.PASS)]
    short, ragged = (SpecProbe(CaseSpec("RNN", 14, T=4, N=3, lengths=lengths)) for lengths in ("short", "ragged"))
    assert stated(needs, [short], []).passing == 0
    state = stated(needs, [short], [ragged])
    assert ([c.words for c in state.conditions], state.passing) == (["a row shorter than the sequence"], 1)
    assert stated(needs, [short], [ragged], lambda probe: False).passing == 0


def test_a_narrower_condition_rests_on_more_than_a_few_cases() -> None:
    needs = [_need("direction", "reverse", ("forward",), Verdict.PASS)]
    both = SpecProbe(CaseSpec("RNN", 14, direction="bidirectional"))
    reverse = [SpecProbe(CaseSpec("RNN", 14, direction="reverse", T=T)) for T in (1, 2, 3, 4)]
    few, many = (stated(needs, members, [both]) for members in (reverse[:2], reverse))
    assert ([c.words for c in few.conditions], few.passing) == (["the reverse direction"], 1)
    assert ([c.words for c in many.conditions], many.passing) == (["the reverse direction alone"], 0)


def _of_sizes(value: int, members: Sequence[int], passing: Sequence[int], need: Need | None = None) -> list[str]:
    need = need or _need("H", value, (1, value - 1), Verdict.PASS, passed=(1, value - 1))
    probes = [[SpecProbe(CaseSpec("GRU", 14, H=H)) for H in sizes] for sizes in (members, passing)]
    return [c.words for c in stated([need], *probes).conditions]


def test_a_threshold_lies_between_the_largest_that_passes_and_the_smallest_that_fails() -> None:
    assert _of_sizes(5, [5, 9], [2, 4]) == ["5 units or more"]
    assert _of_sizes(5, [5], [6, 37]) == ["exactly 5 units"]
    assert _of_sizes(5, [5, 6], [9]) == ["5 to 6 units"]
    assert _of_sizes(8, [8, 16, 32], [9, 15, 33]) == ["a multiple of 8 units"]
    coarse = _need("H", 8, (1, 4), Verdict.PASS, passed=(1, 4))
    assert _of_sizes(8, [8], [], coarse) == ["8 units or more (4 pass)"]


def test_what_fails_at_one_size_only_is_said_to_be_that_size(on: Any) -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        return {n: a * (2 if inputs["R"].shape[2] == 5 else 1) for n, a in conforming(node, inputs).items()}

    on(target)
    findings = _findings(target, [CaseSpec("GRU", 14, T=2, H=H, bias=b) for H in (5, 6, 9) for b in (False, True)])
    assert [(f["conditions"], len(f["cases"])) for f in findings] == [("exactly 5 units", 2)]


def test_a_long_run_before_is_no_condition_of_steps(on: Any) -> None:
    """A scratch buffer is too small from 18 steps on; a case of 16 steps whose session ran 18 before shows it too."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        return {n: a * (2 if len(inputs["X"]) > 17 else 1) for n, a in conforming(node, inputs).items()}

    on(target)
    assert needs_in_words(shrunk(target, CaseSpec("RNN", 14, T=16, dimensions="symbolic", reruns="sizes")).needs) == [
        "18 steps or more"
    ]


@pytest.mark.long
def test_a_condition_of_small_numbers_is_one_of_cases_with_small_numbers(on: Any) -> None:
    """Small numbers become zero in LSTM, all biases are ignored in GRU: a finding of one says nothing of the other."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        if node.op_type == "LSTM" and abs(inputs["X"]).max() < 2.0**-5:
            return {n: 0 * a for n, a in conforming(node, inputs).items()}
        if node.op_type == "GRU" and "B" in inputs:
            return {n: 3 * a for n, a in conforming(node, inputs).items()}
        return conforming(node, inputs)

    on(target)
    lstm = [CaseSpec("LSTM", 14, T=2, N=2, H=3, data=d, bias=b) for d in ("small", "dense") for b in (False, True)]
    gru = [CaseSpec("GRU", 14, T=2, N=2, H=3, bias=b, seed=s, data=d) for b in (False, True) for s in (0, 1)
           for d in ("small", "dense")]  # fmt: skip
    specs = [*lstm, *gru]
    findings = _findings(target, specs)
    by_words = {f["conditions"]: f for f in findings}
    assert set(by_words) == {"small numbers", "bias"}
    assert by_words["small numbers"]["operators"] == ["LSTM"]
    assert by_words["bias"]["operators"] == ["GRU"]
    assert {*by_words["small numbers"]["cases"]} == {s.id for s in lstm if s.data == "small"}
    assert {*by_words["bias"]["cases"]} == {s.id for s in gru if s.bias}


def test_a_failure_that_comes_and_goes_is_asked_for_as_often_as_it_takes(on: Any) -> None:
    runs = iter(range(10**6))

    def target(node: Node, inputs: Arrays) -> Arrays:
        broken = "clip" in node.attributes and next(runs) % 3 == 0
        return {n: a * (2 if broken else 1) for n, a in conforming(node, inputs).items()}

    on(target)
    specs = [CaseSpec("GRU", 14, T=3, N=2, H=4, clip=0.5, bias=b, seed=s) for b in (False, True) for s in range(4)]
    assert {f["conditions"] for f in _findings(target, specs)} == {"clip"}


def test_a_case_that_is_none_of_another_operator_is_not_asked_there() -> None:
    spec = CaseSpec("RNN", 22, T=2, activations=("Relu", "Elu"), direction="bidirectional", outputs=("Y",))
    cause: Any = SimpleNamespace(shrunk=SimpleNamespace(one=SimpleNamespace(probe=SpecProbe(spec))))
    context: Any = SimpleNamespace(run=lambda probes, budget: pytest.fail("a forbidden model is asked for"))
    assert causes._fails_in("LSTM", cause, context, Budget(9)) is False


def test_two_coefficients_are_no_scale_and_zero_point() -> None:
    assert needs_in_words([_need("alpha", (0.5, 0.25), (None,), Verdict.PASS)]) == ["activation_alpha"]
    for functions, words in (
        ("Affine Tanh Tanh", "activations Affine/Tanh"),
        ("Affine Tanh Elu", "a list of activations"),
    ):
        assert needs_in_words([_need("activations", tuple(functions.split()), (None,), Verdict.PASS)]) == [words]
    axis = axis_of(profile("smoke", "ExtendedLSTM", 1)[0], "x")
    assert needs_in_words([Need("x", (0.5, 128), (None,), Verdict.PASS, axis=axis)]) == ["x_scale"]


def test_conditions_have_the_words_of_their_axis_the_narrowest_first() -> None:
    spec = CaseSpec("GRU", 14, weights="initializer", held="overridden")
    features = experiments._features(spec, replace(spec, held="fixed"), axis_of(spec, "held"))
    need = Need("held", "overridden", ("fixed",), Verdict.PASS, features=features)
    assert needs_in_words([need]) == ["constants that are overridden"]
    assert [conditions_of(need)[0].holds(replace(spec, held=held)) for held in ("fixed", "listed", "overridden")] == [
        False,
        False,
        True,
    ]


def test_levels_that_are_off_are_not_shrunk_to_numbers_that_are_off(on: Any) -> None:
    def in_half(node: Node, inputs: Arrays) -> Arrays:
        answer = operator_for(node).answer(node, inputs)
        if not node.codecs:
            return {name: array.astype(np.float16).astype(np.float32) for name, array in answer.items()}
        return {
            name: node.codecs[name].levels(node.codecs[name].dequantized(array.astype(np.int64)).astype(np.float16))
            .astype(array.dtype)
            for name, array in answer.items()
        }  # fmt: skip

    on(in_half)
    spec = CaseSpec("GRU", 14, T=4, N=3, I=2, H=5, bias=True, quantization="u16", channels="rows")
    assert one_of(SpecProbe(spec), in_half).judgement.verdict is Verdict.INACCURATE
    assert one_of(SpecProbe(CaseSpec("GRU", 14)), in_half).judgement.verdict is Verdict.INACCURATE
    result = shrunk(in_half, spec)
    assert result.one.judgement.accuracy is not None
    assert result.one.judgement.accuracy.startswith("qdq-")
    assert needs_in_words(result.needs) == ["levels of 16 bits"]


def test_experiments_after_a_short_run_cost_as_much_as_it_is_worth() -> None:
    spec = CaseSpec("RNN", 14)
    passing, unstable = (
        result_of(SpecProbe(spec), "t", Judgement(verdict), 0.0, None) for verdict in (Verdict.PASS, Verdict.UNSTABLE)
    )
    assert [causes.experiments_of([passing] * count).cases for count in (1, 54, 450, 2400, 4000)] == [
        602,
        708,
        1200,
        1200,
        2000,
    ]
    # Intermittent failures are tried many times.
    assert causes.experiments_of([passing, unstable]).cases == 1200
