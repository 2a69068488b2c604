"""The words for what became of a case: how each verdict is named, drawn and ordered, and which of them fail.

The list repeats DESIGN.md; a page must be able to name every verdict of a run without the harness that gave it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """How one verdict is shown: ``icon`` is the drawing's name and ``tone`` the colour's, never the colour alone.

    ``told`` is whether such a result holds numbers, so that a fault may explain it.
    """

    verdict: str
    icon: str
    tone: str
    meaning: str
    failing: bool = False
    told: bool = False


WORDS: dict[str, Word] = {
    word.verdict: word
    for word in (
        Word("wrong", "cross", "fail", "Some value is beyond what any accepted arithmetic can explain.", True, True),
        Word(
            "inaccurate",
            "wave",
            "fail",
            "Beyond the arithmetic it is judged by; a wider class would allow it.",
            True,
            True,
        ),
        Word("crashed", "burst", "fail", "The runtime's process died, or its program broke off.", True),
        Word("timed-out", "clock", "fail", "No answer within the time allowed.", True),
        Word("malformed", "cross", "fail", "Wrong number, shape or type of outputs.", True, True),
        Word("unstable", "wave", "fail", "Two runs of the same data differ, and one of them fails.", True, True),
        Word("input-modified", "cross", "fail", "The run changed one of its inputs.", True),
        Word("not-rejected", "cross", "fail", "A model that the document forbids ran all the same.", True),
        Word(
            "fallback",
            "turn",
            "unsupported",
            "The node ran on another execution provider than the one asked for: neither a pass nor wrong arithmetic.",
        ),
        Word(
            "unsupported", "bar", "unsupported", "A clean error on a legal model: neither a pass nor wrong arithmetic."
        ),
        Word("inconclusive", "question", "quiet", "Too few elements could be judged, so nothing is claimed."),
        Word("unavailable", "dots", "quiet", "The target could not start."),
        Word(
            "not-tried",
            "dots",
            "quiet",
            "It asks for sessions that the target's worker does not say it has: nothing is claimed, and nothing lacks.",
        ),
        Word("not-run", "dots", "quiet", "Planned and not tried: the message says why."),
        Word("pass", "check", "pass", "Every judged element agrees with the document."),
    )
}
"""Worst first: the order in which the page counts and lists them."""


def word(verdict: str) -> Word:
    """Return the word for ``verdict``; one that is not in the list is shown as it stands and claims nothing."""
    return WORDS.get(verdict) or Word(verdict or "no verdict", "question", "quiet", "This report does not know it.")


def rank(verdict: str) -> int:
    """Return the place of ``verdict`` in the order of `WORDS`; unknown ones come before the passes."""
    order = list(WORDS)
    return order.index(verdict) if verdict in WORDS else len(order) - 2
