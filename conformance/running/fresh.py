"""A sample of cases once more in a fresh process: does what a target returns depend on what it did before?

A worker lives for hundreds of cases, and each has the same neighbours in every run. So a few cases are run again in a
process of their own, in the opposite order and with other bytes in memory that nobody has written to, and what comes
back must be the same, bit for bit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from ..judging.judgement import FAILING, UNTRIED, Judgement, Verdict
from ..probes.probe import Probe
from ..probes.stream import Tried, tried
from ..results.folder import recorded_in
from ..results.recorded import CASE, FRESH, MissingBits, bits_of, outcome_of
from ..results.result import Result, place_of
from ..targets.target import Target
from ..workers.hangs import HangBudget
from ..workers.job import Outcome, TargetUnavailable
from ..workers.process import TargetProcess

SAMPLE = 16
"""Cases that are run again at most: a process that loads its runtime costs as much as they do."""

FEWEST = 8
"""Cases of a run, from which on some are run again: among fewer none has many before it."""

_OTHER_FILL = "64"  # instead of the worker's own 0x80


def answered(outcomes: Sequence[Outcome]) -> bool:
    """Tell whether a target took a case, and returned the same in all runs of its session."""
    return all(o.status == "ran" and all(len(distinct) == 1 for distinct in o.outputs) for o in outcomes)


def sample_of(profile: str, cases: Iterable[str]) -> frozenset[str]:
    """Ids of those cases that are run again, among those that a target has answered.

    profile
        What is run, with the nonce: it decides, and nobody who runs the cases.

    The sample of a whole run lies within those of its shards together.
    """

    def rank(case: str) -> bytes:
        return hashlib.sha256(f"{profile}\0{case}".encode()).digest()

    return frozenset(sorted(cases, key=rank)[:SAMPLE])


class FreshSample:
    """The cases that are run again, and what they returned the first time."""

    def __init__(self, profile: str, planned: int, chosen: frozenset[str] | None = None) -> None:
        """`planned` is how many cases the whole run has, all its shards together; `chosen` has the cases that are run
        again instead of a sample."""
        self._profile, self._chosen = profile, chosen
        self._enough = planned >= FEWEST or bool(chosen)
        self._first: dict[str, tuple[Probe, str]] = {}
        self._again: dict[str, str] = {}

    def offer(self, one: Tried) -> None:
        """Remember what a case returned."""
        if self._enough and one.outcomes and answered(one.outcomes):
            self._first[one.probe.id] = one.probe, _digest(one.outcomes)

    def recall(self, folder: Path, target: str, probes: Mapping[str, Probe], done: Collection[str]) -> None:
        """Remember what a run that is gone on with has recorded of the cases that are done. Raises OSError."""
        if not (self._enough and done):
            return
        with bits_of(folder, target) as bits:
            for line in recorded_in(folder):
                if line.target != target or line.case not in done or line.case not in probes:
                    continue
                try:
                    outcomes = [outcome_of(job, bits) for job in line.jobs]
                except MissingBits:
                    continue  # whoever derives the run again says so
                if line.purpose == FRESH:
                    self._again[line.case] = _digest(outcomes)
                elif line.purpose == CASE and answered(outcomes):
                    self._first[line.case] = probes[line.case], _digest(outcomes)

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
        environment = {**target.environment, "MALLOC_PERTURB_": _OTHER_FILL}
        wanted = sample_of(self._profile, self._first) if self._chosen is None else self._chosen
        chosen = [
            probe
            for case, (probe, digest) in reversed(self._first.items())
            if case in wanted and self._again.get(case) != digest
        ]
        amended: list[Result] = []
        if not chosen:
            return amended
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
    """The digest of status, shapes, types and every bit of what came back."""
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
