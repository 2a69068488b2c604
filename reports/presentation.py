"""Icons and tones of verdicts and of what several cases come to. The colour never stands alone."""

from __future__ import annotations

from typing import NamedTuple

from ..conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, UNKNOWN


class Presentation(NamedTuple):
    """The name of a drawing and that of a colour."""

    icon: str
    tone: str


_FAIL, _WAVE = Presentation("cross", "fail"), Presentation("wave", "fail")
_QUIET, _QUESTION = Presentation("dots", "quiet"), Presentation("question", "quiet")
_PASS, _BAR = Presentation("check", "pass"), Presentation("bar", "unsupported")
_PRESENTATIONS = {
    "wrong": _FAIL,
    "inaccurate": _WAVE,
    "crashed": Presentation("burst", "fail"),
    "timed-out": Presentation("clock", "fail"),
    "malformed": _FAIL,
    "unstable": _WAVE,
    "input-modified": _FAIL,
    "not-rejected": _FAIL,
    "not-judged": _QUIET,
    "fallback": Presentation("turn", "unsupported"),
    "unsupported": _BAR,
    "inconclusive": _QUESTION,
    "unavailable": _QUIET,
    "not-tried": _QUIET,
    "not-run": _QUIET,
    "pass": _PASS,
}
STATES = {FAILS: _FAIL, RIGHT: _PASS, DECLINES: _BAR, UNKNOWN: Presentation("dots", "none")}


FEATURES = {
    "accuracy": "accuracy of a single step",
    "forbidden models": "invalid models",
    "reverse": "reverse direction",
    "bidirectional": "both directions",
}
"""Words for feature groups whose short names are not clear."""


def presentation_of(verdict: str) -> Presentation:
    """Return how a verdict is drawn; one of another version claims nothing."""
    return _PRESENTATIONS.get(verdict, _QUESTION)
