"""Counts of results by verdict, and what they say together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .results import Kind
from .verdicts import rank, word


@dataclass
class Tally:
    """How many results there are of each verdict; failing ones by whether the expected-failure file names them.

    ``new`` counts failing results that were not expected, ``known`` those that were, ``unconventional`` the passes that
    break no more than a convention, ``nondeterministic`` the passes whose runs differ.
    """

    verdicts: Counter[str] = field(default_factory=Counter)
    new: int = 0
    known: int = 0
    unconventional: int = 0
    nondeterministic: int = 0

    def add(self, kind: Kind, count: int) -> None:
        """Count ``count`` more results of ``kind``."""
        self.verdicts[kind.verdict] += count
        if word(kind.verdict).failing:
            if kind.expected:
                self.known += count
            else:
                self.new += count
        elif kind.verdict == "pass":
            self.unconventional += count * ("unconventional" in kind.flags)
            self.nondeterministic += count * ("nondeterministic" in kind.flags)

    @property
    def total(self) -> int:
        return self.verdicts.total()

    @property
    def passed(self) -> int:
        return self.verdicts["pass"]

    @property
    def failed(self) -> int:
        return self.new + self.known

    @property
    def judged(self) -> int:
        """Results that say something about the arithmetic: passes and failures."""
        return self.passed + self.failed

    @property
    def by_rank(self) -> list[tuple[str, int]]:
        """(verdict, count) pairs, worst first, those that occur only."""
        return sorted(((name, n) for name, n in self.verdicts.items() if n), key=lambda pair: (rank(pair[0]), pair[0]))
