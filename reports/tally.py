"""Counts of results by verdict."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from ..conformance.judging.judgement import DECLINED, FAILING, Verdict
from ..conformance.judging.vocabulary import rank
from ..conformance.results.result import Result
from ..reference import LOSES_NAN


class Tally(Struct):
    """The number of results by verdict and by whether the expected-failure file names the failure.

    ``unconventional`` counts passes that only break a convention, ``special`` passes that lose NaN.
    """

    counts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    unconventional: int = 0
    special: int = 0

    def add(self, result: Result) -> None:
        self.counts[result.verdict.value, result.failing and result.expected] += 1
        if result.verdict is Verdict.PASS and result.flags:
            self.unconventional += "unconventional" in result.flags
            self.special += LOSES_NAN in result.flags

    @property
    def split(self) -> list[tuple[str, bool, int]]:
        """(verdict, whether known, count), worst first: the new failures, then the known ones, then other verdicts."""
        entries = [(verdict, known, count) for (verdict, known), count in self.counts.items()]
        return sorted(entries, key=lambda entry: (entry[0] not in FAILING, entry[1], rank(entry[0]), entry[0]))

    @property
    def verdicts(self) -> Counter[str]:
        """Counts by verdict, worst first."""
        counts = Counter[str]()
        for verdict in sorted({verdict for verdict, _ in self.counts}, key=lambda name: (rank(name), name)):
            counts[verdict] = self.counts[verdict, False] + self.counts[verdict, True]
        return counts

    @property
    def new(self) -> int:
        """Failing results that the expected-failure file does not name."""
        return sum(count for (verdict, known), count in self.counts.items() if verdict in FAILING and not known)

    @property
    def known(self) -> int:
        """Failing results that the expected-failure file names."""
        return sum(count for (_, known), count in self.counts.items() if known)

    @property
    def total(self) -> int:
        return self.counts.total()

    @property
    def passed(self) -> int:
        return self.counts["pass", False]

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
        return sum(self.counts[verdict.value, False] for verdict in DECLINED)

    @property
    def other(self) -> int:
        """Results without information on the target: not judged, or missing."""
        return self.total - self.judged - self.declined
