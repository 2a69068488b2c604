"""Experiments: the smallest case that fails in the same way, and the conditions that it needs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec, profile
from onnxspec.cases.specs.family import simpler_cases
from onnxspec.conformance.diagnosis import causes, experiments
from onnxspec.conformance.diagnosis.causes import DiagnosisContext
from onnxspec.conformance.diagnosis.diagnose import with_causes
from onnxspec.conformance.diagnosis.experiments import Budget, Shrunk, alike, shrink
from onnxspec.conformance.diagnosis.findings import findings_of
from onnxspec.conformance.diagnosis.needs import UNSAID, Need, axis_of, conditions_of, stated
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.result import result_of
from onnxspec.conformance.workers.job import Job, Outcome
from onnxspec.reference import FAULTS, Node, operator_for, operator_names, run_fault

from .in_process import Arrays, Crash, Target, case_run, conforming, making, results_on

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


On = Callable[[Target], Target]


@pytest.fixture
def on(monkeypatch: pytest.MonkeyPatch) -> On:
    """Return a function that puts a target in this process in place of the one behind a worker, and returns it."""

    def put(target: Target) -> Target:
        def tried(process: object, probes: Sequence[Probe], accuracy: str) -> Iterator[CaseRun]:
            return (case_run(probe, target) for probe in probes)

        for module in (experiments, causes):
            monkeypatch.setattr(module, "tried", tried)
        return target

    return put


class Silent:
    """Process that refuses an invalid case."""

    def run(self, jobs: Iterable[Job]) -> Iterator[Outcome]:
        return (Outcome(job.key, "refused", "load") for job in jobs)


def needs_in_words(needs: Sequence[Need]) -> list[str]:
    """Return the words for the needs of a case."""
    return [conditions_of(need)[0].words for need in needs if need.field not in UNSAID]


def shrunk(target: Target, spec: CaseSpec = RICH, cases: float = math.inf) -> Shrunk:
    first = case_run(spec, target)
    return shrink(None, first, alike(first), "standard", Budget(cases))  # type: ignore[arg-type]


def smallest(result: Shrunk) -> CaseSpec:
    assert isinstance(result.one.probe, SpecProbe)
    assert isinstance(result.one.probe.spec, CaseSpec)
    return result.one.probe.spec


def scaled_where(wrong: Callable[[Node, Arrays], bool], factor: float = 2) -> Target:
    """Return a target whose outputs are too large by a factor where a condition holds."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        return {n: a * (factor if wrong(node, inputs) else 1) for n, a in conforming(node, inputs).items()}

    return target


def crashing_where(wrong: Callable[[Node, Arrays], bool], otherwise: Target = conforming) -> Target:
    def target(node: Node, inputs: Arrays) -> Arrays:
        if wrong(node, inputs):
            raise Crash("died at 0x1234")
        return otherwise(node, inputs)

    return target


def mirroring(node: Node, inputs: Arrays) -> Arrays:
    """Reverse short rows from the end of the tensor."""
    return run_fault(FAULTS["lengths.reverse-from-end"], node, inputs)


def test_what_remains_is_what_it_takes(on: On) -> None:
    result = shrunk(on(mirroring))
    assert result.complete
    assert smallest(result) == CaseSpec("LSTM", 14, direction="reverse", T=2, lengths="short")
    assert {n.field for n in result.needs} == {"direction", "lengths"}
    assert needs_in_words(result.needs) == ["the reverse direction", "a row shorter than the sequence"]
    assert all(n.verdict is Verdict.PASS for n in result.needs)


def test_crashes_are_shrunk_like_wrong_numbers(on: On) -> None:
    target = on(
        crashing_where(lambda n, _: n.attributes.get("direction") == "bidirectional" and "activations" in n.attributes)
    )
    result = shrunk(target)
    usual = ("Sigmoid", "Tanh", "Tanh")
    assert smallest(result) == CaseSpec("LSTM", 14, direction="bidirectional", activations=usual * 2)
    assert needs_in_words(result.needs) == ["both directions", "activations Sigmoid/Tanh"]
    # Each crash costs a process: only a few of the tries may fail.
    assert result.tries < 60


def test_another_failure_does_not_take_its_place(on: On) -> None:
    """Without lengths the target fails in another way: it crashes."""
    target = on(crashing_where(lambda _, inputs: "sequence_lens" not in inputs, mirroring))
    result = shrunk(target)
    assert result.one.judgement.verdict is Verdict.WRONG
    assert smallest(result).lengths == "short"


def test_what_a_case_is_shrunk_to_is_legal(on: On) -> None:
    """The shrinker removes one of two directions, with its function and the coefficients of that function."""
    graph_nodes: list[Node] = []

    def target(node: Node, inputs: Arrays) -> Arrays:
        graph_nodes.append(node)
        return {name: array + 1 for name, array in conforming(node, inputs).items()}

    on(target)
    functions = ("ScaledTanh", "HardSigmoid")
    spec = CaseSpec("RNN", 7, direction="bidirectional", activations=functions, alpha=(0.5, 0.5), beta=(0.5, 0.25))
    assert smallest(shrunk(target, spec)) == CaseSpec("RNN", 7)
    for node in graph_nodes:
        functions = node.attributes.get("activations", (b"Tanh",))
        for coefficient in ("alpha", "beta"):
            assert len(node.attributes.get(f"activation_{coefficient}", ())) <= len(functions)
    spec = CaseSpec("RNN", 7, activations=("Tanh",), beta=(0.5, 0.5))
    assert experiments.variant(SpecProbe(spec)) is None


@pytest.mark.parametrize(
    ("wrong", "spec", "words"),
    [
        (lambda inputs: inputs["R"].shape[2] > 4, RICH, "5 units or more"),
        # A scratch buffer is too small from 18 steps on; a case of 16 steps whose session ran 18 before shows it too.
        (
            lambda inputs: len(inputs["X"]) > 17,
            CaseSpec("RNN", 14, T=16, dimensions="symbolic", reruns="sizes"),
            "18 steps or more",
        ),
    ],
    ids=["units", "steps of a run before"],
)
def test_of_sizes_the_least_that_fails_is_told(on: On, wrong: Any, spec: CaseSpec, words: str) -> None:
    target = on(scaled_where(lambda _, inputs: wrong(inputs)))
    assert needs_in_words(shrunk(target, spec).needs) == [words]


def test_what_other_numbers_show_in_smaller_sizes_is_no_condition_of_size(on: On) -> None:
    def target(node: Node, inputs: Arrays) -> Arrays:
        wrong = bool((inputs["X"] > 0.9).any())  # only when one of many numbers is large
        return {n: a + np.asarray(wrong, a.dtype) for n, a in conforming(node, inputs).items()}

    on(target)
    specs = (CaseSpec("RNN", 14, T=7, N=5, I=3, seed=seed) for seed in range(99))
    assert shrunk(target, next(s for s in specs if case_run(s, target).judgement.verdict is Verdict.WRONG)).needs == ()


def test_when_the_budget_is_spent_nothing_is_said_that_was_not_tried(on: On) -> None:
    result = shrunk(on(mirroring), cases=0)
    assert (result.complete, result.needs, smallest(result)) == (False, (), RICH)


def test_what_comes_and_goes_has_no_conditions(on: On) -> None:
    """The target crashes once and never again: no trait of the case is the cause."""
    runs = iter(range(10**6))
    target = on(crashing_where(lambda *_: next(runs) == 0))
    result = shrunk(target)
    assert (result.one.judgement.verdict, result.needs, result.complete) == (Verdict.CRASHED, (), False)


def test_coefficients_go_with_their_functions() -> None:
    names = ("Sigmoid", "LeakyRelu", "Elu", "Sigmoid", "LeakyRelu", "Tanh")
    spec = CaseSpec("LSTM", 14, direction="bidirectional", activations=names, alpha=(1.0, 2.0, 3.0))
    one_way = [c.spec for c in simpler_cases(spec, "direction")]
    assert [(s.direction, s.activations, s.alpha) for s in one_way] == [
        ("forward", names[:3], (1.0, 2.0)),
        ("reverse", names[3:], (3.0,)),
    ]


def _context(*of_run: Any) -> DiagnosisContext:
    return DiagnosisContext(Silent(), "standard", lambda p: f"explain {p.id}", *of_run)  # type: ignore[arg-type]


def _findings(target: Target, specs: Sequence[CaseSpec]) -> list[dict[str, Any]]:
    results, probes, kept = results_on(target, specs)
    findings, _ = with_causes(findings_of(results, probes), _context(results, probes, kept), Budget(math.inf))
    assert sum(len(f["cases"]) for f in findings) == sum(r.failing for r in results)
    assert all(f["smallest"] in probes for f in findings)
    return findings


def test_failures_that_are_alike_are_told_apart_by_their_causes(on: On) -> None:
    target = on(crashing_where(lambda node, inputs: "P" in inputs or "clip" in node.attributes))
    plain = CaseSpec("LSTM", 14, T=2, N=2, H=3)
    specs = [
        *(replace(plain, peepholes=True, bias=b, seed=s) for b in (False, True) for s in (0, 1)),
        *(replace(plain, clip=0.5, T=3, bias=b, seed=s) for b in (False, True) for s in (0, 1)),
        plain,
    ]
    findings = _findings(target, specs)
    assert {(f["conditions"], len(f["cases"])) for f in findings} == {("peepholes P", 4), ("clip", 4)}
    assert all(f["tried"] and f["title"] == f"crashed (with {f['conditions']})" for f in findings)


def test_the_output_that_the_smallest_case_keeps_is_no_condition_if_others_show_the_fault(on: On) -> None:
    target = on(making("lengths.ignored"))
    spec = CaseSpec("LSTM", 14, T=4, N=3, H=5, lengths="ragged", outputs=("Y", "Y_h", "Y_c"))
    (finding,) = _findings(target, [spec])
    assert (finding["fault"], finding["conditions"]) == ("lengths.ignored", "a row shorter than the sequence")


def test_a_feature_is_no_condition_if_larger_cases_fail_without_it(on: On) -> None:
    """In one step the forget gate has no effect without a state before it, and in several steps it has."""
    target = on(making("lstm.input-forget.ignored"))
    outputs = ("Y", "Y_h", "Y_c")
    spec = CaseSpec("LSTM", 14, T=4, N=3, I=2, H=5, bias=True, initial="all", input_forget=1, outputs=outputs)
    (finding,) = _findings(target, [spec])
    assert (finding["fault"], finding["conditions"]) == ("lstm.input-forget.ignored", "")


def test_lost_subnormal_numbers_of_one_type_are_not_the_arithmetic_of_another(on: On) -> None:
    """Where X is lost, a product without X fits as well; and float64 loses other numbers than bfloat16."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        narrow = "precision.computed-in-single" if inputs["X"].dtype == np.float64 else "precision.subnormals-lost"
        return making(narrow)(node, inputs) if inputs["X"].dtype != np.float32 else conforming(node, inputs)

    on(target)
    lost = CaseSpec("RNN", 22, type="bfloat16", T=2, N=3, H=5, activations=("Relu",), extremes="subnormal")
    passing = CaseSpec("RNN", 22, type="bfloat16", T=2, N=3, H=5, activations=("Relu",))
    (finding,) = _findings(target, [lost, replace(lost, seed=1), passing])
    assert finding["fault"] in ("", "precision.subnormals-lost")
    assert finding["types"] == ["bfloat16"]
    assert "bfloat16" in finding["smallest"]
    assert finding["message"].endswith("flushing")
    assert "subnormal numbers in X" in finding["conditions"] or finding["fault"]


def test_a_fault_that_does_not_explain_its_example_gets_no_smaller_case(on: On) -> None:
    target = on(making("bias.ignored"))
    results, probes, kept = results_on(target, [CaseSpec("RNN", 14, bias=True, clip=1.0, H=3)])
    results[0] = structs.replace(results[0], diagnosis=("clip.ignored",))
    (finding,) = findings_of(results, probes)
    assert finding["fault"] == "clip.ignored"
    assert list(causes.causes_of(finding, _context(results, probes, kept), Budget(math.inf))) == []


def test_what_nothing_explains_is_not_shrunk_to_what_a_known_fault_explains(on: On) -> None:
    """Without clip the target still ignores the bias, and that is another finding."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        outputs = run_fault(FAULTS["bias.ignored"], node, inputs)
        return {n: a + (1 if "clip" in node.attributes else 0) for n, a in outputs.items()}

    on(target)
    results, probes, _ = results_on(target, [CaseSpec("RNN", 14, bias=True), CaseSpec("RNN", 14, bias=True, clip=1.0)])
    results[0] = structs.replace(results[0], diagnosis=("bias.ignored",))
    (finding,) = [f for f in findings_of(results, probes) if not f["fault"]]
    (cause,) = causes.causes_of(finding, _context(results, probes, Kept()), Budget(math.inf))
    assert needs_in_words(cause.shrunk.needs) == ["clip"]


def test_a_condition_that_was_not_tried_says_so() -> None:
    specs = [CaseSpec("LSTM", 14, bias=b, seed=s) for b in (False, True) for s in (0, 1, 2)]
    results, probes, _ = results_on(crashing_where(lambda _, inputs: "B" in inputs), specs)
    (finding,) = findings_of(results, probes)
    assert (finding["tried"], finding["title"]) == (False, "crashed (seen only with bias)")


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


def test_rows_of_a_sequence_without_steps_have_length_0_too() -> None:
    needs = [_need("lengths", "empty", ("absent", "full"), Verdict.PASS)]
    empty = [SpecProbe(CaseSpec("RNN", 14, T=T, N=2, lengths="empty")) for T in (2, 3, 4, 5)]
    no_steps = SpecProbe(CaseSpec("RNN", 14, T=0, N=2, lengths="full"))
    few, many = (stated(needs, members, [no_steps]) for members in (empty[:1], empty))
    assert ([c.words for c in few.conditions], few.passing) == (["a row of length 0"], 1)
    assert ([c.words for c in many.conditions], many.passing) == (["a row of length 0 and seq_length above 0"], 0)


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
    assert _of_sizes(8, [8], [], coarse) == ["8 units or more (passes with 4)"]


def test_what_fails_at_one_size_only_is_said_to_be_that_size(on: On) -> None:
    target = on(scaled_where(lambda _, inputs: inputs["R"].shape[2] == 5))
    findings = _findings(target, [CaseSpec("GRU", 14, T=2, H=H, bias=b) for H in (5, 6, 9) for b in (False, True)])
    assert [(f["conditions"], len(f["cases"])) for f in findings] == [("exactly 5 units", 2)]


@pytest.mark.long
def test_a_condition_of_small_numbers_is_one_of_cases_with_small_numbers(on: On) -> None:
    """Small numbers become zero in LSTM, all biases are ignored in GRU: a finding of one says nothing of the other."""

    def target(node: Node, inputs: Arrays) -> Arrays:
        small = node.op_type == "LSTM" and abs(inputs["X"]).max() < 2.0**-5
        factor = 0 if small else 3 if node.op_type == "GRU" and "B" in inputs else 1
        return {n: factor * a for n, a in conforming(node, inputs).items()}

    on(target)
    specs = [
        CaseSpec(op, 14, T=2, N=2, H=3, data=data, bias=bias, seed=seed)
        for op, seeds in (("LSTM", (0,)), ("GRU", (0, 1)))
        for data in ("small", "dense")
        for bias in (False, True)
        for seed in seeds
    ]
    findings = {f["conditions"]: (f["operators"], {*f["cases"]}) for f in _findings(target, specs)}
    assert findings == {
        "small numbers": (["LSTM"], {s.id for s in specs if s.op == "LSTM" and s.data == "small"}),
        "bias": (["GRU"], {s.id for s in specs if s.op == "GRU" and s.bias}),
    }


def test_a_failure_that_comes_and_goes_is_asked_for_as_often_as_it_takes(on: On) -> None:
    runs = iter(range(10**6))
    target = on(scaled_where(lambda node, _: "clip" in node.attributes and next(runs) % 3 == 0))
    specs = [CaseSpec("GRU", 14, T=3, N=2, H=4, clip=0.5, bias=b, seed=s) for b in (False, True) for s in range(4)]
    assert {f["conditions"] for f in _findings(target, specs)} == {"clip"}


@pytest.mark.parametrize(
    ("spec", "op"),
    [
        (lambda: CaseSpec("RNN", 22, activations=("Relu", "Elu"), direction="bidirectional"), "LSTM"),
        # Both operators are named LinearAttention, and each has its own type of case.
        pytest.param(
            lambda: profile("smoke", "LinearAttention", 27)[0],
            "com.microsoft::LinearAttention",
            marks=pytest.mark.skipif("LinearAttention" not in operator_names(), reason="the installed onnx lacks it"),
        ),
    ],
    ids=["forbidden there", "another type of case"],
)
def test_a_case_that_is_none_of_another_operator_is_not_asked_there(spec: Any, op: str) -> None:
    cause: Any = SimpleNamespace(shrunk=SimpleNamespace(one=SimpleNamespace(probe=SpecProbe(spec()))))
    context: Any = SimpleNamespace(run=lambda probes, budget: pytest.fail("a forbidden model is asked for"))
    assert causes._fails_in(op, cause, context, Budget(9)) is False


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
    held = [h for h in ("fixed", "listed", "overridden") if conditions_of(need)[0].holds(replace(spec, held=h))]
    assert held == ["overridden"]


def test_levels_that_are_off_are_not_shrunk_to_numbers_that_are_off(on: On) -> None:
    def in_half(node: Node, inputs: Arrays) -> Arrays:
        outputs = {}
        for name, array in operator_for(node).answer(node, inputs).items():
            if name in node.codecs:
                codec = node.codecs[name]
                numbers = codec.dequantized(array.astype(np.int64)).astype(np.float16)
                outputs[name] = codec.levels(numbers).astype(array.dtype)
            else:
                outputs[name] = array.astype(np.float16).astype(np.float32)
        return outputs

    on(in_half)
    spec = CaseSpec("GRU", 14, T=4, N=3, I=2, H=5, bias=True, quantization="u16", channels="rows")
    for inaccurate in (spec, CaseSpec("GRU", 14)):
        assert case_run(inaccurate, in_half).judgement.verdict is Verdict.INACCURATE
    result = shrunk(in_half, spec)
    assert (result.one.judgement.accuracy or "").startswith("qdq-")
    assert needs_in_words(result.needs) == ["levels of 16 bits"]


def test_experiments_after_a_short_run_cost_as_much_as_it_is_worth() -> None:
    passing, unstable = (
        result_of(SpecProbe(CaseSpec("RNN", 14)), "t", Judgement(verdict), 0.0, None)
        for verdict in (Verdict.PASS, Verdict.UNSTABLE)
    )
    costs = {count: causes.experiments_of([passing] * count).cases for count in (1, 54, 450, 2400, 4000)}
    assert costs == {1: 602, 54: 708, 450: 1200, 2400: 1200, 4000: 2000}
    # Intermittent failures are tried many times.
    assert causes.experiments_of([passing, unstable]).cases == 1200
