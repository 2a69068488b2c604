"""Badges: one line in a picture, for the README of a runtime or of a project that relies on it."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape

from ...conformance.judging.vocabulary import DECLINES, STATES, UNKNOWN
from .. import presentation
from ..tally import Tally

_COLOURS = {"pass": "#17653a", "fail": "#ad1f17", "unsupported": "#56469a", "none": "#56606b"}
_ICONS = {tone: icon for icon, tone in presentation.STATES.values()}
_LETTER = 6.6  # pixels, of the font below; a picture in a page cannot measure it
_EDGE = 10


@dataclass(frozen=True)
class Outcome:
    """A release on one operator version: its tone on a page, the words for it, and figures."""

    tone: str
    words: str
    figures: str = ""

    @property
    def icon(self) -> str:
        return _ICONS[self.tone]


def outcome(tally: Tally | None) -> Outcome:
    """The state that results come to: conforms, fails, not supported, not tried."""
    if tally is None or not tally.total:
        return _outcome(UNKNOWN)
    if not tally.judged:
        return _outcome(DECLINES, f"{tally.total:,} tried")
    beside = f", takes {tally.total - tally.declined:,} of {tally.total:,}" if tally.declined else ""
    if tally.failed:
        return Outcome("fail", f"fails {tally.failed:,} of {tally.judged:,}", beside.removeprefix(", "))
    return Outcome("pass", "conforms", f"{tally.passed:,} right{beside}")


def _outcome(state: str, figures: str = "") -> Outcome:
    return Outcome(presentation.STATES[state].tone, STATES[state], figures)


@dataclass(frozen=True)
class Badge:
    """The subject of a badge, its path from the site's folder on without an ending, and what it says."""

    label: str
    path: str
    told: Outcome

    @property
    def json(self) -> dict[str, object]:
        """The badge in the form that shields.io takes from an address."""
        colour = _COLOURS[self.told.tone]
        return {"schemaVersion": 1, "label": self.label, "message": self.told.words, "color": colour}

    @property
    def svg(self) -> str:
        """A picture that needs nothing."""
        left, right = (round(len(text) * _LETTER) + 2 * _EDGE for text in (self.label, self.told.words))
        label, words = escape(self.label), escape(self.told.words)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
            f'aria-label="{label}: {words}"><title>{label}: {words}</title>'
            f'<rect width="{left}" height="20" fill="#3b434b"/>'
            f'<rect x="{left}" width="{right}" height="20" fill="{_COLOURS[self.told.tone]}"/>'
            '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" text-anchor="middle">'
            f'<text x="{left / 2:g}" y="14">{label}</text>'
            f'<text x="{left + right / 2:g}" y="14">{words}</text></g></svg>\n'
        )

    @property
    def picture(self) -> str:
        """The picture as an address that holds it: a page from a file may not load others."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()
