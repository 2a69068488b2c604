"""Counts of results by verdict."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from ..conformance.judging.judgement import DECLINED, FAILING, Verdict
from ..conformance.judging.vocabulary import rank, word
from ..conformance.results.result import Result
from ..reference import SPECIAL

_SPECIAL = frozenset(SPECIAL)


class Tally(Struct):
    """The number of results of each verdict.

    ``new`` and ``known`` split the failing results by whether the expected-failure file names them. ``unconventional``
    counts passes that only break a convention, ``special`` passes that lose NaN or a finite number.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    new_verdicts: Counter[str] = field(default_factory=Counter)
    known_verdicts: Counter[str] = field(default_factory=Counter)
    unconventional: int = 0
    special: int = 0

    def add(self, result: Result) -> None:
        verdict = result.verdict
        self.verdicts[verdict.value] += 1
        if verdict in FAILING:
            (self.known_verdicts if result.expected else self.new_verdicts)[verdict.value] += 1
        elif verdict is Verdict.PASS and result.flags:
            self.unconventional += "unconventional" in result.flags
            self.special += not _SPECIAL.isdisjoint(result.flags)

    @property
    def new(self) -> int:
        """Failing results that the expected-failure file does not name."""
        return sum(self.new_verdicts.values())

    @property
    def known(self) -> int:
        """Failing results that the expected-failure file names."""
        return sum(self.known_verdicts.values())

    @property
    def total(self) -> int:
        return sum(self.verdicts.values())

    @property
    def passed(self) -> int:
        return self.verdicts["pass"]

    @property
    def failed(self) -> int:
        return self.new + self.known

    @property
    def judged(self) -> int:
        """Results with information on the arithmetic: passes and failures."""
        return self.passed + self.failed

    @property
    def declined(self) -> int:
        """Results of cases that the target declines."""
        return sum(self.verdicts[verdict] for verdict in DECLINED)

    @property
    def other(self) -> int:
        """Results without information on the target: not judged, or missing."""
        return self.total - self.judged - self.declined

    @property
    def by_rank(self) -> list[tuple[str, int]]:
        """(verdict, count) pairs of the verdicts that occur, worst first."""
        return sorted(((name, n) for name, n in self.verdicts.items() if n), key=lambda pair: (rank(pair[0]), pair[0]))

    @property
    def split(self) -> list[tuple[str, bool, int]]:
        """(verdict, whether known, count), worst first: the new failures, then the known ones, then other verdicts."""
        return [
            (name, known, counts[name])
            for known, counts in ((False, self.new_verdicts), (True, self.known_verdicts), (False, self.verdicts))
            for name, _ in self.by_rank
            if counts[name] and (counts is not self.verdicts or not word(name).failing)
        ]
