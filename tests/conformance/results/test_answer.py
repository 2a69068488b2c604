"""The first lines on a target: what they claim must follow from its results, and no more than that."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from onnxspec.conformance.results.answer import Answer, answer_of, look_of
from onnxspec.conformance.results.support import ResultsAlike, ShortFinding
from onnxspec.reference import clauses_of, operator_names


def tried(verdict: str, count: int = 1, **changed: Any) -> ResultsAlike:
    return ResultsAlike("LSTM", 14, "float32", verdict, "", False, count)._replace(**changed)


NUMBERS = itertools.count()


def problem(title: str, verdict: str, cases: int = 3, **changed: Any) -> ShortFinding:
    """A finding with cases that no other has."""
    ids = tuple(f"lstm-14.{next(NUMBERS)}" for _ in range(cases))
    plain = ShortFinding(
        title, verdict, verdict, "", "", (), ("LSTM",), ("float32",), ids, cases, False, "", "lstm-14.smallest"
    )
    return plain._replace(new=0 if changed.get("expected") else cases)._replace(**changed)


@pytest.mark.parametrize(
    ("failing", "known", "passing", "state", "badge"),
    [
        (0, 0, 7, "conforms", "Conforms, 7 judged"),
        (0, 22, 736, "few", "3 % fail, all known"),
        (0, 781, 436, "departs", "64 % fail, all known"),
        (1, 21, 736, "departs", "3 % fail, 1 new"),
        (0, 1, 999, "few", "Under 1 % fail, all known"),
        (0, 999, 1, "departs", "99 % fail, all known"),
        (0, 3, 0, "departs", "All fail, all known"),
        (0, 0, 0, "open", "Nothing was judged"),
    ],
)
def test_the_badge_tells_few_known_failures_from_many(
    failing: int, known: int, passing: int, state: str, badge: str
) -> None:
    rows = [tried("wrong", failing), tried("wrong", known, expected=True), tried("pass", passing)]
    answer = answer_of([*(row for row in rows if row.times), tried("inconclusive", 4)], ())
    assert (answer.state, answer.badge) == (state, badge)


def test_a_profile_that_is_a_look_promises_no_more_than_it_shows() -> None:
    look = look_of("smoke+1234", ())
    answer = answer_of([tried("pass", 7)], (), look=look)
    assert answer.conforms == "passes smoke, a small sample (all 7 judged are right; run core)"
    assert (answer.badge, answer.conforming) == ("Conforms in smoke, 7 judged", True)
    assert answer_of([tried("pass", 3), tried("wrong")], (), look=look).conforms == "no (1 of 4 judged fails)"
    assert [look_of("core", ()), look_of("smoke", ["lstm-14.*"])] == ["", ""]


def test_cases_that_somebody_chose_stand_for_no_others() -> None:
    right, wrong = (answer_of([tried(verdict)], (), chosen=True) for verdict in ("pass", "wrong"))
    assert (right.question, right.conforms) == ("Of these cases", "the one judged is right")
    assert (wrong.who, wrong.conforms) == ("What fails", "1 of 1 judged fails")


def test_of_chosen_cases_what_is_declined_is_told_before_what_is_right() -> None:
    answer = answer_of([tried("pass"), tried("unsupported", op="GRU"), tried("fallback")], (), chosen=True)
    assert (answer.state, answer.badge, answer.conforming) == ("lacks", "2 of 3 not supported", None)
    assert answer.conforms == "2 of 3 not supported, the one judged is right"
    assert answer.comparison == ""
    answer = answer_of([tried("pass"), tried("unsupported", op="GRU"), tried("wrong")], (), chosen=True)
    assert answer.conforms == "1 of 2 judged fails, 1 not supported"
    assert answer.comparison == "1 new failure, none known before"


def test_what_is_declined_is_never_a_pass() -> None:
    answer = answer_of([tried("unsupported", 5), tried("fallback", 9, expected=True)], ())
    assert answer.state == "open"
    assert answer.conforms == "unknown, nothing was judged"
    assert answer.supported == "nothing that was tried"
    assert answer.lacking == "LSTM"


def test_a_target_that_could_not_start_lacks_nothing() -> None:
    answer = answer_of([tried("unavailable", 5)], ())
    assert answer.conforms == "unknown, it could not start"
    assert answer.comparison == ""
    assert answer.badge == "Could not start"
    assert answer.lacking == ""


def test_what_was_not_run_is_said() -> None:
    answer = answer_of([tried("pass", 3), tried("not-run", 2)], ())
    assert answer.conforms == "unknown (2 were not run, all 3 judged are right)"


def test_what_broke_off_in_place_of_a_refusal_leaves_it_open() -> None:
    right, broke = tried("pass", 4), tried("unsupported", 2, clean=False)
    answer = answer_of([right, broke], ())
    assert (answer.conforming, answer.state, answer.badge) == (None, "open", "Unknown, 2 broke off")
    assert answer.conforms == "unknown (2 broke off in place of a clean refusal, all 4 judged are right)"
    assert answer_of([right, tried("unsupported", 2)], ()).conforming is True
    assert answer_of([right, broke, tried("wrong", 1)], ()).conforming is False
    assert answer_of([tried("unsupported", 2)], ()).conforming is None


def test_cases_with_several_causes_are_said_to_count_in_each() -> None:
    rows = [tried("pass", 9), tried("wrong", 4)]
    clip = problem("ignores clip", "wrong", clauses=("lstm.clip",))
    lengths = problem("ignores sequence_lens", "wrong", clauses=("lstm.lengths",))
    assert answer_of(rows, [clip]).who_of_shared == "It affects you if your model uses"
    assert answer_of(rows, [clip, lengths]).who_of_shared.endswith("(a case with several causes counts in each)")


def test_a_list_of_known_failures_is_mentioned_where_something_failed() -> None:
    for rows in ([tried("pass", 2)], [tried("unsupported", 2)], [tried("pass", 2), tried("not-run", 1)]):
        assert answer_of(rows, ()).comparison == ""
        assert answer_of(rows, (), stale=1).comparison == "no failure beyond it; 1 known failure no longer shows"
    assert answer_of([tried("pass", 2), tried("wrong", 1, expected=True)], ()).comparison == "no failure beyond it"


def since(*rows: ResultsAlike, **more: Any) -> str:
    return answer_of(rows, (), **more).since


def test_news_are_what_no_list_names() -> None:
    known, new = tried("wrong", 2, expected=True), tried("wrong", 1)
    assert since(known) == "no failure beyond it"
    assert since(known, new) == "1 new failure, 2 known"
    assert since(new) == "1 new failure, none known before"
    assert since(known, stale=2) == "no failure beyond it; 2 known failures no longer show"
    assert "left out" in since(new, lists_used=False)
    assert "known" not in answer_of([new], (), lists_used=False).badge


def support(*rows: ResultsAlike, problems: tuple[ShortFinding, ...] = ()) -> tuple[str, str]:
    answer = answer_of(rows, problems)
    return answer.supported, answer.lacking


def test_what_was_asked_is_not_what_is_supported() -> None:
    rows = [
        tried("pass"),
        tried("wrong", version=7),
        tried("unsupported", version=1),
        tried("unsupported", type="float64"),
    ]
    assert support(*rows) == ("LSTM; float32; versions 7 to 14", "float64, version 1")


def test_that_a_forbidden_model_is_refused_or_runs_says_nothing_of_support() -> None:
    rows = [tried("pass"), tried("pass", type="float64", reason="refused"), tried("unsupported", type="float64")]
    rows += [tried("pass", op="GRU", reason="open"), tried("fallback", op="GRU")]
    assert support(*rows, tried("not-rejected", type="float16")) == ("LSTM; float32; version 14", "GRU, float64")


def test_what_some_operators_lack_names_them() -> None:
    rows = [tried("pass"), tried("pass", op="GRU"), tried("pass", op="GRU", type="float16")]
    rows += [tried("unsupported", type="float16"), tried("fallback", op="RNN")]
    assert support(*rows) == ("GRU and LSTM; float16, float32; version 14", "RNN, float16 in LSTM")


def test_versions_with_a_gap_are_listed() -> None:
    rows = [tried("pass", version=v) for v in (1, 14, 22)]
    assert support(*rows, tried("unsupported", version=7)) == ("LSTM; float32; versions 1, 14 and 22", "version 7")


def test_what_refusals_are_about_is_lacking_and_what_nobody_knows_is_counted() -> None:
    rows = [tried("pass"), tried("unsupported", 9), tried("unsupported", type="float64")]
    problems = (
        problem("refuses float64", "unsupported", conditions="float64", types=("float64",)),
        problem("refuses layout 1", "unsupported", conditions="layout 1"),
        problem("refuses, saying: no", "unsupported", cases=2),
        problem("fell-back (load)", "fallback", cases=3),
        problem("Ignores clip", "wrong", conditions="layout 1"),
    )
    answer = answer_of(rows, problems)
    assert [(lack.what, lack.problem) for lack in answer.lacks] == [
        ("float64", 0),
        ("layout 1", 1),
        ("5 other cases", None),
    ]


def test_what_is_refused_here_and_left_to_another_provider_there_is_one_lack() -> None:
    problems = tuple(problem("no", verdict, conditions="seq_length 0") for verdict in ("unsupported", "fallback"))
    assert answer_of([tried("pass"), tried("unsupported")], problems).lacking == "seq_length 0"


def test_a_type_with_which_nothing_ran_is_lacking_only_where_the_findings_say_so() -> None:
    rows = [tried("pass"), tried("unsupported", type="float16"), tried("unsupported", version=1)]
    together = "float16 (tried only with layout 1)"
    problems = (
        problem("refuses " + together, "unsupported", conditions=together, types=("float16",)),
        problem("refuses version 1", "unsupported", conditions="version 1"),
    )
    assert answer_of(rows, problems).lacking == f"version 1, {together}"
    gru = [tried("pass"), tried("unsupported", op="GRU")]
    layout = problem("refuses layout 1", "unsupported", conditions="layout 1", operators=("GRU",))
    assert answer_of(gru, (layout,)).lacking == "layout 1 in GRU"
    assert answer_of(gru, (problem("refuses GRU altogether", "fallback", operators=("GRU",)),)).lacking == "GRU"


def test_a_type_that_runs_in_part_is_not_called_lacking() -> None:
    rows = [tried("pass"), tried("inaccurate", type="float64"), tried("unsupported", type="float64")]
    problems = (problem("refuses float64", "unsupported", conditions="float64"),)
    assert support(*rows, problems=problems) == ("LSTM; float32, float64; version 14", "some float64")


def hits(*problems: ShortFinding) -> list[str]:
    return [hit.text for hit in answer_of((), problems).hits]


def test_hits_say_on_what_somebody_relies_and_what_then_happens() -> None:
    assert hits(
        problem("crashed (with batch_size 0)", "crashed", conditions="batch_size 0"),
        problem("wrong (value) (seen only with B)", "wrong", conditions="B", reason="value"),
        problem("Ignores clip", "wrong", clauses=("lstm.clip", "gru.clip.zero")),
        problem("X gives up", "wrong", clauses=("lstm.functions.thresholded-relu",)),
        problem("inaccurate (no better than f32-math)", "inaccurate", types=("float64",)),
        problem("crashed", "crashed", why="it divides by rows"),
        problem("crashed", "crashed"),
        problem("breaks a convention (padding)", "pass", kind="convention"),
        problem("refuses float64", "unsupported"),
    ) == [
        "batch_size 0: the process dies",
        "B: wrong values",
        "clip: ignores clip",
        "ThresholdedRelu: X gives up",
        "float64: values less accurate than they must be, right only by f32-math",
        "The process dies",
        "The process dies, and nothing is known that only these cases have; the smallest is lstm-14.smallest",
    ]


def test_what_breaks_clauses_of_two_topics_names_none() -> None:
    assert hits(problem("Does it", "wrong", clauses=("lstm.clip", "lstm.layout"))) == ["Does it"]


def test_new_hits_come_first_and_known_invalid_models_are_one() -> None:
    title = "accepts what the document forbids: a"
    taken, other = (problem(title, "not-rejected", expected=True, cases=4) for _ in range(2))
    answer: Answer = answer_of(
        (), (taken, problem("Known", "wrong", expected=True, cases=9), problem("New", "wrong"), other)
    )
    assert [(hit.text, hit.problems) for hit in answer.hits] == [
        ("New", (2,)),
        ("Known", (1,)),
        ("invalid models being rejected: 8 of them ran", (0, 3)),
    ]
    assert answer.relied_on == answer.hits[:2]
    assert answer.validation == answer.hits[2:]
    fresh = answer_of((), (taken._replace(expected=False),))
    assert fresh.relied_on == ()
    assert [hit.known for hit in fresh.validation] == [False]


def test_a_cause_that_only_shares_cases_with_a_new_one_comes_after_it_and_says_how_many() -> None:
    listed = problem("Listed", "wrong", cases=53, new=2)
    (first, second) = answer_of((), (listed, problem("New", "wrong", cases=2))).hits
    assert [(hit.what, hit.count) for hit in (first, second)] == [
        ("New", "2 cases"),
        ("Listed", "53 cases, 2 of them new"),
    ]


def test_a_group_counts_each_case_once() -> None:
    wrong = problem("Does it", "wrong")
    (hit,) = answer_of((), (wrong, wrong)).hits
    assert (hit.cases, hit.new) == (3, 3)


def test_a_known_fault_is_told_by_what_it_is_about_and_said_once() -> None:
    lengths, clip = ("lstm.lengths",), ("gru.clip", "lstm.clip")
    sizes = "4 features of X or more and outputs Y_h"
    foretold = "Ignores clip (clip.ignored, which foretold 10 fresh cases)"
    problems = (
        problem(f"Ignores clip (with {sizes})", "wrong", clauses=clip, conditions=sizes),
        problem("Ignores sequence_lens (with initial states)", "wrong", clauses=lengths, conditions="initial states"),
        problem(foretold, "wrong", clauses=clip),
        problem(
            "wrong (value), consistent with clip.half: halves it", "wrong", conditions="batch_size 0", reason="value"
        ),
    )
    (first, second, third) = answer_of((), problems).hits
    assert (first.text, first.cases, first.problems) == ("clip: ignores clip", 2 * len(problems[0].cases), (0, 2))
    assert second.text == "sequence_lens (with initial states): ignores sequence_lens"
    assert third.text == "batch_size 0: wrong values, as if this were done: halves it"
    long = problem("Ignores clip (with 18 steps or more)", "wrong", clauses=clip, conditions="18 steps or more")
    assert hits(long) == ["clip (with 18 steps or more): ignores clip"]


@pytest.mark.parametrize("op", operator_names())
def test_every_clause_says_in_plain_words_what_it_is_about(op: str) -> None:
    """Or is about any node: then there is nothing that somebody could do without."""
    for clause in clauses_of(op):
        (hit,) = hits(problem("Does it", "wrong", clauses=(clause.id,)))
        topic = clause.id.split(".")[1]
        assert hit == "Does it" if topic in ("equations", "gates") else hit.endswith(": does it"), clause.id


def test_what_is_never_right_is_said_to_be_so_always_and_not_by_a_list_of_all_types() -> None:
    inaccurate = problem("inaccurate (value)", "inaccurate", reason="value", types=("float16", "float32"), cases=4)
    (op,) = inaccurate.operators

    def on(*tried: ResultsAlike) -> str:
        return answer_of(tried, [inaccurate]).hits[0].on

    failing = [
        ResultsAlike(op, 14, kind, "inaccurate", "value", False, len(inaccurate.cases) // 2)
        for kind in inaccurate.types
    ]
    assert on(*failing) == "always"
    assert on(*failing, ResultsAlike(op, 14, "float32", "pass", "", False)) == ""
    assert on(*failing, ResultsAlike(op, 14, "float64", "pass", "", False)) == "float16 and float32"
