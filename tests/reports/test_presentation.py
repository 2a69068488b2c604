"""Tests that every verdict, and every state of several results, has an icon and a tone."""

from __future__ import annotations

from onnxspec.conformance.judging.judgement import FAILING, Verdict
from onnxspec.conformance.judging.vocabulary import STATES
from onnxspec.reports import presentation


def test_what_fails_is_drawn_as_a_failure_and_nothing_else_is() -> None:
    failing = {verdict for verdict in Verdict if presentation.presentation_of(verdict.value).tone == "fail"}
    assert failing == FAILING
    assert presentation.presentation_of("pass").tone == "pass"
    assert set(presentation.STATES) == set(STATES)


def test_a_verdict_of_another_version_claims_nothing() -> None:
    assert presentation.presentation_of("of tomorrow") == ("question", "quiet")
