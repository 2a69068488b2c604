"""The budget of a target for hangs.

A verdict that says that a target hangs needs the whole of its time limit. A target that hangs on something common would
take hours of it, so the hangs of a run are counted. After the first few, cases that have in common with those that hung
what has never worked come last. Once the budget is spent they are not run at all, and the result says so.
"""

from __future__ import annotations

from itertools import combinations

HANGS = 10
"""Hangs of a run that are waited for, unless an option says otherwise: ten minutes at the usual time limit."""

_WARY = 3  # hangs after which cases like those come last: of fewer nothing can be said to be common
_BEYOND = 2  # times the budget, after which nothing is run: then it is not some cases that hang

Traits = frozenset[str]


class HangBudget:
    """The rest of the budget, and the cases that are suspected to hang.

    last
        Whether what was put off is being run now.
    """

    def __init__(self, hangs: int = HANGS) -> None:
        """`hangs` is how many are waited for."""
        self.hangs = hangs
        self.last = False
        self._hung: list[Traits] = []
        self._fine: list[Traits] = []
        self._worked: set[str] = set()

    @property
    def count(self) -> int:
        """The number of cases that have hung."""
        return len(self._hung)

    @property
    def spent(self) -> bool:
        return len(self._hung) >= self.hangs

    def hung(self, traits: Traits) -> None:
        """Take note of a case that did not come back in time; `traits` is what can be said of it."""
        self._hung.append(traits)

    def worked(self, traits: Traits) -> None:
        """Take note of a case that came back, with whatever."""
        if not traits <= self._worked:
            self._worked |= traits
        self._fine.append(traits)

    def refuses(self, traits: Traits) -> str:
        """The reason for which a case is not to be run, or not now; empty where it is."""
        count = len(self._hung)
        if count >= _BEYOND * self.hangs:
            return f"not run: {count} cases have hung, more than twice the budget of {self.hangs}"
        if count < min(_WARY, self.hangs) or (self.last and not self.spent):
            return ""
        shared = self._shared(traits)
        if not shared:
            return ""
        return f"not run: {count} cases have hung, those with: {shared}; the budget is {self.hangs}"

    def _shared(self, traits: Traits) -> str:
        """Features that a case shares with one that hung and with none that did not; a pair where nothing single is."""
        for hung in self._hung:
            never = hung - self._worked
            common = never & traits
            if common:
                return min(common)
            if never or not hung:
                continue
            for pair in combinations(sorted(hung & traits), 2):
                if not any(fine.issuperset(pair) for fine in self._fine):
                    return " and ".join(pair)
        return ""
