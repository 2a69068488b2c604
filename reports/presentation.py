"""Icons and tones of verdicts and of outcomes of several cases. Colour is never the only mark."""

from __future__ import annotations

from typing import NamedTuple

from ..conformance.judging.vocabulary import DECLINES, FAILS, RIGHT, UNKNOWN


class Presentation(NamedTuple):
    """The name of an icon and the name of a colour."""

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


def presentation_of(verdict: str) -> Presentation:
    """Return icon and tone of a verdict; unknown verdicts get the question mark."""
    return _PRESENTATIONS.get(verdict, _QUESTION)
