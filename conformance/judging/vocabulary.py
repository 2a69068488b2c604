"""Text for verdicts, reasons, flags, kinds of findings, states of several cases, and statuses of clauses.

Terminal, pages, certificates, summaries, notebooks, JUnit and ``check`` use this table, and have no text of their own;
docs/results.md has each entry (tests compare both). An unknown entry, of a run of another version, is shown unchanged,
without a meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .judgement import DECLINED, EXCEPTION, FAILING, UNTRIED, Verdict


@dataclass(frozen=True)
class Word:
    """The text of one verdict.

    has_numbers
        Whether such a result holds numbers, so that a fault may explain it.
    happens
        A description by reason; the empty reason stands for every other.
    """

    verdict: str
    meaning: str
    has_numbers: bool = False
    happens: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def failing(self) -> bool:
        return self.verdict in FAILING

    @property
    def colour(self) -> str:
        """The colour on a terminal."""
        if self.failing or self.verdict in UNTRIED:
            return "red"
        return "green" if self.verdict == Verdict.PASS.value else "yellow" if self.verdict in DECLINED else "cyan"


_NEITHER = "neither a pass nor wrong arithmetic"

# fmt: off
_WORDS = (
    Word("wrong", "At least one value is off by more than rounding can explain.", True,
         {"value": "Wrong values", "nonfinite": "Infinity or NaN where a number must be"}),
    Word("inaccurate", "Beyond the arithmetic it is judged by; a wider class would allow it.", True,
         {"value": "Values less accurate than they must be",
          "nonfinite": "Infinity or NaN that only coarser arithmetic explains"}),
    Word("crashed", "The runtime's process died, or its program broke off.", False,
         {EXCEPTION: "The program raises an internal error",
          "companion": "The process dies where all outputs are asked for",
          "": "The process dies"}),
    Word("timed-out", "No answer within the time allowed.", False,
         {"companion": "No answer in the time allowed where all outputs are asked for",
          "": "No answer in the time allowed"}),
    Word("malformed", "Wrong number, shape or type of outputs.", True,
         {"shape": "An output of the wrong shape",
          "type": "An output of the wrong type",
          "count": "The wrong number of outputs",
          "form": "Outputs that are no list of arrays of numbers"}),
    Word("unstable", "Two runs of the same data differ, and one of them fails.", True,
         {"value": "Two runs of the same data differ, and one is wrong",
          "held": "Outputs that the caller held change when the session runs again"}),
    Word("input-modified", "The run changed one of its inputs.", False,
         {"inputs-changed": "The run changes its inputs"}),
    Word("not-rejected", "A model that the document forbids ran all the same."),
    Word("not-judged",
         "The suite's own code broke off, or the operator's: nothing is known of the target. The message says where.",
         False,
         {"building": "Cases that the operator's own code, or the suite's, could not build",
          "judging": "Cases that the operator's own code, or the suite's, could not judge"}),
    Word("fallback", f"The node ran on another execution provider than the one asked for: {_NEITHER}.", False,
         {"": "The node runs somewhere else than asked for"}),
    Word("unsupported", f"A clean error on a legal model: {_NEITHER}."),
    Word("inconclusive", "Too few elements could be judged, so nothing is claimed.", False,
         {"wide": "not checkable: rounding alone could change these values by more than 1 %",
          "memory": "there is not enough memory here to judge them",
          "graded": "numbers are graded and not judged, as the target's accuracy class asks",
          "inconclusive": "this data cannot distinguish a correct result from a wrong one"}),
    Word("unavailable", "The target could not start."),
    Word("not-tried", "It needs an ability of sessions that the target does not declare: nothing is claimed of it."),
    Word("not-run", "Planned and not tried: the message says why."),
    Word("pass", "Every judged element agrees with the document.", False,
         {"padding": "Values past a sequence's length that break a convention"}),
)
# fmt: on

VERDICTS: Mapping[str, Word] = {each.verdict: each for each in _WORDS}
"""Text by verdict, worst first: the order in which pages count and list them."""

FLAGS: Mapping[str, str] = {
    "nondeterministic": "repeated runs of the same data differ",
    "outputs-differ-from-companion": "outputs differ from those of the same node with all outputs asked for",
}
"""Remarks that are not faults, but useful, by the flag of a result."""

NO_FAILURE: Mapping[str, str] = {
    "convention": "The document is silent here, and implementers agree on something that this target does not do.",
    "special-values": "The documents do not mention NaN, so this fails no case; but the equations give another result.",
    "mixed": "The document leaves this open, and any answer to it is right; but a target has to keep to one answer, "
    "and this one gives different ones in different cases.",
    "biased": "Each result is within its error bound, but the errors lean to one side and do not average out.",
}
"""Kinds of findings that fail no case, with their meaning. The other kinds have the names of verdicts."""


STATUS_WORDS: Mapping[str, str] = {
    "stated": "the document says so",
    "implied": "it follows from the document's equations",
    "convention": "the document is silent, and implementers agree",
    "undefined": "the document leaves it open",
    "arithmetic": "it follows from the format of numbers, and from no document",
}
"""The meanings of the status of a clause."""


STATES: Mapping[str, str] = {
    "fails": "fails",
    "right": "right",
    "declined": "not supported",
    "not tried": "not tried",
}
"""Text for the state of several results, worst first.

Fails if one fails, else right if one passes, else declined if one was declined, else not tried.
"""

FAILS, RIGHT, DECLINES, UNKNOWN = STATES


def word(verdict: str) -> Word:
    """Return the text for a verdict; an unknown one is shown unchanged, without a meaning."""
    return VERDICTS.get(verdict) or Word(verdict or "no verdict", "This report does not know it.")


def rank(verdict: str) -> int:
    """Return the rank of a verdict in the order of the table; unknown ones come before the passes."""
    order = list(VERDICTS)
    return order.index(verdict) if verdict in VERDICTS else len(order) - 2


def happening(verdict: str, reason: str) -> str:
    """Return the description of a verdict with a reason; empty where the table has none."""
    happens = word(verdict).happens
    return happens.get(reason) or happens.get("", "")


def outcome_text(verdict: str, reason: str) -> str:
    """Return an outcome as text: ``wrong (Wrong values)``."""
    happens = happening(verdict, reason)
    return f"{verdict} ({happens})" if happens else verdict


def short_title(verdict: str, reason: str) -> str:
    """Return the start of a finding's title, which programs read."""
    if verdict == Verdict.PASS.value:
        return f"breaks a convention ({reason})"
    return f"{verdict} ({reason})" if reason else verdict
