"""The reach of cases that nobody has measured: the interactions that they hold everything for.

What a case shows is measured by making each part of its operator go wrong in it, half a second a case. But what a part
needs in order to show is known from the case itself: counted so, a case costs a hundredth of that. Of what is counted
of one case of the pinned pool nine in ten do show, and the rest hides in roundings or behind numbers that are cut off;
of what is counted of 300 of them together 99 % do, as what hides in one shows in another.
"""

from __future__ import annotations

from typing import Any

from ...cases.axes.context import Need
from ...cases.specs.family import context_space
from ...reference import operator_of
from .exposure import Shown
from .interactions import Tally, faults_of


class Reach:
    """The interactions that cases can show, operator by operator."""

    def __init__(self) -> None:
        self._tallies: dict[str, Tally] = {}
        self._needs: dict[str, list[tuple[str, tuple[Need, ...], tuple[Need, ...]]]] = {}

    def add(self, spec: Any) -> None:
        """Count one more case; one that is illegal, or of an operator whose interactions are not counted, is none."""
        space = context_space(spec.op)
        if space is None or not space.measurable(spec):
            return
        if spec.op not in self._tallies:
            self._tallies[spec.op] = Tally(spec.op)
            self._needs[spec.op] = [
                (part.id, space.needs(part.needs), space.needs(part.needs, half=True))
                for part in operator_of(spec.op).parts()
            ]
        rows = space.halves(spec)
        reached = {}
        for id, needs, of_half in self._needs[spec.op]:
            halves = tuple(all(need.holds(row) for need in of_half) for row in rows)
            whole = any(all(need.holds(row) for need in needs) for row in rows)
            if whole or any(halves):
                reached[id] = Shown(whole, halves)
        self._tallies[spec.op].add((spec, reached))

    @property
    def scores(self) -> dict[str, tuple[tuple[int, int], tuple[int, int]]]:
        """Pairs and triples of each operator that the cases hold everything for, with how many there are."""
        scores = {op: tally.score(faults_of(op)) for op, tally in self._tallies.items()}
        return {op: (score.pairs, score.triples) for op, score in scores.items()}

    @property
    def text(self) -> str:
        """All of it in a line; empty where nothing was counted."""
        shares = (
            f"{op} {_percent(*pairs)} of pairs, {_percent(*triples)} of triples"
            for op, (pairs, triples) in sorted(self.scores.items())
        )
        return "; ".join(shares)


def _percent(part: int, whole: int) -> str:
    return f"{1000 * part // whole / 10:.1f} %" if whole else "-"  # never rounded up to all
