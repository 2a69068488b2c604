"""Sample of cases that run again in a fresh process, to detect results that depend on earlier cases.

A worker runs hundreds of cases, and each case has the same neighbours in every run. So a few cases run again in a
process of their own, in the opposite order and with other bytes in unwritten memory. All bits must be the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from ...reference.errors import RecordError
from ..judging.judgement import FAILING, UNTRIED, Judgement, Verdict
from ..probes.probe import Probe
from ..probes.stream import CaseRun
from ..results.folder import recorded_in
from ..results.recorded import CASE, FRESH, bits_of, outcome_of
from ..results.result import Result, place_of
from ..targets.target import Target
from ..workers.job import Outcome

SAMPLE = 16
"""Maximum number of repeated cases: they cost about as much as starting a process with its runtime."""

FEWEST = 8
"""Minimum number of cases of a run for a sample: with fewer, no case has many predecessors."""

_OTHER_FILL = "64"  # instead of the worker's own 0x80


def answered(outcomes: Sequence[Outcome]) -> bool:
    """Return whether a target ran a case with the same bits in all runs of its session."""
    return all(o.status == "ran" and all(len(distinct) == 1 for distinct in o.outputs) for o in outcomes)


def sample_of(profile: str, cases: Iterable[str]) -> frozenset[str]:
    """Return the ids of the repeated cases, among those for which the target returned outputs.

    The sample depends on the profile with its nonce, not on the person who runs the cases. The sample of a whole run is
    a subset of the union of its shards' samples.
    """

    def rank(case: str) -> bytes:
        return hashlib.sha256(f"{profile}\0{case}".encode()).digest()

    return frozenset(sorted(cases, key=rank)[:SAMPLE])


class FreshSample:
    """Repeated cases and digests of their first results."""

    def __init__(self, profile: str, planned: int, chosen: frozenset[str] | None = None) -> None:
        """`planned` is the number of cases of the whole run, with all its shards; `chosen` replaces the sample."""
        self._profile, self._chosen = profile, chosen
        self._enough = planned >= FEWEST or bool(chosen)
        self._first: dict[str, tuple[Probe, str]] = {}
        self._again: dict[str, str] = {}

    def offer(self, one: CaseRun) -> None:
        """Store a digest of the first result of a case."""
        if self._enough and one.outcomes and answered(one.outcomes):
            self._first[one.probe.id] = one.probe, _digest(one.outcomes)

    def recall(self, folder: Path, target: str, probes: Mapping[str, Probe], done: Collection[str]) -> None:
        """Load the digests of finished cases from the folder of a resumed run. Raise OSError."""
        if not (self._enough and done):
            return
        bits = bits_of(folder, target)
        for line in recorded_in(folder):
            if line.target != target or line.case not in done or line.case not in probes:
                continue
            try:
                outcomes = [outcome_of(job, bits) for job in line.jobs]
            except RecordError:
                continue  # reported when the results are derived again
            if line.purpose == FRESH:
                self._again[line.case] = _digest(outcomes)
            elif line.purpose == CASE and answered(outcomes):
                self._first[line.case] = probes[line.case], _digest(outcomes)

    def chosen(self) -> list[Probe]:
        """Return the cases to repeat, in the opposite order."""
        wanted = sample_of(self._profile, self._first) if self._chosen is None else self._chosen
        return [
            probe
            for case, (probe, digest) in reversed(self._first.items())
            if case in wanted and self._again.get(case) != digest
        ]

    def differs(self, again: CaseRun) -> bool:
        """Return whether the outputs of a repeated case differ from the first ones."""
        return again.judgement.verdict not in UNTRIED and _digest(again.outcomes) != self._first[again.probe.id][1]


def fresh_target(target: Target) -> Target:
    """Return a target for a fresh process, with other bytes in unwritten memory."""
    return replace(target, environment={**target.environment, "MALLOC_PERTURB_": _OTHER_FILL})


def amended_by_fresh(result: Result, again: Judgement) -> Result:
    """Return the amended result of a case whose outputs differ in a fresh process; `again` is the judgement there.

    It becomes ``unstable`` if one of the two is right and the other is not; otherwise it is flagged
    ``nondeterministic``.
    """
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
    """Return a digest of status, shapes, types and all bits of the outputs."""
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
