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


@pytest.mark.parametrize(
    ("failing", "known", "passing", "state"),
    [(0, 0, 7, "conforms"), (0, 22, 736, "known"), (1, 21, 736, "departs"), (0, 3, 0, "known"), (0, 0, 0, "open")],
)
def test_the_state_tells_known_failures_from_new_ones(failing: int, known: int, passing: int, state: str) -> None:
    rows = [tried("wrong", failing), tried("wrong", known, expected=True), tried("pass", passing)]
    assert summary(*rows, tried("inconclusive", 4)).state == state


def test_a_profile_that_is_a_look_promises_no_more_than_it_shows() -> None:
    answer = summary(tried("pass", 7), profile="smoke-nonce-1234")
    assert answer.conforms == "yes in smoke, a small sample: all 7 checked cases are correct; run core"
    assert answer.conforming is True
    assert summary(tried("pass", 3), tried("wrong"), profile="smoke").conforms == "no: 1 of 4 checked cases fails"
    assert summary(tried("pass", 7), profile="smoke", chosen=True).conforms == "all 7 checked cases are correct"


def test_cases_that_somebody_chose_stand_for_no_others() -> None:
    right, wrong = (summary(tried(verdict), chosen=True) for verdict in ("pass", "wrong"))
    assert (right.question, right.conforms) == ("Of these cases", "the one checked case is correct")
    assert (wrong.heading, wrong.conforms) == ("What is wrong", "1 of 1 checked case fails")


def test_of_chosen_cases_what_is_declined_is_told_before_what_is_right() -> None:
    answer = summary(tried("pass"), tried("unsupported", op="GRU"), tried("fallback"), chosen=True)
    assert (answer.state, answer.conforming) == ("lacks", None)
    assert answer.conforms == "2 of 3 not supported, the one checked case is correct"
    assert answer.comparison == ""
    answer = summary(tried("pass"), tried("unsupported", op="GRU"), tried("wrong"), chosen=True)
    assert answer.conforms == "1 of 2 checked cases fails, 1 not supported"
    assert answer.comparison == "1 failure, not on the list"


def test_what_is_declined_is_never_a_pass() -> None:
    answer = summary(tried("unsupported", 5), tried("fallback", 9, expected=True))
    assert answer.state == "open"
    assert answer.conforms == "unknown: nothing could be judged"
    assert answer.supported == "nothing that was tried"


def test_a_target_that_could_not_start_lacks_nothing() -> None:
    answer = summary(tried("unavailable", 5))
    assert answer.conforms == "unknown: could not start"
    assert answer.comparison == ""
    assert answer.lacking == ""


def test_what_was_not_run_is_said() -> None:
    answer = summary(tried("pass", 3), tried("not-run", 2))
    assert answer.conforms == "unknown: 2 not run; all 3 checked cases are correct"


def test_what_broke_off_in_place_of_a_refusal_leaves_it_open() -> None:
    right, broke = tried("pass", 4), tried("unsupported", 2, flags=(NO_CLEAN_REFUSAL,))
    answer = summary(right, broke)
    assert (answer.conforming, answer.state) == (None, "open")
    assert answer.conforms == "unknown: 2 ended without a clean refusal; all 4 checked cases are correct"
    assert summary(right, tried("unsupported", 2)).conforming is True
    assert summary(right, broke, tried("wrong", 1)).conforming is False
    assert summary(tried("unsupported", 2)).conforming is None


def test_cases_with_several_causes_are_said_to_count_in_each() -> None:
    rows = [tried("pass", 9), tried("wrong", 4)]
    clip = problem("ignores clip", "wrong", clauses=("lstm.clip",))
    lengths = problem("ignores sequence_lens", "wrong", clauses=("lstm.lengths",))
    assert summary(*rows, problems=[clip]).heading == "What is wrong"
    assert summary(*rows, problems=[clip, lengths]).heading.endswith("(a case with several causes counts in each)")


def test_a_list_of_known_failures_is_mentioned_where_something_failed() -> None:
    for rows in ([tried("pass", 2)], [tried("unsupported", 2)], [tried("pass", 2), tried("not-run", 1)]):
        assert summary(*rows).comparison == ""
        assert summary(*rows, stale=1).comparison == "1 entry no longer fails"
    assert summary(tried("pass", 2), tried("wrong", 1, expected=True)).comparison == "every failure is on the list"


def since(*rows: list[Result], **more: Any) -> str:
    return summary(*rows, **more).comparison


def test_news_are_what_no_list_names() -> None:
    expected, new = tried("wrong", 2, expected=True), tried("wrong", 1)
    assert since(expected) == "every failure is on the list"
    assert since(expected, new) == "3 failures, 1 of them not on the list"
    assert since(new) == "1 failure, not on the list"
    swallowed = "every failure is on the list; 2 known have a confirmed cause that the list does not name"
    assert since(expected, unlisted=2) == swallowed
    assert since(expected, stale=2) == "every failure is on the list; 2 entries no longer fail"
    assert since(new, lists_used=False) == "not compared (--expected none)"


def support(*rows: list[Result], problems: tuple[Finding, ...] = ()) -> tuple[str, str]:
    answer = summary(*rows, problems=problems)
    return answer.supported, answer.lacking


def test_what_was_asked_is_not_what_is_supported() -> None:
    rows = [
        tried("pass"),
        tried("wrong", version=7),
        tried("unsupported", version=1),
        tried("unsupported", type="float64"),
    ]
    assert support(*rows) == ("LSTM; float32; versions 7 to 14", "")


def test_that_a_forbidden_model_is_refused_or_runs_says_nothing_of_support() -> None:
    rows = [tried("pass"), tried("pass", type="float64", reason="refused"), tried("unsupported", type="float64")]
    rows += [tried("pass", op="GRU", reason="open"), tried("fallback", op="GRU")]
    assert support(*rows, tried("not-rejected", type="float16")) == ("LSTM; float32; version 14", "")


def test_what_some_operators_lack_names_them() -> None:
    rows = [tried("pass"), tried("pass", op="GRU"), tried("pass", op="GRU", type="float16")]
    rows += [tried("unsupported", type="float16"), tried("fallback", op="RNN")]
    problems = (
        problem("refuses RNN altogether", "fallback", conditions="RNN altogether", operators=("RNN",)),
        problem("refuses float16", "unsupported", conditions="float16"),
    )
    told = ("GRU and LSTM; float16, float32; version 14", "RNN, float16 in LSTM")
    assert support(*rows, problems=problems) == told


def test_versions_with_a_gap_are_listed() -> None:
    rows = [tried("pass", version=v) for v in (1, 14, 22)]
    assert support(*rows, tried("unsupported", version=7)) == ("LSTM; float32; versions 1, 14 and 22", "")


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


def test_what_is_refused_here_and_left_to_another_provider_there_is_one_lack() -> None:
    problems = tuple(problem("no", verdict, conditions="seq_length 0") for verdict in ("unsupported", "fallback"))
    assert summary(tried("pass"), tried("unsupported"), problems=problems).lacking == "seq_length 0"


def test_a_type_with_which_nothing_ran_is_lacking_only_where_the_findings_say_so() -> None:
    rows = [tried("pass"), tried("unsupported", type="float16"), tried("unsupported", version=1)]
    together = "float16 (only tested together with layout 1)"
    problems = (
        problem("refuses " + together, "unsupported", conditions=together, types=("float16",)),
        problem("refuses version 1", "unsupported", conditions="version 1"),
    )
    assert summary(*rows, problems=problems).lacking == f"{together}, version 1"
    gru = [tried("pass"), tried("unsupported", op="GRU")]
    layout = problem("refuses layout 1", "unsupported", conditions="layout 1", operators=("GRU",))
    assert summary(*gru, problems=(layout,)).lacking == "layout 1 in GRU"
    altogether = problem("no", "fallback", conditions="GRU altogether", operators=("GRU",))
    assert summary(*gru, problems=(altogether,)).lacking == "GRU"


def test_a_type_that_runs_in_part_is_not_called_lacking() -> None:
    rows = [tried("pass"), tried("inaccurate", type="float64"), tried("unsupported", type="float64")]
    problems = (problem("refuses float64", "unsupported", conditions="float64"),)
    assert support(*rows, problems=problems) == ("LSTM; float32, float64; version 14", "some float64")


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


def test_the_extent_has_the_number_of_new_cases_if_only_some_are_new() -> None:
    (group,) = summary(problems=(problem("Listed", "wrong", cases=53, new=2),)).groups
    assert group.extent == "53 cases, 2 of them new, LSTM, float32"


def test_a_group_counts_each_case_once() -> None:
    wrong = problem("Does it", "wrong")
    (hit,) = summary(problems=(wrong, wrong)).groups
    assert (hit.cases, hit.new) == (3, 3)


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


def test_few_decided_cases_do_not_speak_for_many_inconclusive_ones() -> None:
    few = summary_of([*tried("pass", 13), *tried("inconclusive", 28)], [])
    assert few.conforms == "unknown: 28 of 41 inconclusive; all 13 checked cases are correct"
    assert few.state == "open"
    assert summary_of([*tried("pass", 28), *tried("inconclusive", 13)], []).state == "conforms"
