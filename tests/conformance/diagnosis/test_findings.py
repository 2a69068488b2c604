"""Findings: grouping of results, conditions, grades and biases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec, build_case, profile
from onnxspec.conformance.diagnosis.conditions import condition_of, message_kind
from onnxspec.conformance.diagnosis.explainer import explained
from onnxspec.conformance.diagnosis.findings import findings_of, joined
from onnxspec.conformance.diagnosis.needed_classes import with_needed_classes
from onnxspec.conformance.judging.judgement import Judgement, Verdict, would_allow
from onnxspec.conformance.probes.probe import SpecProbe, worded
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.grades import biases, grades, passing_grades
from onnxspec.conformance.results.records import Finding
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FAULTS

from .in_process import conforming

SPECS = [spec for spec in profile("core", "LSTM", 14) if spec.type == "float32" and not spec.illegal]
BY_ID = {spec.id: SpecProbe(spec) for spec in SPECS}
PASS = Judgement(Verdict.PASS)
WRONG = Judgement(Verdict.WRONG, "value", message="so wrong", clause="lstm.equations", worst=9.0, judged=1)
Judged = tuple[CaseSpec, Judgement]


def results_of(judged: Iterable[Judged], why: str | None = None) -> list[Result]:
    return [result_of(SpecProbe(spec), "t", judgement, 0.0, why, f"repeat {spec.id}") for spec, judgement in judged]


def findings_on(judged: Sequence[Judged]) -> list[Finding]:
    return findings_of(results_of(judged), {spec.id: SpecProbe(spec) for spec, _ in judged})


def failing_where(wanted: Callable[[CaseSpec], bool]) -> list[Result]:
    return results_of((spec, WRONG if wanted(spec) else PASS) for spec in SPECS)


def true_of(words: str, spec: CaseSpec) -> bool:
    """Return whether a condition, as worded in a finding, holds for a case."""
    return words in {worded(trait) for trait in SpecProbe(spec).traits}


@pytest.mark.parametrize(
    "wanted",
    [
        lambda s: s.clip is not None,
        lambda s: s.direction == "bidirectional",
        lambda s: s.lengths != "absent" and s.direction == "bidirectional",
        lambda s: not s.hidden_size,
        lambda s: s.T == 0,
        lambda s: s.N == 0,
        lambda s: bool(s.input_forget) and s.peepholes,
        lambda s: s.activations == ("HardSigmoid", "Relu", "Relu"),
        lambda s: s.layout == 1,
        lambda s: s.data == "numerics",
    ],
)
def test_the_condition_is_true_of_all_that_fail_and_of_nothing_that_passes(wanted: Callable[[CaseSpec], bool]) -> None:
    (finding,) = findings_of(failing_where(wanted), BY_ID)
    assert set(finding["cases"]) == {spec.id for spec in SPECS if wanted(spec)}
    assert finding["title"] == f"wrong (value) (seen only with {finding['conditions']})"
    parts = finding["conditions"].split(" and ")
    assert 1 <= len(parts) <= 2
    for spec in SPECS:
        assert all(true_of(part, spec) for part in parts) == wanted(spec), spec.id


def test_without_a_condition_none_is_claimed() -> None:
    for wanted in (lambda s: int(s.digest, 16) % 3 == 0, lambda s: True):
        (finding,) = findings_of(failing_where(wanted), BY_ID)
        assert finding["title"] == "wrong (value)"
    refusal, *_ = findings_on([refused(spec, "no") for spec in SPECS])
    assert refusal["title"] == "refuses, saying: no"


@pytest.mark.parametrize(
    ("first", "conditions"), [(1, ""), (2, "later runs of a session"), (12, "later runs of a session")]
)
def test_where_nothing_passes_it_is_said_that_only_later_runs_are_wrong(first: int, conditions: str) -> None:
    message = f"Y[0, 0, 0, 0] (run {first} of 12, step 0, forward, row 0) is 1, must be 0"
    (finding,) = findings_on([(SPECS[0], replace(WRONG, message=message))])
    assert finding["conditions"] == conditions


def test_results_are_grouped_by_how_they_fail() -> None:
    a, b, c, d, e, f = SPECS[:6]
    findings = findings_on(
        [
            (a, WRONG),
            (b, replace(WRONG, reason="nonfinite")),
            (c, replace(WRONG, clause="lstm.outputs.last-hidden")),
            (d, Judgement(Verdict.CRASHED, message="m")),
            (e, WRONG),
            (f, PASS),
        ]
    )
    assert sorted(tuple(finding["cases"]) for finding in findings) == sorted([(a.id, e.id), (b.id,), (c.id,), (d.id,)])
    known = findings_of(results_of([(a, WRONG)], "known") + results_of([(e, WRONG)]), BY_ID)
    assert sorted((finding["expected"], finding["why"]) for finding in known) == [(False, ""), (True, "known")]


def test_a_reason_stands_beside_the_fault_that_it_is_about() -> None:
    """A list gives a case a single reason, even if another fault made it fail as well, or alone."""
    lengths = "sequence_lens is ignored."
    diagnoses = [("lengths.ignored",)] * 4 + [("lengths.ignored", "bias.ignored"), ("clip.ignored",)]
    results = results_of([(spec, WRONG) for spec in SPECS[:6]], lengths)
    results = [structs.replace(r, diagnosis=faults) for r, faults in zip(results, diagnoses, strict=True)]
    reasons = {f["fault"]: f["why"] for f in findings_of(results, BY_ID)}
    assert reasons == {"lengths.ignored": lengths, "bias.ignored": "", "clip.ignored": ""}


def refused(spec: CaseSpec, message: str) -> Judged:
    return spec, Judgement(Verdict.UNSUPPORTED, "load", message=message)


def of_all_operators(wanted: Callable[[CaseSpec], bool], message: str) -> list[Finding]:
    """Return the findings of a target that refuses the ``wanted`` cases, with a message for each operator."""
    specs = [s for op in OPERATORS for s in profile("core", op, 14) if not s.illegal]
    texts = [message.format(op=s.op, version=s.version) for s in specs]
    return findings_on([refused(s, text) if wanted(s) else (s, PASS) for s, text in zip(specs, texts, strict=True)])


def test_what_every_operator_refuses_is_said_once() -> None:
    message = "no kernel for {op}({version}) in /src/rnn/{op}_base.h:24, node 'my {op}'"
    (wide,) = of_all_operators(lambda s: s.type == "float64", message)
    assert (wide["title"], wide["operators"]) == ("refuses float64", sorted(OPERATORS))
    (batch,) = of_all_operators(lambda s: s.layout == 1, message)
    assert (batch["title"], batch["operators"]) == ("refuses layout 1", sorted(OPERATORS))
    # The same holds if the messages have no common words, and if layout 1 is not the only reason.
    first, second = of_all_operators(lambda s: s.type == "float64" or s.layout == 1, "{op}" * 3 + " is out")
    assert {first["title"], second["title"]} == {"refuses float64", "refuses layout 1"}
    assert first["types"] == ["float64"]
    (only,) = of_all_operators(lambda s: s.op == "GRU", message)
    assert (only["title"], only["operators"]) == ("refuses GRU altogether", ["GRU"])


def test_what_one_message_hides_is_taken_apart() -> None:
    """A provider that leaves nodes to another provider gives the same message for all of them."""

    def lacking(s: CaseSpec) -> bool:
        return s.layout == 1 or s.lengths != "absent" or bool(s.activations)

    findings = of_all_operators(lacking, "not taken")
    assert {f["title"] for f in findings} == {"refuses layout 1", "refuses sequence_lens", "refuses activations"}
    assert all(f["operators"] == sorted(OPERATORS) for f in findings)


Refusals = dict[str, set[CaseSpec]]


def saying(message: str, *specs: CaseSpec) -> dict[CaseSpec, str]:
    return dict.fromkeys(specs, message)


def refusals(passing: Iterable[CaseSpec], messages: Mapping[CaseSpec, str]) -> Refusals:
    """Return the cases that a target refuses with these messages, by the condition that findings name."""
    judged = [*((spec, PASS) for spec in passing), *(refused(spec, text) for spec, text in messages.items())]
    specs = {spec.id: spec for spec, _ in judged}
    findings = [f for f in findings_on(judged) if f["kind"] == "unsupported"]
    return {f["conditions"]: {specs[id] for id in f["cases"]} for f in findings}


PLAIN = CaseSpec("RNN", 14, T=3)
HALF_BATCH = CaseSpec("RNN", 14, T=3, type="float16", layout=1)
PLAIN_OF_BOTH = [CaseSpec(op, 14) for op in ("LSTM", "RNN")]


def test_what_a_message_names_is_refused_and_not_what_came_with_it() -> None:
    old = CaseSpec("RNN", 1, T=3, type="float16")
    messages = {
        HALF_BATCH: "[/src/rnn.h] layout_ == 0 was false: Batchwise operations are not supported",
        old: "Could not find an implementation for RNN(1) node with name 'rnn'",
    }
    assert refusals([PLAIN], messages) == {"layout 1": {HALF_BATCH}, "version 1": {old}}


def test_types_and_versions_that_a_target_speaks_of_are_the_reason_in_every_operator() -> None:
    alone = CaseSpec("LSTM", 14, type="float64")
    both = CaseSpec("RNN", 14, type="float64", hidden_size=False)
    old = CaseSpec("LSTM", 1, output_sequence=1)
    messages = {**saying("only float16 and float32", alone, both), old: "opset below 7"}
    assert refusals(PLAIN_OF_BOTH, messages) == {"float64": {alone, both}, "version 1": {old}}
    # A message that fits any failure is no evidence about a type.
    wide = CaseSpec("RNN", 22, type="float64", hidden_size=False, layout=1)
    same_message = refusals(PLAIN_OF_BOTH, saying("failed", alone, CaseSpec("LSTM", 7), wide))
    assert same_message["version 22 (only tested together with float64, layout 1 and no hidden_size)"] == {wide}
    long = [CaseSpec(op, 14, type="float64", lengths="full") for op in ("LSTM", "RNN")]
    messages = saying("Non constant seq_len is not supported", *long)
    assert refusals(PLAIN_OF_BOTH, messages) == {"sequence_lens": {*long}}


def test_nothing_is_guessed_where_a_message_says_what_it_is_about() -> None:
    """ScaledTanh with coefficients and a fed W run here, so they and other traits of these cases are not the reason."""
    scaled = CaseSpec("GRU", 14, activations=("Sigmoid", "ScaledTanh"), alpha=(2.0,), beta=(0.5,))
    bare = replace(scaled, version=7, hidden_size=False, alpha=None, beta=None)
    assert refusals([scaled], saying("ScaledTanh without coefficients", bare)) == {"": {bare}}
    fed = [CaseSpec("GRU", 14, T=t, initial="all") for t in range(1, 8)]
    assert refusals([CaseSpec("GRU", 14)], saying("W must be constant", *fed)) == {"": {*fed}}
    old = CaseSpec("LSTM", 7, peepholes=True, direction="reverse")
    messages = saying("peephole connections are unsupported", old)
    assert refusals([CaseSpec("LSTM", 14)], messages) == {"peepholes P": {old}}


def test_what_was_only_refused_together_is_named_together() -> None:
    together = {"float16 (only tested together with layout 1)": {HALF_BATCH}}
    assert refusals([PLAIN], saying("not taken", HALF_BATCH)) == together
    # A message that lists all its arguments names none of them.
    listing = "no kernel for attributes ['clip', 'layout', 'direction'] of {float16}"
    assert refusals([PLAIN], saying(listing, HALF_BATCH)) == together
    # A trait that is refused alone elsewhere is the reason, if the target gives the same message.
    batch = [CaseSpec("RNN", 14, T=t, layout=1) for t in range(1, 7)]
    assert refusals([PLAIN], saying("not taken", HALF_BATCH, *batch)) == {"layout 1": {HALF_BATCH, *batch}}
    alone = CaseSpec("RNN", 14, T=4, type="float16")
    assert refusals([PLAIN], saying("not taken", HALF_BATCH, alone)) == {"float16": {alone, HALF_BATCH}}


def test_a_message_that_lists_what_a_node_has_is_about_what_is_refused_by_itself() -> None:
    clipped = CaseSpec("RNN", 14, clip=0.5)
    combined = [CaseSpec("RNN", 14, T=t, clip=0.5, direction="reverse", layout=1) for t in (3, 4)]
    others = CaseSpec("RNN", 14, direction="reverse", layout=1, activations=("Relu",))
    messages = {
        clipped: "RNN with clip, hidden_size",
        **saying("RNN with clip, direction, hidden_size, layout", *combined),
        others: "RNN with activations, direction, hidden_size, layout",
    }
    assert refusals([CaseSpec("RNN", 14)], messages) == {"clip": {clipped, *combined}, "": {others}}


@pytest.mark.parametrize(
    ("type", "message", "condition"),
    [
        ("bfloat16", "Unknown DatumType Bfloat16", "bfloat16"),
        (
            "float16",
            "after bfloat16: no kernel",
            "version 22 (only tested together with float16 and the reverse direction)",
        ),
    ],
)
def test_a_type_that_a_message_spells_otherwise_is_the_reason(type: str, message: str, condition: str) -> None:
    new = [CaseSpec(op, 22, type=type, direction="reverse") for op in ("LSTM", "RNN")]
    assert refusals(PLAIN_OF_BOTH, saying(message, *new)) == {condition: {*new}}


def test_what_a_few_refusals_have_in_common_may_be_chance() -> None:
    right = [CaseSpec("LSTM", 14, initial="all")]
    few = [CaseSpec("LSTM", 14, layout=1), CaseSpec("LSTM", 14, direction="reverse")]
    assert list(refusals(right, saying("1 is not 3", *few))) == [""]
    others = [CaseSpec("LSTM", 14, T=t, lengths="full") for t in range(1, 8)]
    messages = {**saying("1 is not 3", *few, CaseSpec("LSTM", 14)), **saying("no sequence_lens", *others)}
    assert set(refusals(right, messages)) == {"", "sequence_lens"}


def test_of_an_operator_that_never_runs_a_message_tells_why() -> None:
    bare, batch, clipped, both = (
        CaseSpec("GRU", 14, T=3, **fields) for fields in ({}, {"layout": 1}, {"clip": 1.0}, {"layout": 1, "clip": 1.0})
    )
    assert refusals([PLAIN], saying("no layout 1 here", batch, both)) == {"layout 1": {batch, both}}
    assert refusals([PLAIN], saying("no", batch)) == {"GRU (only tested together with layout 1)": {batch}}
    # If every case of an operator is refused for some trait, it is unknown whether the operator runs without them.
    assert refusals([PLAIN], saying("no", batch, clipped)) == {"GRU (no plain case was tried)": {batch, clipped}}
    assert refusals([PLAIN], saying("no", batch, bare)) == {"GRU altogether": {batch, bare}}


@pytest.mark.parametrize(
    ("passing", "refusing", "message", "title"),
    [
        (["RNN", "GRU", "RNN with layout"], CaseSpec("GRU", 14, T=3, layout=1), "no layout 1 here", "layout 1 in GRU"),
        (["RNN", "GRU"], CaseSpec("GRU", 14, T=3, layout=1), "no layout 1 here", "layout 1 in GRU"),
        # No other operator can have it.
        (["RNN", "LSTM"], CaseSpec("LSTM", 14, T=3, input_forget=1), "no input_forget here", "input_forget"),
    ],
    ids=["taken by another", "not tried with another", "of one operator"],
)
def test_what_another_operator_takes_is_said_to_be_refused_by_this_one(
    passing: list[str], refusing: CaseSpec, message: str, title: str
) -> None:
    right = [CaseSpec(text.split()[0], 14, T=3, layout=int("layout" in text)) for text in passing]
    (finding,) = findings_on([*((spec, PASS) for spec in right), refused(refusing, message)])
    assert finding["title"] == f"refuses {title}"
    assert finding["conditions"] == title.removesuffix(" in GRU")


def test_what_ran_and_was_wrong_is_not_refused() -> None:
    first = next(s for s in SPECS if s.layout == 1 and s.lengths == "absent")
    judged = [refused(s, "not taken") if s.layout == 1 or s.lengths != "absent" else (s, PASS) for s in SPECS]
    judged[SPECS.index(first)] = (first, WRONG)
    titles = {f["title"] for f in findings_on(judged)}
    assert "refuses sequence_lens" in titles
    assert "refuses layout 1" not in titles


def test_a_refusal_says_what_most_of_it_say() -> None:
    few = min((s for s in SPECS if s.T and s.N), key=lambda s: SpecProbe(s).size)
    judged = [refused(s, "a rare word" if s is few else f"the usual word, at {n}") for n, s in enumerate(SPECS[:9])]
    judged += [refused(few, "a rare word")] if few not in SPECS[:9] else []
    other = next(s for s in profile("core", "LSTM", 14) if s.type == "float16" and not s.illegal)
    (finding,) = findings_on([*judged, (other, PASS)])
    assert finding["title"] == "refuses float32"
    assert finding["message"].startswith("the usual word")


def test_nothing_is_made_up_of_refusals_that_have_nothing_in_common() -> None:
    rejected = [int(s.digest, 16) % 3 == 0 for s in SPECS]
    (finding,) = findings_on([refused(s, f"rejected {n}") if rejected[n] else (s, PASS) for n, s in enumerate(SPECS)])
    assert finding["title"].startswith("refuses, saying: rejected ")
    assert finding["conditions"] == ""


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("no LSTM(1) node 'lstm'", "no GRU(22) node 'gru'", True),
        ("/a/b/lstm_base.h:31 LSTMBase::LSTMBase x < 3", "/c/d/deep_gru.h:7 DeepGru::DeepGru x < 4", True),
        ("at 0xdead for {2,3}", "at 0xbeef for {}", True),
        ("clip is not supported", "layout is not supported", False),
    ],
)
def test_messages_are_alike_but_for_what_they_name(one: str, other: str, alike: bool) -> None:
    assert (message_kind(one) == message_kind(other)) == alike


def test_a_pair_of_traits_is_not_told_of_two_cases() -> None:
    a, b, c = (frozenset(text.split()) for text in ("x y", "x z", "y z"))
    assert condition_of([a | b, a | b], [a, b, c]) == ""
    assert condition_of([a | b] * 3, [a, b]) == "y and z"
    assert condition_of([a | b] * 3, [a, b, c]) == ""
    assert condition_of([a], [c]) == "x"
    assert condition_of([a | b], [frozenset("z")]) == ""  # x or y: a single case cannot tell
    assert condition_of([a | b] * 2, [frozenset("z")]) == "x"


def test_what_fails_alike_in_several_operators_is_one_finding() -> None:
    specs = [next(s for s in profile("core", op, 14) if s.clip and s.type == "float32") for op in OPERATORS]
    (finding,) = findings_on([(s, replace(WRONG, clause=f"{s.op.lower()}.equations")) for s in specs])
    assert finding["operators"] == sorted(OPERATORS)
    assert sorted(finding["clauses"]) == ["gru.equations", "lstm.equations", "rnn.equations"]


def test_what_two_findings_say_alike_is_one_finding() -> None:
    results = failing_where(lambda spec: spec.layout == 1)
    (finding,) = findings_of(results, BY_ID)
    half = len(finding["cases"]) // 2
    first, second = ({**finding, "cases": cases} for cases in (finding["cases"][:half], finding["cases"][half:]))
    other = {**finding, "title": "another one", "cases": finding["cases"][:1]}
    both, alone = joined([first, other, second], results)  # type: ignore[list-item]
    assert (both["cases"], both["new"]) == (finding["cases"], len(finding["cases"]))
    assert alone == other


BROKEN_CONVENTION = Judgement(
    Verdict.PASS, "padding", clause="lstm.padding.zero", flags=("unconventional",), message="m"
)


def test_failures_come_first_and_refusals_last() -> None:
    crashed = Judgement(Verdict.CRASHED, message="m")
    findings = findings_on([refused(SPECS[0], "no"), (SPECS[1], BROKEN_CONVENTION), (SPECS[2], crashed)])
    assert [(f["kind"], f["verdict"]) for f in findings] == [
        ("crashed", "crashed"),
        ("convention", "pass"),
        ("unsupported", "unsupported"),
    ]
    assert findings[1]["clauses"] == ["lstm.padding.zero"]


def test_the_smallest_case_stands_for_a_finding() -> None:
    large = max(SPECS, key=lambda s: s.H * s.T * s.N * s.I)
    small = min((s for s in SPECS if s.T and s.N), key=lambda s: (s.H * s.T * s.N * s.I, s.H))
    (finding,) = findings_on([(large, WRONG), (small, WRONG)])
    assert (finding["smallest"], finding["repeat"]) == (small.id, f"repeat {small.id}")


def test_faults_that_no_case_shows_alone_have_cases_of_their_own_and_the_clause_of_the_fault() -> None:
    wrong = replace(WRONG, message="Y is 1 (lstm.equations), the first")
    both = ("lengths.ignored", "clip.ignored")
    results = [structs.replace(r, diagnosis=both) for r in results_of([(SPECS[0], wrong), (SPECS[1], wrong)])]
    findings = findings_of(results, BY_ID)
    assert len({finding["smallest"] for finding in findings}) == 2
    assert {f["fault"]: f["message"] for f in findings} == {
        "lengths.ignored": "Y is 1 (lstm.lengths), the first",
        "clip.ignored": "Y is 1 (lstm.clip), the first",
    }


def test_long_messages_keep_their_ends() -> None:
    (finding,) = findings_on([(SPECS[0], Judgement(Verdict.CRASHED, message="BEGIN " + "x" * 5000 + " END"))])
    assert len(finding["message"]) < 300
    assert finding["message"].startswith("BEGIN")
    assert finding["message"].endswith("END")


def test_lost_nan_is_a_finding_of_its_own_kind() -> None:
    lost = Judgement(Verdict.PASS, "nan", clause="lstm.nan.kept", flags=("loses-nan",), message="NaN enters at X[0]")
    spoilt = next(spec for spec in SPECS if spec.data == "nan-row")
    (nan,) = findings_on([(spoilt, lost)])
    assert (nan["kind"], nan["clauses"], nan["new"]) == ("special-values", ["lstm.nan.kept"], 0)
    assert nan["message"] == "NaN enters at X[0]"
    # The message of a case that fails against another clause is about that one.
    wrong = replace(lost, verdict=Verdict.WRONG, reason="value", clause="lstm.peepholes.order", message="P")
    beside = findings_on([(spoilt, wrong)])
    assert {f["kind"]: f["message"] for f in beside} == {"wrong": "P", "special-values": ""}


def test_passes_unjudged_and_unavailable_are_no_findings() -> None:
    inconclusive, unavailable = Judgement(Verdict.INCONCLUSIVE, "inconclusive"), Judgement(Verdict.UNAVAILABLE)
    assert findings_on([(SPECS[0], PASS), (SPECS[1], inconclusive), (SPECS[2], unavailable)]) == []


# Grades and biases


NUMERICS = [spec for spec in SPECS if spec.data == "numerics"]
STRICT, STANDARD = (Judgement(Verdict.PASS, strict=strict) for strict in (True, False))
COARSE = [Judgement(Verdict.INACCURATE, accuracy=name) for name in ("tf32", "bf16-math")]


@pytest.mark.parametrize(
    ("judgements", "declared", "grade"),
    [
        ([STRICT, STRICT], "standard", "strict"),
        ([STRICT, STANDARD], "standard", "standard"),
        ([STRICT], "tf32", "strict"),
        ([STANDARD], "tf32", "tf32"),
        ([STRICT, *COARSE], "standard", "bf16-math"),
        ([STRICT, Judgement(Verdict.WRONG)], "standard", None),
        ([Judgement(Verdict.UNSUPPORTED)], "standard", None),
    ],
)
def test_the_grade_is_the_tightest_class_that_all_cases_meet(
    judgements: list[Judgement], declared: str, grade: str | None
) -> None:
    results = results_of(zip(NUMERICS, judgements, strict=False))
    assert grades(results, declared).get("float32") == grade
    right = [r for r in results if r.verdict is not Verdict.WRONG]
    assert passing_grades(right, declared) == passing_grades(results, declared)


def test_a_wrong_result_leaves_the_grade_of_those_that_pass() -> None:
    judged = [(NUMERICS[0], STRICT), (SPECS[0], Judgement(Verdict.WRONG, strict=False))]
    assert passing_grades(results_of(judged), "standard") == {"float32": "strict"}


@pytest.mark.parametrize(
    ("implementation", "biased"), [(conforming, False), (FAULTS["drift.one-unit-low"], True)], ids=["rounds", "drifts"]
)
def test_a_drift_is_a_finding_and_roundings_are_none(implementation: Any, biased: bool) -> None:
    results = results_of([(spec, judge_staged(build_case(spec), implementation)) for spec in NUMERICS])
    assert biases(results)["float32"]["biased"] is biased
    assert [f["kind"] for f in findings_of(results, BY_ID)] == ["biased"] * biased


@pytest.mark.parametrize(
    ("sums", "judged", "biased"),
    [
        ((1.0, 0.0, 1e-6, 1.0), 1000, True),
        ((0.0, -1.0, 1e-6, 1.0), 1000, True),
        ((1.0, 0.0, 1e-6, 1.0), 99, False),
        ((1.0, 0.0, 0.04, 1.0), 1000, False),
        ((0.4, 0.0, 1e-6, 1.0), 1000, False),
    ],
    ids=["shift", "scale", "few elements", "large scatter", "small mean"],
)
def test_a_handful_of_elements_or_a_large_scatter_is_no_bias(
    sums: tuple[float, ...], judged: int, biased: bool
) -> None:
    judgement = Judgement(Verdict.PASS, error_sums=sums, elements=judged)
    assert biases(results_of([(NUMERICS[0], judgement)]))["float32"]["biased"] is biased


def test_without_finite_sums_no_bias_is_said() -> None:
    infinite = Judgement(Verdict.WRONG, error_sums=(1.0, 1.0, float("inf"), 1.0), judged=1000)
    for judgement in (infinite, PASS):
        assert biases(results_of([(NUMERICS[0], judgement)])) == {}


RIGHT = Judgement(Verdict.PASS, judged=9, elements=9)


def test_a_wider_class_that_the_other_results_do_not_need_is_no_excuse() -> None:
    coarse = Judgement(Verdict.INACCURATE, "value", accuracy="bf16-storage", message="off; right by the wider class x")
    flushing = Judgement(Verdict.INACCURATE, "value", accuracy="flushing", message="m")
    (amended,) = with_needed_classes(results_of(zip(SPECS, [coarse, flushing, RIGHT, RIGHT], strict=False)))
    assert (amended.verdict, amended.accuracy) == (Verdict.WRONG, None)
    assert amended.message == (
        "off; the wider class bf16-storage would accept it, but 2 float32 results pass and only 1 need it"
    )
    assert with_needed_classes(results_of(zip(SPECS, [coarse, coarse, RIGHT, RIGHT], strict=False))) == []


@pytest.mark.parametrize(
    ("worst", "wrong"),
    [([1.1, 1.4, 1.3], []), ([1.1, 1.4, 12.5], [12.5]), ([1.1, 40.0, 12.5], [1.1, 40.0, 12.5])],
    ids=["by little", "one by far", "mostly by far"],
)
def test_what_misses_its_bound_by_little_everywhere_stays_inaccurate(worst: list[float], wrong: list[float]) -> None:
    """The target approximates functions coarsely; a fault stands out against that."""
    off = Judgement(Verdict.INACCURATE, "value", accuracy="bf16-storage", message="off; right by", judged=9, elements=9)
    results = results_of(zip(SPECS, [*(replace(off, worst=w) for w in worst), *[RIGHT] * 5], strict=False))
    assert [r.worst for r in with_needed_classes(results)] == wrong


@pytest.mark.parametrize(
    ("accuracy", "names"), [("f32-math", ("precision.computed-in-single",)), ("tf32", ())], ids=["single", "tf32"]
)
def test_what_is_right_by_the_class_that_a_fault_consists_in_has_its_name(accuracy: str, names: tuple[str]) -> None:
    spec = next(s for s in profile("core", "LSTM", 14) if s.type == "float64" and not s.illegal)
    results = results_of([(spec, Judgement(Verdict.INACCURATE, "value", accuracy=accuracy, message="m"))])
    assert explained(results, {spec.id: SpecProbe(spec)}, Kept(), "standard").get(spec.id, ()) == names


@pytest.mark.parametrize(
    ("shown", "titles"),
    [
        (2, [("inaccurate (no better than f32-math)", 7)]),
        # One in seven may show its roundings by chance.
        (1, [("inaccurate (value)", 6), ("inaccurate (no better than f32-math)", 1)]),
    ],
)
def test_what_a_class_allows_that_others_show_is_in_their_finding(shown: int, titles: list[tuple[str, int]]) -> None:
    silent = Judgement(Verdict.INACCURATE, "value", message=f"off; {would_allow('f32-math')}, and nothing shows it")
    clear = Judgement(Verdict.INACCURATE, "value", accuracy="f32-math", message="off; right by it")
    specs = [CaseSpec("RNN", 14, T=t, type="float64") for t in range(1, 8)]
    findings = findings_on([(spec, clear if n < shown else silent) for n, spec in enumerate(specs)])
    assert [(f["title"], len(f["cases"])) for f in findings] == titles
