"""A sample of cases once more in a fresh process: does what a target returns depend on what it did before?

A worker lives for hundreds of cases, and each has the same neighbours in every run. So a few of the later ones are run
again in a process of their own, in the opposite order and with other bytes in memory that nobody has written to, and
what comes back must be the same, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from msgspec import structs

from ..judging.judgement import FAILING, UNTRIED, Judgement, Verdict
from ..probes.probe import Probe
from ..probes.stream import Tried, tried
from ..results.result import Result, place_of
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.job import Outcome, TargetUnavailable
from ..workers.process import TargetProcess

__all__ = ["SAMPLE", "FreshSample", "amended_by_fresh", "differs"]

SAMPLE = 16
"""Cases that are run again at most: a process that loads its runtime costs as much as they do."""

_FEWEST = 8  # of so few cases none comes late
_OTHER_FILL = "64"  # instead of the worker's own 0x80


class FreshSample:
    """Which cases are run again, and what they returned the first time."""

    def __init__(self, due: Sequence[Probe]) -> None:
        """`due` is what is about to be run, in order."""
        late = due[len(due) // 2 :] if len(due) >= _FEWEST else ()
        step = max(1, len(late) // SAMPLE)
        self._wanted = {probe.id for probe in late[::-1][::step][:SAMPLE]}
        self._first: dict[str, tuple[Probe, str]] = {}

    def offer(self, one: Tried) -> None:
        """Remember what a case returned, if it is one of those and returned the same in all runs of its session."""
        same = "nondeterministic" not in one.judgement.flags
        if one.probe.id in self._wanted and same and all(outcome.status == "ran" for outcome in one.outcomes):
            self._first[one.probe.id] = one.probe, _digest(one.outcomes)

    def differing(
        self,
        target: Target,
        results: Mapping[str, Result],
        hangs: HangBudget,
        observe: Callable[[Tried], None],
        start: Callable[..., TargetProcess] = TargetProcess,
    ) -> list[Result]:
        """The results of cases that return something else in a fresh process, amended: ``unstable`` where one of the
        two is right and the other is not, else flagged ``nondeterministic``.

        results
            Those of the run, by case. A target that does not start again has nothing to add.
        hangs
            The run's budget.
        observe
            Called with what became of each case.
        start
            What a target is put to work with.
        """
        if not self._first:
            return []
        environment = {**target.environment, "MALLOC_PERTURB_": _OTHER_FILL}
        chosen = [probe for probe, _ in reversed(self._first.values())]
        amended = []
        try:
            with start(replace(target, environment=environment), hangs=hangs) as process:
                process.forks = False  # what is compared has nothing in common with what it is compared with
                for again in tried(process, chosen, target.accuracy):
                    observe(again)
                    case = again.probe.id
                    if case not in results or again.judgement.verdict in UNTRIED:
                        continue
                    if _digest(again.outcomes) != self._first[case][1]:
                        amended.append(amended_by_fresh(results[case], again.judgement))
        except TargetUnavailable:
            pass
        return amended


def differs(first: Sequence[Outcome], again: Sequence[Outcome]) -> bool:
    """Whether two runs of a case came to another status, type, shape or bit."""
    return _digest(first) != _digest(again)


def amended_by_fresh(result: Result, again: Judgement) -> Result:
    """The result of a case that returned something else in a fresh process, on which `again` is the verdict."""
    flags = tuple(dict.fromkeys((*result.flags, "nondeterministic")))
    if result.failing == (again.verdict in FAILING):
        return structs.replace(result, flags=flags)
    message = "another result in a fresh process than after other cases"
    worse = again.message if again.verdict in FAILING else result.message
    reason = again.reason if again.verdict in FAILING else result.reason
    return structs.replace(
        result,
        verdict=Verdict.UNSTABLE,
        reason=reason,
        message=f"{message}; one of them: {worse}",
        clause=result.clause or again.clause,
        where=result.where or place_of(again.where),
        flags=flags,
    )


def _digest(outcomes: Sequence[Outcome]) -> str:
    """Of status, shapes, types and every bit of what came back."""
    digest = hashlib.blake2b(digest_size=16)
    for outcome in outcomes:
        digest.update(outcome.status.encode())
        for lists in outcome.outputs:
            for outputs in lists:
                for array in outputs:
                    form = "none" if array is None else f"{array.dtype.name}{array.shape}"
                    digest.update(form.encode() + (b"" if array is None else array.tobytes()))
                digest.update(b"|")
    return digest.hexdigest()
