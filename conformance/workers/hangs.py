"""Budget of a target for hangs.

A verdict about a hang needs the whole time limit. A target that hangs on a common feature would take hours, so the
hangs of a run are counted. Once the budget is spent, cases that share a feature with a hung case are not run, if the
feature has never worked, and their results state the reason.
"""

from __future__ import annotations

from itertools import combinations

HANGS = 10
"""Default number of hangs of a run: ten minutes at the usual time limit."""

_BEYOND = 2  # times the budget, after which no case is run: the hangs are then not limited to some cases

Traits = frozenset[str]


class HangBudget:
    """Remaining budget, and the cases that are suspected to hang."""

    def __init__(self, hangs: int = HANGS) -> None:
        """Prepare a budget of `hangs` hangs."""
        self.hangs = hangs
        self._hung: list[Traits] = []
        self._fine: list[Traits] = []
        self._worked: set[str] = set()

    def hung(self, traits: Traits) -> None:
        """Record a case that did not return in time, with its `traits`."""
        self._hung.append(traits)

    def worked(self, traits: Traits) -> None:
        """Record a case that returned, with any outcome."""
        self._worked |= traits
        self._fine.append(traits)

    def refuses(self, traits: Traits) -> str:
        """Return the reason not to run a case; empty to run it."""
        count = len(self._hung)
        if count >= _BEYOND * self.hangs:
            return f"not run: {count} cases have hung, more than twice the budget of {self.hangs}"
        shared = self._shared(traits) if count >= self.hangs else ""
        return f"not run: {count} cases have hung, those with: {shared}; the budget is {self.hangs}" if shared else ""

    def _shared(self, traits: Traits) -> str:
        """Return a feature that a case shares with a hung case, and that no returned case has.

        If there is none, return a pair of such features.
        """
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
