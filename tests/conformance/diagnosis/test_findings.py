"""Findings: grouping of results, conditions, grades and biases."""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
from onnxspec.conformance.probes.probe import Probe, SpecProbe, worded
from onnxspec.conformance.proof.staged import judge_staged
from onnxspec.conformance.results.evidence import Kept
from onnxspec.conformance.results.grades import biases, grades, passing_grades
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.reference import CELLS as OPERATORS
from onnxspec.reference import FAULTS, evaluate, run_fault

SPECS = [spec for spec in profile("core", "LSTM", 14) if spec.type == "float32" and not spec.illegal]
BY_ID = {spec.id: SpecProbe(spec) for spec in SPECS}


def results_of(judged: Iterable[tuple[CaseSpec, Judgement]], why: str | None = None) -> list[Result]:
    return [result_of(SpecProbe(spec), "t", judgement, 0.0, why, f"repeat {spec.id}") for spec, judgement in judged]


def failing_where(wanted: Callable[[CaseSpec], bool]) -> list[Result]:
    wrong = Judgement(Verdict.WRONG, "value", message="so wrong", clause="lstm.equations", worst=9.0, judged=1)
    return results_of((spec, wrong if wanted(spec) else Judgement(Verdict.PASS)) for spec in SPECS)


def true_of(words: str, spec: CaseSpec) -> bool:
    """Return whether a condition, as worded in a finding, holds for a case."""
    return words in {worded(trait) for trait in SpecProbe(spec).traits}


def test_a_condition_in_words_is_one_of_what_is_in_the_case() -> None:
    (spec,) = [s for s in SPECS if s.layout == 1 and s.N and s.T and s.lengths == "absent" and not s.activations][:1]
    assert true_of("layout 1", spec)
    assert true_of("no sequence_lens", spec)
    assert true_of("float32", spec)
    assert true_of("version 14", spec)
    assert not true_of("sequence_lens", spec)
    assert not true_of("batch_size 0", spec)


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
    condition = finding["conditions"]
    assert finding["title"] == f"wrong (value) (seen only with {condition})"
    parts = condition.split(" and ")
    assert 1 <= len(parts) <= 2
    for spec in SPECS:
        assert all(true_of(part, spec) for part in parts) == wanted(spec), spec.id


def test_without_a_condition_none_is_claimed() -> None:
    (scattered,) = findings_of(failing_where(lambda s: int(s.digest, 16) % 3 == 0), BY_ID)
    assert scattered["title"] == "wrong (value)"
    (everywhere,) = findings_of(failing_where(lambda s: True), BY_ID)
    assert everywhere["title"] == "wrong (value)"
    refused = results_of((spec, Judgement(Verdict.UNSUPPORTED, "load", message="no")) for spec in SPECS)
    assert findings_of(refused, BY_ID)[0]["title"] == "refuses, saying: no"


@pytest.mark.parametrize(
    ("first", "conditions"), [(1, ""), (2, "later runs of a session"), (12, "later runs of a session")]
)
def test_where_nothing_passes_it_is_said_that_only_later_runs_are_wrong(first: int, conditions: str) -> None:
    message = f"Y[0, 0, 0, 0] (run {first} of 12, step 0, forward, row 0) is 1, must be 0"
    wrong = Judgement(Verdict.WRONG, "value", clause="lstm.equations", message=message)
    (finding,) = findings_of(results_of([(SPECS[0], wrong)]), BY_ID)
    assert finding["conditions"] == conditions


def test_results_are_grouped_by_how_they_fail() -> None:
    a, b, c, d, e, f = SPECS[:6]
    wrong = Judgement(Verdict.WRONG, "value", clause="lstm.equations", message="m")
    judged = [
        (a, wrong),
        (b, Judgement(Verdict.WRONG, "nonfinite", clause="lstm.equations", message="m")),
        (c, Judgement(Verdict.WRONG, "value", clause="lstm.outputs.last-hidden", message="m")),
        (d, Judgement(Verdict.CRASHED, message="m")),
        (e, wrong),
        (f, Judgement(Verdict.PASS)),
    ]
    findings = findings_of(results_of(judged), BY_ID)
    assert sorted(tuple(finding["cases"]) for finding in findings) == sorted([(a.id, e.id), (b.id,), (c.id,), (d.id,)])
    known = findings_of(results_of([(a, wrong)], "known") + results_of([(e, wrong)]), BY_ID)
    assert sorted((finding["expected"], finding["why"]) for finding in known) == [(False, ""), (True, "known")]


def test_a_reason_stands_beside_the_fault_that_it_is_about() -> None:
    wrong = Judgement(Verdict.WRONG, "value", clause="lstm.equations", message="m", worst=9.0, judged=1)
    lengths = "sequence_lens is ignored."

    def named(spec: CaseSpec, *faults: str) -> Result:
        (result,) = results_of([(spec, wrong)], lengths)
        return structs.replace(result, diagnosis=faults)

    # A list gives a case a single reason, even if another fault made it fail as well, or alone.
    specs = [named(spec, "lengths.ignored") for spec in SPECS[:4]]
    specs += [named(SPECS[4], "lengths.ignored", "bias.ignored"), named(SPECS[5], "clip.ignored")]
    reasons = {f["fault"]: f["why"] for f in findings_of(specs, BY_ID)}
    assert reasons == {"lengths.ignored": lengths, "bias.ignored": "", "clip.ignored": ""}


def test_refusals_belong_together_whatever_addresses_and_shapes_they_name() -> None:
    texts = ["no kernel at 0x7f01 for {2,3} [X, W]", "no kernel at 0xbeef for {4} [X]", "out of luck"]
    judged = [(spec, Judgement(Verdict.UNSUPPORTED, "load", message=t)) for spec, t in zip(SPECS, texts, strict=False)]
    findings = findings_of(results_of(judged), BY_ID)
    assert sorted(len(finding["cases"]) for finding in findings) == [1, 2]
    assert {finding["kind"] for finding in findings} == {"unsupported"}


def refused(spec: CaseSpec, message: str) -> tuple[CaseSpec, Judgement]:
    return spec, Judgement(Verdict.UNSUPPORTED, "load", message=message)


def of_all_operators(wanted: Callable[[CaseSpec], bool], message: str) -> list[dict[str, Any]]:
    """Return the findings of a target that refuses the ``wanted`` cases, with a message for each operator."""
    specs = [s for op in OPERATORS for s in profile("core", op, 14) if not s.illegal]
    judged = [
        refused(s, message.format(op=s.op, version=s.version)) if wanted(s) else (s, Judgement(Verdict.PASS))
        for s in specs
    ]
    return findings_of(results_of(judged), {s.id: SpecProbe(s) for s in specs})


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


def of_these(*judged: tuple[CaseSpec, Judgement]) -> dict[str, list[str]]:
    """Return the ids of refused cases by condition."""
    findings = findings_of(results_of(list(judged)), {s.id: SpecProbe(s) for s, _ in judged})
    return {f["conditions"]: sorted(f["cases"]) for f in findings if f["kind"] == "unsupported"}


def test_what_a_message_names_is_refused_and_not_what_came_with_it() -> None:
    right = Judgement(Verdict.PASS)
    plain = CaseSpec("RNN", 14, T=3)
    both = CaseSpec("RNN", 14, T=3, type="float16", layout=1)
    old = CaseSpec("RNN", 1, T=3, type="float16")
    refusals = of_these(
        (plain, right),
        refused(both, "[/src/rnn.h] layout_ == 0 was false: Batchwise operations are not supported"),
        refused(old, "Could not find an implementation for RNN(1) node with name 'rnn'"),
    )
    assert refusals == {"layout 1": [both.id], "version 1": [old.id]}


def test_types_and_versions_that_a_target_speaks_of_are_the_reason_in_every_operator() -> None:
    right = [(CaseSpec(op, 14), Judgement(Verdict.PASS)) for op in ("LSTM", "RNN")]
    alone = CaseSpec("LSTM", 14, type="float64")
    both = CaseSpec("RNN", 14, type="float64", hidden_size=False)
    old = CaseSpec("LSTM", 1, output_sequence=1)
    refusals = of_these(
        *right, *(refused(s, "only float16 and float32") for s in (alone, both)), refused(old, "opset below 7")
    )
    assert refusals == {"float64": [alone.id, both.id], "version 1": [old.id]}
    # A message that fits any failure is no evidence about a type.
    old, wide = CaseSpec("LSTM", 7), CaseSpec("RNN", 22, type="float64", hidden_size=False, layout=1)
    same_message = of_these(*right, *(refused(s, "failed") for s in (alone, old, wide)))
    assert [wide.id] in same_message.values()
    assert "version 22 (only tested together with float64, layout 1 and no hidden_size)" in same_message
    long = [CaseSpec(op, 14, type="float64", lengths="full") for op in ("LSTM", "RNN")]
    assert of_these(*right, *(refused(s, "Non constant seq_len is not supported") for s in long)) == {
        "sequence_lens": [s.id for s in long]
    }


def test_nothing_is_guessed_where_a_message_says_what_it_is_about() -> None:
    """ScaledTanh with coefficients and a fed W run here, so they and other traits of these cases are not the reason."""
    right = Judgement(Verdict.PASS)
    scaled = CaseSpec("GRU", 14, activations=("Sigmoid", "ScaledTanh"), alpha=(2.0,), beta=(0.5,))
    bare = replace(scaled, version=7, hidden_size=False, alpha=None, beta=None)
    assert of_these((scaled, right), refused(bare, "ScaledTanh without coefficients")) == {"": [bare.id]}
    fed = [CaseSpec("GRU", 14, T=t, initial="all") for t in range(1, 8)]
    refusals = of_these((CaseSpec("GRU", 14), right), *(refused(s, "W must be constant") for s in fed))
    assert refusals == {"": sorted(s.id for s in fed)}
    old = CaseSpec("LSTM", 7, peepholes=True, direction="reverse")
    assert of_these((CaseSpec("LSTM", 14), right), refused(old, "peephole connections are unsupported")) == {
        "peepholes P": [old.id]
    }


def test_what_was_only_refused_together_is_named_together() -> None:
    right = Judgement(Verdict.PASS)
    plain, both = CaseSpec("RNN", 14, T=3), CaseSpec("RNN", 14, T=3, type="float16", layout=1)
    together = {"float16 (only tested together with layout 1)": [both.id]}
    assert of_these((plain, right), refused(both, "not taken")) == together
    # A message that lists all its arguments names none of them.
    listing = "no kernel for attributes ['clip', 'layout', 'direction'] of {float16}"
    assert of_these((plain, right), refused(both, listing)) == together
    # A trait that is refused alone elsewhere is the reason, if the target gives the same message.
    batch = [CaseSpec("RNN", 14, T=t, layout=1) for t in range(1, 7)]
    refusals = of_these((plain, right), *(refused(s, "not taken") for s in (both, *batch)))
    assert refusals == {"layout 1": sorted(s.id for s in (both, *batch))}
    alone = CaseSpec("RNN", 14, T=4, type="float16")
    refusals = of_these((plain, right), refused(both, "not taken"), refused(alone, "not taken"))
    assert refusals == {"float16": sorted([alone.id, both.id])}


def test_a_message_that_lists_what_a_node_has_is_about_what_is_refused_by_itself() -> None:
    right = (CaseSpec("RNN", 14), Judgement(Verdict.PASS))
    clipped = CaseSpec("RNN", 14, clip=0.5)
    combined = [CaseSpec("RNN", 14, T=t, clip=0.5, direction="reverse", layout=1) for t in (3, 4)]
    others = CaseSpec("RNN", 14, direction="reverse", layout=1, activations=("Relu",))
    refusals = of_these(
        right,
        refused(clipped, "RNN with clip, hidden_size"),
        *(refused(s, "RNN with clip, direction, hidden_size, layout") for s in combined),
        refused(others, "RNN with activations, direction, hidden_size, layout"),
    )
    assert refusals == {"clip": sorted(s.id for s in (clipped, *combined)), "": [others.id]}


def test_a_type_that_a_message_spells_otherwise_is_the_reason() -> None:
    right = [(CaseSpec(op, 14), Judgement(Verdict.PASS)) for op in ("LSTM", "RNN")]
    new = [CaseSpec(op, 22, type="bfloat16", direction="reverse") for op in ("LSTM", "RNN")]
    assert of_these(*right, *(refused(s, "Unknown DatumType Bfloat16") for s in new)) == {
        "bfloat16": sorted(s.id for s in new)
    }
    halves = [CaseSpec(op, 22, type="float16", direction="reverse") for op in ("LSTM", "RNN")]
    refusals = of_these(*right, *(refused(s, "after bfloat16: no kernel") for s in halves))
    assert refusals == {
        "version 22 (only tested together with float16 and the reverse direction)": sorted(s.id for s in halves)
    }


def test_what_a_few_refusals_have_in_common_may_be_chance() -> None:
    right = (CaseSpec("LSTM", 14, initial="all"), Judgement(Verdict.PASS))
    few = [CaseSpec("LSTM", 14, layout=1), CaseSpec("LSTM", 14, direction="reverse")]
    assert list(of_these(right, *(refused(s, "1 is not 3") for s in few))) == [""]
    bare = refused(CaseSpec("LSTM", 14), "1 is not 3")
    others = [refused(CaseSpec("LSTM", 14, T=t, lengths="full"), "no sequence_lens") for t in range(1, 8)]
    refusals = of_these(right, *(refused(s, "1 is not 3") for s in few), bare, *others)
    assert set(refusals) == {"", "sequence_lens"}


def test_of_an_operator_that_never_runs_a_message_tells_why() -> None:
    right = Judgement(Verdict.PASS)
    plain = CaseSpec("RNN", 14, T=3)
    batch, other = CaseSpec("GRU", 14, T=3, layout=1), CaseSpec("GRU", 14, T=3, layout=1, clip=1.0)
    named = of_these((plain, right), refused(batch, "no layout 1 here"), refused(other, "no layout 1 here"))
    assert named == {"layout 1": sorted([batch.id, other.id])}
    assert of_these((plain, right), refused(batch, "no")) == {"GRU (only tested together with layout 1)": [batch.id]}
    # If every case of an operator is refused for some trait, it is unknown whether the operator runs without them.
    clipped = CaseSpec("GRU", 14, T=3, clip=1.0)
    refusals = of_these((plain, right), refused(batch, "no"), refused(clipped, "no"))
    assert refusals == {"GRU (no plain case was tried)": sorted([batch.id, clipped.id])}
    bare = CaseSpec("GRU", 14, T=3)
    refusals = of_these((plain, right), refused(batch, "no"), refused(bare, "no"))
    assert refusals == {"GRU altogether": sorted([batch.id, bare.id])}


def test_what_another_operator_takes_is_said_to_be_refused_by_this_one() -> None:
    judged = [(CaseSpec(op, 14, T=3), Judgement(Verdict.PASS)) for op in ("RNN", "GRU")]
    judged.append((CaseSpec("RNN", 14, T=3, layout=1), Judgement(Verdict.PASS)))
    judged.append(refused(CaseSpec("GRU", 14, T=3, layout=1), "no layout 1 here"))
    (finding,) = findings_of(results_of(judged), {s.id: SpecProbe(s) for s, _ in judged})
    assert (finding["title"], finding["conditions"]) == ("refuses layout 1 in GRU", "layout 1")
    # The same holds if the other operator was not tried with it, but not if no other operator can have it.
    judged[2:3] = []
    (finding,) = findings_of(results_of(judged), {s.id: SpecProbe(s) for s, _ in judged})
    assert finding["title"] == "refuses layout 1 in GRU"
    judged = [(CaseSpec(op, 14, T=3), Judgement(Verdict.PASS)) for op in ("RNN", "LSTM")]
    judged.append(refused(CaseSpec("LSTM", 14, T=3, input_forget=1), "no input_forget here"))
    (finding,) = findings_of(results_of(judged), {s.id: SpecProbe(s) for s, _ in judged})
    assert finding["title"] == "refuses input_forget"


def test_what_ran_and_was_wrong_is_not_refused() -> None:
    wrong = Judgement(Verdict.WRONG, "value", message="so wrong", clause="lstm.equations", worst=9.0, judged=1)
    first = next(s for s in SPECS if s.layout == 1 and s.lengths == "absent")
    refusing = [
        refused(s, "not taken") if s.layout == 1 or s.lengths != "absent" else (s, Judgement(Verdict.PASS))
        for s in SPECS
        if s is not first
    ]
    titles = {f["title"] for f in findings_of(results_of([*refusing, (first, wrong)]), BY_ID)}
    assert "refuses sequence_lens" in titles
    assert "refuses layout 1" not in titles


def test_a_refusal_says_what_most_of_it_say() -> None:
    few = min((s for s in SPECS if s.T and s.N), key=lambda s: SpecProbe(s).size)
    judged = [refused(s, "a rare word" if s is few else f"the usual word, at {n}") for n, s in enumerate(SPECS[:9])]
    judged += [refused(few, "a rare word")] if few not in SPECS[:9] else []
    other = next(s for s in profile("core", "LSTM", 14) if s.type == "float16" and not s.illegal)
    judged.append((other, Judgement(Verdict.PASS)))
    (finding,) = findings_of(results_of(judged), {**BY_ID, other.id: SpecProbe(other)})
    assert finding["title"] == "refuses float32"
    assert finding["message"].startswith("the usual word")


def test_nothing_is_made_up_of_refusals_that_have_nothing_in_common() -> None:
    judged = [
        refused(s, f"rejected {n}") if int(s.digest, 16) % 3 == 0 else (s, Judgement(Verdict.PASS))
        for n, s in enumerate(SPECS)
    ]
    (finding,) = findings_of(results_of(judged), BY_ID)
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
    judged = [(s, Judgement(Verdict.WRONG, "value", clause=f"{s.op.lower()}.equations", message="m")) for s in specs]
    (finding,) = findings_of(results_of(judged), {s.id: SpecProbe(s) for s in specs})
    assert finding["operators"] == sorted(OPERATORS)
    assert sorted(finding["clauses"]) == ["gru.equations", "lstm.equations", "rnn.equations"]


def test_what_two_findings_say_alike_is_one_finding() -> None:
    (finding,) = findings_of(failing_where(lambda spec: spec.layout == 1), BY_ID)
    results = failing_where(lambda spec: spec.layout == 1)
    half = len(finding["cases"]) // 2
    first, second = ({**finding, "cases": cases} for cases in (finding["cases"][:half], finding["cases"][half:]))
    other = {**finding, "title": "another one", "cases": finding["cases"][:1]}
    both, alone = joined([first, other, second], results)  # type: ignore[list-item]
    assert (both["cases"], both["new"]) == (finding["cases"], len(finding["cases"]))
    assert alone == other


def test_failures_come_first_and_refusals_last() -> None:
    broken = Judgement(Verdict.PASS, "padding", clause="lstm.padding.zero", flags=("unconventional",), message="m")
    judged = [refused(SPECS[0], "no"), (SPECS[1], broken), (SPECS[2], Judgement(Verdict.CRASHED, message="m"))]
    kinds = [finding["kind"] for finding in findings_of(results_of(judged), BY_ID)]
    assert kinds == ["crashed", "convention", "unsupported"]


def test_the_smallest_case_stands_for_a_finding() -> None:
    wrong = Judgement(Verdict.WRONG, "value", message="m")
    large = max(SPECS, key=lambda s: s.H * s.T * s.N * s.I)
    small = min((s for s in SPECS if s.T and s.N), key=lambda s: (s.H * s.T * s.N * s.I, s.H))
    (finding,) = findings_of(results_of([(large, wrong), (small, wrong)]), BY_ID)
    assert (finding["smallest"], finding["repeat"]) == (small.id, f"repeat {small.id}")


def test_faults_that_no_case_shows_alone_have_cases_of_their_own_and_the_clause_of_the_fault() -> None:
    wrong = Judgement(Verdict.WRONG, "value", clause="lstm.equations", message="Y is 1 (lstm.equations), the first")
    both = ("lengths.ignored", "clip.ignored")
    results = [structs.replace(r, diagnosis=both) for r in results_of([(SPECS[0], wrong), (SPECS[1], wrong)])]
    findings = findings_of(results, BY_ID)
    assert len({finding["smallest"] for finding in findings}) == 2
    assert {f["fault"]: f["message"] for f in findings} == {
        "lengths.ignored": "Y is 1 (lstm.lengths), the first",
        "clip.ignored": "Y is 1 (lstm.clip), the first",
    }


def test_long_messages_keep_their_ends() -> None:
    text = "BEGIN " + "x" * 5000 + " END"
    (finding,) = findings_of(results_of([(SPECS[0], Judgement(Verdict.CRASHED, message=text))]), BY_ID)
    assert len(finding["message"]) < 300
    assert finding["message"].startswith("BEGIN")
    assert finding["message"].endswith("END")


def test_what_only_breaks_a_convention_is_a_finding_of_its_own_kind() -> None:
    broken = Judgement(Verdict.PASS, "padding", clause="lstm.padding.zero", flags=("unconventional",), message="m")
    findings = findings_of(results_of([(SPECS[0], broken), (SPECS[1], Judgement(Verdict.PASS))]), BY_ID)
    assert [(f["kind"], f["verdict"], f["clauses"]) for f in findings] == [
        ("convention", "pass", ["lstm.padding.zero"])
    ]


def test_lost_nan_is_a_finding_of_its_own_kind_and_overflow_says_from_where_on() -> None:
    spoilt = [spec for spec in SPECS if spec.data == "nan-row"] or SPECS[:2]
    lost = Judgement(Verdict.PASS, "nan", clause="lstm.nan.kept", flags=("loses-nan",), message="NaN enters at X[0]")
    late, early = (
        Judgement(
            Verdict.PASS, "overflow", {"output": "Y", "argument": a}, "m", clause="lstm.overflow", flags=("overflows",)
        )
        for a in (300.0, 89.25)
    )
    judged = [(spoilt[0], lost), (SPECS[3], late), (SPECS[4], early)]
    overflow, nan = findings_of(results_of(judged), BY_ID)
    assert (nan["kind"], nan["clauses"], nan["new"]) == ("special-values", ["lstm.nan.kept"], 0)
    assert nan["message"] == "NaN enters at X[0]"
    assert "from an argument of 89.25 on" in overflow["title"]
    assert overflow["smallest"] == SPECS[4].id


def test_passes_unjudged_and_unavailable_are_no_findings() -> None:
    judged = [(SPECS[0], Judgement(Verdict.PASS)), (SPECS[1], Judgement(Verdict.INCONCLUSIVE, "inconclusive"))]
    assert findings_of(results_of([*judged, (SPECS[2], Judgement(Verdict.UNAVAILABLE))]), BY_ID) == []


# Grades and biases


def graded(*judgements: Judgement, declared: str = "standard") -> dict[str, str]:
    numerics = [spec for spec in SPECS if spec.data == "numerics"]
    results = results_of(zip(numerics, judgements, strict=False))
    assert passing_grades([r for r in results if r.verdict is not Verdict.WRONG], declared) == passing_grades(
        results, declared
    )
    return grades(results, declared)


def test_the_grade_is_the_tightest_class_that_all_cases_meet() -> None:
    def passing(strict: bool) -> Judgement:
        return Judgement(Verdict.PASS, strict=strict)

    assert graded(passing(True), passing(True)) == {"float32": "strict"}
    assert graded(passing(True), passing(False)) == {"float32": "standard"}
    assert graded(passing(True), declared="tf32") == {"float32": "strict"}
    assert graded(passing(False), declared="tf32") == {"float32": "tf32"}
    coarse = Judgement(Verdict.INACCURATE, accuracy="tf32"), Judgement(Verdict.INACCURATE, accuracy="bf16-math")
    assert graded(passing(True), *coarse) == {"float32": "bf16-math"}
    assert graded(passing(True), Judgement(Verdict.WRONG)) == {}
    (numeric, *_) = (spec for spec in SPECS if spec.data == "numerics")
    right, wrong = (numeric, passing(True)), (SPECS[0], Judgement(Verdict.WRONG, strict=False))
    assert passing_grades(results_of([right, wrong]), "standard") == {"float32": "strict"}
    assert graded(Judgement(Verdict.UNSUPPORTED)) == {}


def bias_of(implementation: Any) -> dict[str, Any]:
    judged = []
    for spec in SPECS:
        if spec.data == "numerics":
            judged.append((spec, judge_staged(build_case(spec), implementation)))
    results = results_of(judged)
    bias = biases(results)["float32"]
    flagged = [f for f in findings_of(results, BY_ID) if f["kind"] == "biased"]
    assert bool(flagged) == bias["biased"]
    return bias


def test_roundings_average_out_and_a_drift_does_not() -> None:
    def conforming(node: Any, inputs: Any) -> Any:
        return {n: a.astype(inputs["X"].dtype) for n, a in evaluate(node, inputs).items()}

    fair = bias_of(conforming)
    assert fair["biased"] is False
    assert abs(fair["shift"]) < 0.1
    assert abs(fair["scale"]) < 0.1
    assert fair["elements"] >= 100
    low = bias_of(lambda node, inputs: run_fault(FAULTS["drift.one-unit-low"], node, inputs))
    assert low["biased"] is True
    assert low["shift"] < -0.5


def test_a_handful_of_elements_or_a_large_scatter_is_no_bias() -> None:
    def found(sums: tuple[float, ...], judged: int) -> bool:
        spec = next(spec for spec in SPECS if spec.data == "numerics")
        judgement = Judgement(Verdict.PASS, error_sums=sums, elements=judged)
        return bool(biases(results_of([(spec, judgement)]))["float32"]["biased"])

    assert found((1.0, 0.0, 1e-6, 1.0), 1000)
    assert found((0.0, -1.0, 1e-6, 1.0), 1000)
    assert not found((1.0, 0.0, 1e-6, 1.0), 99)
    assert not found((1.0, 0.0, 0.04, 1.0), 1000)
    assert not found((0.4, 0.0, 1e-6, 1.0), 1000)


def test_without_finite_sums_no_bias_is_said() -> None:
    spec = next(spec for spec in SPECS if spec.data == "numerics")
    infinite = Judgement(Verdict.WRONG, error_sums=(1.0, 1.0, float("inf"), 1.0), judged=1000)
    assert biases(results_of([(spec, infinite)])) == {}
    assert biases(results_of([(spec, Judgement(Verdict.PASS))])) == {}


def test_a_wider_class_that_the_other_results_do_not_need_is_no_excuse() -> None:
    coarse = Judgement(Verdict.INACCURATE, "value", accuracy="bf16-storage", message="off; right by the wider class x")
    flushing = Judgement(Verdict.INACCURATE, "value", accuracy="flushing", message="m")
    right = Judgement(Verdict.PASS, judged=9, elements=9)
    of_type = [spec for spec in SPECS if spec.type == "float32"]
    few = results_of(zip(of_type, [coarse, flushing, right, right], strict=False))
    (amended,) = with_needed_classes(few)
    assert (amended.verdict, amended.accuracy) == (Verdict.WRONG, None)
    assert amended.message == (
        "off; the wider class bf16-storage would accept it, but 2 float32 results pass and only 1 need it"
    )
    assert with_needed_classes(results_of(zip(of_type, [coarse, coarse, right, right], strict=False))) == []


def test_what_misses_its_bound_by_little_everywhere_stays_inaccurate() -> None:
    """The target approximates functions coarsely; a fault stands out against that."""

    def missed(worst: float) -> Judgement:
        size = {"accuracy": "bf16-storage", "message": "off; right by", "judged": 9, "elements": 9}
        return Judgement(Verdict.INACCURATE, "value", worst=worst, **size)

    right = [Judgement(Verdict.PASS, judged=9, elements=9)] * 5
    by_little = results_of(zip(SPECS, [missed(1.1), missed(1.4), missed(1.3), *right], strict=False))
    assert with_needed_classes(by_little) == []
    results = results_of(zip(SPECS, [missed(1.1), missed(1.4), missed(12.5), *right], strict=False))
    assert [r.worst for r in with_needed_classes(results)] == [12.5]
    mostly_far = results_of(zip(SPECS, [missed(1.1), missed(40.0), missed(12.5), *right], strict=False))
    assert len(with_needed_classes(mostly_far)) == 3


def test_what_is_right_by_the_class_that_a_fault_consists_in_has_its_name() -> None:
    (spec,) = [s for s in profile("core", "LSTM", 14) if s.type == "float64" and not s.illegal][:1]
    single = Judgement(Verdict.INACCURATE, "value", accuracy="f32-math", message="m")
    (result,) = results_of([(spec, single)])
    probes: dict[str, Probe] = {spec.id: SpecProbe(spec)}
    assert explained([result], probes, Kept(), "standard") == {spec.id: ("precision.computed-in-single",)}
    (other,) = results_of([(spec, Judgement(Verdict.INACCURATE, "value", accuracy="tf32", message="m"))])
    assert explained([other], probes, Kept(), "standard") == {}


def test_what_a_class_allows_that_others_show_is_in_their_finding() -> None:
    specs = [CaseSpec("RNN", 14, T=t, type="float64") for t in range(1, 8)]

    def titles(shown: int) -> list[tuple[str, int]]:
        silent = Judgement(Verdict.INACCURATE, "value", message=f"off; {would_allow('f32-math')}, and nothing shows it")
        clear = Judgement(Verdict.INACCURATE, "value", accuracy="f32-math", message="off; right by it")
        judged = [(spec, clear if n < shown else silent) for n, spec in enumerate(specs)]
        findings = findings_of(results_of(judged), {s.id: SpecProbe(s) for s in specs})
        return [(f["title"], len(f["cases"])) for f in findings]

    assert titles(shown=2) == [("inaccurate (no better than f32-math)", 7)]
    # One in seven may show its roundings by chance.
    assert titles(shown=1) == [("inaccurate (value)", 6), ("inaccurate (no better than f32-math)", 1)]
