"""The end of a run: what its results come to, whoever ran them. Runs, merges, Python and certificates conclude here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from ..diagnosis.disagreements import disagreements_of
from ..diagnosis.findings import findings_of
from ..probes.probe import Probe
from ..results.answer import Answer, look_of
from ..results.expected.entries import Entry, applying, decidable_entries, matching, stale
from ..results.records import Finding
from ..results.result import Result
from .filling import filling_record
from .run import Plan, Run, TargetRun
from .screen import told_answer


def conclude(
    run: Run,
    target: TargetRun,
    listed: Iterable[Entry] = (),
    *,
    told: Sequence[Finding] | None = None,
    left_out: str = "",
) -> None:
    """Put down what the results of one target come to: findings, cases that followed, disagreements, and what of a list
    nothing needs any more. Of a target that is gone the latter two are not known.

    listed
        The target's list of known failures.
    told
        Its findings, where more is known of them than results say.
    left_out
        Why nothing followed, where nothing was to.
    """
    probes = {probe.id: probe for probe in run.plan.probes_of(target.target)}
    target.stale = no_longer_needed(run.plan, listed, target)
    with target.guarded("findings"):
        target.findings = findings_of(target.results, probes) if told is None else list(told)
    if target.unavailable:
        return
    with target.guarded("disagreements"):
        target.disagreements = disagreements_of(target.results, probes)
    if run.plan.can_fill and target.results:
        with target.guarded("filling"):
            target.filling = filling_record(run.plan, target.target, target.results, left_out)


def answer_on(target: TargetRun, run: Run) -> Answer:
    """The first lines on a target: whether it conforms, what it supports, whom its failures hit."""
    selection = run.plan.selection
    return told_answer(
        target.results,
        target.findings,
        stale=len(target.stale),
        lists_used=run.plan.expected,
        look=look_of(selection.profile, (*selection.cases, *selection.directories)),
        chosen=selection.chosen,
    )


def looked_up(result: Result, probes: Mapping[str, Probe], entries: Sequence[Entry]) -> Result:
    """A result with what the list of known failures says of it."""
    entry = matching(entries, probes[result.case], result)
    return structs.replace(result, expected=entry is not None, why=entry.reason if entry else "")


def no_longer_needed(plan: Plan, listed: Iterable[Entry], run: TargetRun) -> list[Entry]:
    """The entries for a target that nothing needs any more. Of one that covers cases of the profile which were not run,
    nothing is known; and that somebody else's case passes says nothing about any, nor that a wrapped one does. A case
    that followed may need one, and makes none useless: the next run may have others in its place."""
    if run.target.wrap or plan.selection.directories:
        return []
    own = {probe.id: probe for probe in plan.probes}
    ran = [(own[r.case], r) for r in run.results if r.case in own]
    entries = stale(applying(listed, run.description), ran)
    after = {probe.id: probe for probe in plan.filled.get(run.target.name, ())}
    followed = [(after[r.case], r) for r in run.results if r.case in after]
    entries = [entry for entry in entries if not any(entry.expects(probe, r) for probe, r in followed)]
    if not entries:
        return []
    return decidable_entries(entries, {result.case for _, result in ran}, plan.selection.profile)
