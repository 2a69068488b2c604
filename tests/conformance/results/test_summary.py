"""Summary of a target: its first lines must follow from the results, and claim no more."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, cast

import pytest
from msgspec import structs

from onnxspec.cases import CaseSpec
from onnxspec.conformance.judging.judgement import NO_CLEAN_REFUSAL, Judgement, Verdict
from onnxspec.conformance.probes.probe import SpecProbe
from onnxspec.conformance.results.records import Finding
from onnxspec.conformance.results.result import Result, result_of
from onnxspec.conformance.results.sections import sections_of
from onnxspec.conformance.results.summary import Summary, summary_of
from onnxspec.reports.run import empty

RESULT = structs.replace(
    result_of(SpecProbe(CaseSpec("LSTM", 14)), "some", Judgement(Verdict.PASS, judged=1, elements=1), 0.0, None),
    clauses=(),
    features=(),
)


def tried(verdict: str, count: int = 1, **changed: Any) -> list[Result]:
    """Return ``count`` equal results."""
    return [structs.replace(RESULT, verdict=Verdict(verdict), **changed)] * count


NUMBERS = itertools.count()


def problem(title: str, verdict: str, cases: int = 3, **changed: Any) -> Finding:
    """Return a finding whose cases no other finding has."""
    finding: Finding = {
        **empty(Finding),
        "title": title,
        "kind": verdict,
        "verdict": verdict,
        "types": ["float32"],
        "versions": [14],
        "operators": ["LSTM"],
        "cases": [f"lstm-14.{next(NUMBERS)}" for _ in range(cases)],
        "smallest": "lstm-14.smallest",
        "new": 0 if changed.get("expected") else cases,
    }
    return cast(Finding, {**finding, **changed})


def summary(*rows: list[Result], problems: Sequence[Finding] = (), **more: Any) -> Summary:
    return summary_of([result for row in rows for result in row], problems, **more)


CHOSEN = {"chosen": True}
BROKE_OFF = {"flags": (NO_CLEAN_REFUSAL,)}


@pytest.mark.parametrize(
    ("rows", "options", "state", "conforms"),
    [
        ([tried("pass", 7)], {}, "conforms", "yes: all 7 checked cases are correct"),
        ([tried("wrong", 2, expected=True), tried("pass", 3)], {}, "known", "no: 2 of 5 checked cases fail"),
        ([tried("wrong"), tried("wrong", expected=True)], {}, "departs", "no: 2 of 2 checked cases fail"),
        ([tried("inconclusive", 4)], {}, "open", "unknown: nothing could be judged"),
        # A small profile promises no more than it shows.
        ([tried("pass", 7)], {"profile": "smoke-nonce-1234"}, "conforms",
         "yes in smoke, a small sample: all 7 checked cases are correct; run core"),
        ([tried("pass", 3), tried("wrong")], {"profile": "smoke"}, "departs", "no: 1 of 4 checked cases fails"),
        # Cases that somebody chose stand for no others; of these, refusals are told first.
        ([tried("pass", 7)], {"profile": "smoke", **CHOSEN}, "conforms", "all 7 checked cases are correct"),
        ([tried("pass")], CHOSEN, "conforms", "the one checked case is correct"),
        ([tried("wrong")], CHOSEN, "departs", "1 of 1 checked case fails"),
        ([tried("pass"), tried("unsupported", op="GRU"), tried("fallback")], CHOSEN, "lacks",
         "2 of 3 not supported, the one checked case is correct"),
        ([tried("pass"), tried("unsupported", op="GRU"), tried("wrong")], CHOSEN, "departs",
         "1 of 2 checked cases fails, 1 not supported"),
        # Refusals are no passes, and what was not run or ended without a clean refusal leaves the answer open.
        ([tried("unsupported"), tried("fallback", expected=True)], {}, "open", "unknown: nothing could be judged"),
        ([tried("unavailable", 5)], {}, "open", "unknown: could not start"),
        ([tried("pass", 3), tried("not-run", 2)], {}, "open", "unknown: 2 not run; all 3 checked cases are correct"),
        ([tried("pass", 4), tried("unsupported", 2, **BROKE_OFF)], {}, "open",
         "unknown: 2 ended without a clean refusal; all 4 checked cases are correct"),
        ([tried("pass", 4), tried("unsupported", 2)], {}, "conforms", "yes: all 4 checked cases are correct"),
        ([tried("pass", 4), tried("unsupported", 2, **BROKE_OFF), tried("wrong")], {}, "departs",
         "no: 1 of 5 checked cases fails"),
        # Few decided cases do not speak for many inconclusive ones.
        ([tried("pass", 13), tried("inconclusive", 28)], {}, "open",
         "unknown: 28 of 41 inconclusive; all 13 checked cases are correct"),
        ([tried("pass", 28), tried("inconclusive", 13)], {}, "conforms", "yes: all 28 checked cases are correct"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_the_answer_follows_from_the_results(
    rows: list[list[Result]], options: dict[str, Any], state: str, conforms: str
) -> None:
    answer = summary(*rows, **options)
    assert (answer.state, answer.conforms) == (state, conforms)
    assert answer.conforming is {"conforms": True, "known": False, "departs": False}.get(state)
    assert answer.question == ("Of these cases" if options.get("chosen") else "Conforms")


def test_cases_with_several_causes_are_said_to_count_in_each() -> None:
    rows = [tried("pass", 9), tried("wrong", 4)]
    clip = problem("ignores clip", "wrong", clauses=("lstm.clip",))
    lengths = problem("ignores sequence_lens", "wrong", clauses=("lstm.lengths",))
    assert summary(*rows, problems=[clip]).heading == "What is wrong"
    assert summary(*rows, problems=[clip, lengths]).heading.endswith("(a case with several causes counts in each)")


@pytest.mark.parametrize(
    ("rows", "options", "comparison"),
    [
        ([tried("pass", 2)], {}, ""),
        ([tried("unsupported", 2)], {}, ""),
        ([tried("pass", 2), tried("not-run", 1)], {}, ""),
        ([tried("unavailable", 5)], {}, ""),
        ([tried("pass", 2)], {"stale": 1}, "1 entry no longer fails"),
        ([tried("wrong", 2, expected=True)], {}, "every failure is on the list"),
        ([tried("wrong", 2, expected=True), tried("wrong")], {}, "3 failures, 1 of them not on the list"),
        ([tried("wrong")], {}, "1 failure, not on the list"),
        ([tried("wrong")], {"lists_used": False}, "not compared (--expected none)"),
        ([tried("wrong", expected=True)], {"stale": 2}, "every failure is on the list; 2 entries no longer fail"),
        ([tried("wrong", 2, expected=True)], {"unlisted": 2},
         "every failure is on the list; 2 known have a confirmed cause that the list does not name"),
    ],
)  # fmt: skip
def test_new_failures_are_those_that_no_list_names(
    rows: list[list[Result]], options: dict[str, Any], comparison: str
) -> None:
    assert summary(*rows, **options).comparison == comparison


@pytest.mark.parametrize(
    ("rows", "supported"),
    [
        ([tried("unsupported", 5), tried("fallback")], "nothing that was tried"),
        ([tried("pass"), tried("wrong", version=7), tried("unsupported", version=1)],
         "LSTM; float32; versions 7 to 14"),
        # A gap is listed.
        ([*(tried("pass", version=v) for v in (1, 14, 22)), tried("unsupported", version=7)],
         "LSTM; float32; versions 1, 14 and 22"),
        # That a forbidden model is refused or runs does not count.
        ([tried("pass"), tried("pass", type="float64", reason="refused"), tried("pass", op="GRU", reason="open"),
          tried("not-rejected", type="float16")], "LSTM; float32; version 14"),
    ],
)  # fmt: skip
def test_what_ran_is_supported(rows: list[list[Result]], supported: str) -> None:
    answer = summary(*rows)
    assert (answer.supported, answer.lacking) == (supported, "")


def test_what_refusals_are_about_is_lacking_and_what_nobody_knows_is_counted() -> None:
    rows = [tried("pass"), tried("unsupported", 9), tried("unsupported", type="float64")]
    problems = (
        problem("refuses float64", "unsupported", conditions="float64", types=("float64",)),
        problem("refuses layout 1", "unsupported", conditions="layout 1"),
        problem("refuses, saying: no", "unsupported", cases=2),
        problem("fell-back (load)", "fallback", cases=3),
        problem("Ignores clip", "wrong", conditions="layout 1"),
    )
    answer = summary(*rows, problems=problems)
    assert [(lack.text, lack.problem) for lack in answer.lacks] == [
        ("float64", 0),
        ("layout 1", 1),
        ("5 other cases", None),
    ]


TOGETHER = "float16 (only tested together with layout 1)"


@pytest.mark.parametrize(
    ("rows", "refusals", "supported", "lacking"),
    [
        ([tried("pass"), tried("pass", op="GRU"), tried("pass", op="GRU", type="float16"),
          tried("unsupported", type="float16"), tried("fallback", op="RNN")],
         [{"verdict": "fallback", "conditions": "RNN altogether", "operators": ["RNN"]}, {"conditions": "float16"}],
         "GRU and LSTM; float16, float32; version 14", "RNN, float16 in LSTM"),
        # Refused by one provider and left to another.
        ([tried("pass"), tried("unsupported")],
         [{"conditions": "seq_length 0"}, {"verdict": "fallback", "conditions": "seq_length 0"}],
         "LSTM; float32; version 14", "seq_length 0"),
        # A type with which nothing ran lacks only what the findings say.
        ([tried("pass"), tried("unsupported", type="float16"), tried("unsupported", version=1)],
         [{"conditions": TOGETHER, "types": ["float16"]}, {"conditions": "version 1"}],
         "LSTM; float32; version 14", f"{TOGETHER}, version 1"),
        ([tried("pass"), tried("unsupported", op="GRU")], [{"conditions": "layout 1", "operators": ["GRU"]}],
         "LSTM; float32; version 14", "layout 1 in GRU"),
        ([tried("pass"), tried("unsupported", op="GRU")],
         [{"verdict": "fallback", "conditions": "GRU altogether", "operators": ["GRU"]}],
         "LSTM; float32; version 14", "GRU"),
        # A type that runs in part.
        ([tried("pass"), tried("inaccurate", type="float64"), tried("unsupported", type="float64")],
         [{"conditions": "float64"}], "LSTM; float32, float64; version 14", "some float64"),
    ],
)  # fmt: skip
def test_what_is_lacking_is_named_as_far_as_findings_know_it(
    rows: list[list[Result]], refusals: list[dict[str, Any]], supported: str, lacking: str
) -> None:
    answer = summary(*rows, problems=[problem("no", **{"verdict": "unsupported", **refusal}) for refusal in refusals])
    assert (answer.supported, answer.lacking) == (supported, lacking)


def hits(*problems: Finding) -> list[str]:
    return [hit.text for hit in summary(problems=problems).groups]


def test_hits_lead_with_the_cause_and_then_say_when() -> None:
    assert hits(
        problem("crashed (with batch_size 0)", "crashed", conditions="batch_size 0"),
        problem("wrong (value) (seen only with B)", "wrong", conditions="B"),
        problem("Ignores clip", "wrong", clauses=("lstm.clip", "gru.clip.zero")),
        problem("X gives up", "wrong", clauses=("lstm.functions.thresholded-relu",)),
        problem("inaccurate (no better than f32-math)", "inaccurate", types=("float64",)),
        problem("crashed", "crashed", why="it divides by rows"),
        problem("crashed", "crashed"),
        problem("breaks a convention (padding)", "pass", kind="convention"),
        problem("refuses float64", "unsupported"),
    ) == [
        "The process dies (with batch_size 0)",
        "Wrong values (seen only with B)",
        "Ignores clip",
        "X gives up",
        "Values less accurate than they must be, within f32-math accuracy",
        "The process dies",
        "The process dies; no common condition found; smallest case lstm-14.smallest",
    ]


def test_known_invalid_models_are_one() -> None:
    title = "accepts what the document forbids: a"
    taken, other = (problem(title, "not-rejected", expected=True, cases=4) for _ in range(2))
    answer = summary(
        problems=(taken, problem("New", "wrong"), problem("Known", "wrong", expected=True, cases=9), other)
    )
    assert [(hit.text, hit.problems) for hit in answer.groups] == [
        ("New", (1,)),
        ("Known", (2,)),
        ("Accepts 8 invalid models", (0, 3)),
    ]
    assert answer.failures == answer.groups[:2]
    assert answer.validation == answer.groups[2:]
    fresh = summary(problems=(cast(Finding, {**taken, "expected": False}),))
    assert fresh.failures == ()
    assert [hit.known for hit in fresh.validation] == [False]


def test_a_group_counts_each_case_once_and_says_how_many_are_new_if_only_some_are() -> None:
    listed = problem("Listed", "wrong", cases=53, new=2)
    (group,) = summary(problems=(listed, listed)).groups
    assert (group.cases, group.extent) == (53, "53 cases, 4 of them new, LSTM, float32")
    wrong = problem("Does it", "wrong")
    (group,) = summary(problems=(wrong, wrong)).groups
    assert (group.cases, group.new) == (3, 3)


def test_a_known_fault_is_said_once_without_sizes() -> None:
    lengths, clip = ("lstm.lengths",), ("gru.clip", "lstm.clip")
    sizes = "4 features of X or more and outputs Y_h"
    problems = (
        problem(f"Ignores clip (with {sizes})", "wrong", clauses=clip, conditions=sizes),
        problem("Ignores sequence_lens (with initial states)", "wrong", clauses=lengths, conditions="initial states"),
        problem("Ignores clip", "wrong", clauses=clip),
        problem("Consistent with: halves it", "wrong", conditions="batch_size 0"),
    )
    (first, second, third) = summary(problems=problems).groups
    assert (first.text, first.cases, first.problems) == ("Ignores clip", 2 * len(problems[0]["cases"]), (0, 2))
    assert second.text == "Ignores sequence_lens (with initial states)"
    assert third.text == "Consistent with: halves it (with batch_size 0)"
    long = problem("Ignores clip (with 18 steps or more)", "wrong", clauses=clip, conditions="18 steps or more")
    assert hits(long) == ["Ignores clip (with 18 steps or more)"]


def test_what_is_never_right_is_said_to_be_so_whatever_the_features() -> None:
    inaccurate = problem("inaccurate (value)", "inaccurate", types=("float16", "float32"), cases=4)

    def always(*tried: list[Result]) -> bool:
        return summary(*tried, problems=[inaccurate]).groups[0].text.endswith(", whatever the features")

    failing = [tried("inaccurate", 2, type=type) for type in inaccurate["types"]]
    assert always(*failing)
    assert not always(*failing, tried("pass"))


def test_reasons_stand_for_cases_that_were_not_tried_as_for_inconclusive_ones() -> None:
    why = "the target's SESSIONS does not declare many runs of one session"
    results = [*tried("pass"), *tried("not-tried", 2, message=why), *tried("inconclusive", reason="inconclusive")]
    (section,) = (s for s in sections_of(summary_of(results, []), [], results) if s.heading == "Also:")
    assert [(item.label, item.extent) for item in section.items] == [
        ("inconclusive", " (1 case, LSTM, float32)"),
        ("not-tried", " (2 cases, LSTM, float32)"),
    ]
    assert section.items[1].text == why
