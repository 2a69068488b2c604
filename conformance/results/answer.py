"""The answer on a target, for whoever must decide: does it conform, did it change, what does it support, whom does it
hit. The terminal and the report say it in the same words, which are made here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from msgspec import Struct

from ..judging.judgement import DECLINED, FAILING, OF_FORBIDDEN, Verdict
from ..text import plural
from .hits import Hit, hits_of
from .support import Lack, ResultsAlike, ShortFinding, support_of

_RIGHT = frozenset({Verdict.PASS})

_LOOK = "smoke"
"""The profile, with or without a nonce behind it, that says little of a target by being right: some 60 cases."""

FEW = 0.1
"""Up to this share of judged results, failures that are all known are called few. The figure is a choice: it colours a
badge, and the counts stand in it."""


@dataclass(frozen=True)
class Answer:
    """The first lines of what is told of a target.

    ``state`` is ``conforms``, ``few`` (failures that are known, and few), ``lacks`` (chosen cases of which some are
    not supported), ``departs`` or ``open`` (nobody knows); ``badge`` says all of it in a few words. ``follows``
    says which interpretations it follows against a letter, ``shown`` how much its bounds show, in a line each; they
    are empty unless somebody has counted that. ``chosen`` is whether the cases were chosen one by one, or are a
    model's nodes: nothing follows for others. ``compared`` is whether a list of known failures was asked,
    ``shared`` whether some cases have several causes, so that several hits count them.
    """

    state: str
    badge: str
    conforms: str
    since: str
    supports: tuple[str, ...]
    lacks: tuple[Lack, ...]
    hits: tuple[Hit, ...]
    follows: str = ""
    shown: str = ""
    chosen: bool = False
    compared: bool = True
    shared: bool = False

    @property
    def question(self) -> str:
        """The question that ``conforms`` answers, as a heading."""
        return "Of these cases" if self.chosen else "Conforms"

    @property
    def who(self) -> str:
        """The heading of what fails."""
        return "What is wrong"

    @property
    def who_of_shared(self) -> str:
        """The same, where nothing behind a hit says that others have some of its cases too."""
        return f"{self.who} (a case with several causes counts in each)" if self.shared else self.who

    @property
    def conforming(self) -> bool | None:
        """Tell whether it conforms; None where nobody knows."""
        return None if self.state in ("open", "lacks") else self.state == "conforms"

    @property
    def comparison(self) -> str:
        """The line on the list of known failures; empty where nothing failed and no entry is stale."""
        return self.since

    @property
    def relied_on(self) -> tuple[Hit, ...]:
        """The hits by models that are legal."""
        return tuple(hit for hit in self.hits if not hit.forbidden)

    @property
    def validation(self) -> tuple[Hit, ...]:
        """The hits by models that run though they must be rejected: nothing is computed wrongly there."""
        return tuple(hit for hit in self.hits if hit.forbidden)

    @property
    def supported(self) -> str:
        """The supported operators and types, in a line."""
        return "; ".join(self.supports) or "nothing that was tried"

    @property
    def lacking(self) -> str:
        """The features that are not supported, in a line; empty where nothing is lacking."""
        return ", ".join(lack.what for lack in self.lacks)


def answer_of(
    tried: Sequence[ResultsAlike],
    problems: Sequence[ShortFinding],
    *,
    stale: int = 0,
    lists_used: bool = True,
    look: str = "",
    chosen: bool = False,
) -> Answer:
    """The answer that the results and findings of one target give.

    stale
        How many entries of the target's list of known failures nothing needs any more.
    lists_used
        Whether lists of known failures were used at all.
    look
        The profile that was run, where it is too small to conclude much from (:func:`look_of`).
    chosen
        Whether the cases were chosen one by one.
    """
    counts = _counted(tried, lists_used)
    state, badge, conforms = _conclusion(counts, look, chosen)
    if any(t.random_weights for t in tried):
        badge, conforms = f"{badge}, with random weights", f"{conforms}, with random weights"
    since = _since(counts.new + counts.known, counts.new, stale)
    if not lists_used:
        since = "not compared (--expected none)"
    supports, lacks = support_of(tried, problems)
    hits = tuple(hits_of(problems, tried))
    return Answer(
        state,
        badge,
        conforms,
        since if counts.started else "",
        supports,
        lacks,
        hits,
        chosen=chosen,
        compared=lists_used,
        shared=sum(hit.cases for hit in hits) > counts.failed,
    )


class _Counts(Struct, frozen=True):
    """Results of a target, counted for its answer.

    ``broke`` counts what ended otherwise than in a clean refusal, ``compared`` is whether a list of known failures was
    asked, ``telling`` whether anything is right that would not be if everything were refused.
    """

    right: int
    failed: int
    new: int
    known: int
    declined: int
    left_out: int
    unjudged: int
    broke: int
    started: bool
    telling: bool
    compared: bool

    @property
    def judged(self) -> int:
        return self.right + self.failed

    @property
    def open(self) -> list[str]:
        """The results that nobody knows, in words."""
        words = [f"{self.left_out:,} not run"] if self.left_out else []
        return words + ([f"{self.unjudged:,} could not be judged"] if self.unjudged else [])


def _counted(tried: Sequence[ResultsAlike], compared: bool) -> _Counts:
    def times(verdicts: Collection[str], expected: bool | None = None) -> int:
        return sum(t.times for t in tried if t.verdict in verdicts and expected in (None, t.expected))

    # A target that refuses everything refuses forbidden models, too.
    legal = [t for t in tried if t.reason not in OF_FORBIDDEN] or tried
    return _Counts(
        right=times(_RIGHT),
        failed=times(FAILING - DECLINED),
        # A fallback is no failure of arithmetic; where it fails the run, it is news all the same.
        new=times(FAILING, expected=False),
        known=times(FAILING - DECLINED, expected=True),
        declined=times(DECLINED),
        left_out=times({Verdict.NOT_RUN.value}),
        unjudged=times({Verdict.NOT_JUDGED.value}),
        broke=sum(t.times for t in tried if t.verdict == Verdict.UNSUPPORTED.value and not t.clean),
        started=not tried or any(t.verdict != Verdict.UNAVAILABLE.value for t in tried),
        telling=any(t.verdict in _RIGHT for t in legal),
        compared=compared,
    )


def _conclusion(counts: _Counts, look: str, chosen: bool) -> tuple[str, str, str]:
    """The state, the badge, and whether it conforms, in words."""
    if counts.failed:
        return _departing(counts, chosen)
    if not counts.telling:
        badge = "Nothing was judged" if counts.started else "Could not start"
        return "open", badge, f"unknown: {'nothing could be judged' if counts.started else 'could not start'}"
    if counts.open or counts.broke:
        return _unknown(counts)
    right = _all_right(counts)
    if chosen and counts.declined:
        lacking = f"{counts.declined:,} of {counts.judged + counts.declined:,} not supported"
        return "lacks", lacking, f"{lacking}, {right}"
    if look:
        return "conforms", f"Conforms in {look}", f"yes in {look}, a small sample: {right}; run core"
    if chosen:
        return "conforms", f"{counts.judged:,} of {counts.judged:,} correct", right
    return "conforms", f"Conforms in {plural(counts.judged)}", f"yes: {right}"


def _all_right(counts: _Counts) -> str:
    return (
        f"all {counts.judged:,} checked cases are correct" if counts.judged > 1 else "the one checked case is correct"
    )


def _departing(counts: _Counts, chosen: bool) -> tuple[str, str, str]:
    """The conclusion where something failed."""
    few = counts.compared and not counts.new and counts.failed <= FEW * counts.judged
    share = _percent(counts.failed, counts.judged)
    badge = f"{counts.failed:,} of {counts.judged:,} fail" if share == "all" else f"{share} fail".capitalize()
    if counts.compared:
        mixed = 0 < counts.new < counts.failed
        badge += f", {counts.new:,} new" if mixed else f" ({'none' if counts.new else 'all'} known)"
    checked = f"{counts.failed:,} of {plural(counts.judged, 'checked case')}"
    words = [f"{checked} {'fails' if counts.failed == 1 else 'fail'}", *counts.open]
    if chosen and counts.declined:
        words.append(f"{counts.declined:,} not supported")
    failing = ", ".join(words)
    return "few" if few else "departs", badge, failing if chosen else f"no: {failing}"


def _unknown(counts: _Counts) -> tuple[str, str, str]:
    """The conclusion where nothing failed, and not all is known."""
    words = list(counts.open)
    if counts.broke:
        words.append(f"{counts.broke:,} ended without a clean refusal")
    badge = f"Unknown, {counts.broke:,} ended early"
    if counts.left_out:
        badge = f"{counts.left_out:,} not run"
    if counts.unjudged:
        badge = f"{counts.unjudged:,} not judged"
    return "open", badge, f"unknown: {', '.join(words)}; {_all_right(counts)}"


def look_of(profile: str, chosen: Sequence[str]) -> str:
    """The profile of a run where it is no more than a first look; empty otherwise, and where cases were chosen."""
    return _LOOK if profile.startswith(_LOOK) and not chosen else ""


def _percent(part: int, whole: int) -> str:
    """A share that never rounds to nothing or to all."""
    share = 100 * part / whole
    return "all" if part == whole else "under 1 %" if share < 1 else f"{min(round(share), 99)} %"


def _since(failed: int, new: int, stale: int) -> str:
    words = []
    if new:
        missing = f"{new:,} of them not" if new < failed else "none of them" if new > 1 else "not"
        words.append(f"{plural(max(failed, new), 'failure')}, {missing} on the list")
    elif failed:
        words.append("every failure is on the list")
    if stale:
        words.append(f"{plural(stale, 'entry', 'entries')} no longer {'fails' if stale == 1 else 'fail'}")
    return "; ".join(words)
