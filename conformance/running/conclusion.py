"""Conclusions from the results of a target: findings, filling, stale entries of its list."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import structs

from ..diagnosis.findings import counted, findings_of
from ..judging.judgement import DECLINED
from ..judging.vocabulary import NO_FAILURE
from ..probes.probe import Probe
from ..results.expected.entries import Entry, applying, decidable_entries, matching, stale, unlisted_faults
from ..results.records import Finding
from ..results.result import Result
from ..results.summary import Summary, look_of, summary_of
from .filling import filling_record
from .run import Plan, Run, TargetRun


def conclude(
    run: Run,
    target: TargetRun,
    listed: Iterable[Entry] = (),
    *,
    findings: Sequence[Finding] | None = None,
    left_out: str = "",
) -> None:
    """Set findings, stale entries and filling of a target from its results.

    listed
        The target's list of known failures.
    findings
        Its findings so far (default: derived from the results).
    left_out
        Reason why no random cases followed.
    """
    probes = {probe.id: probe for probe in run.plan.probes_of(target.target)}
    target.stale = no_longer_needed(run.plan, listed, target)
    with target.guarded("findings"):
        findings_so_far = findings_of(target.results, probes) if findings is None else findings
        target.findings = final_findings(findings_so_far, target.results)
        confirmed = {finding["fault"] for finding in target.findings if finding["foretold"]}
        entries = applying(listed, target.description)
        target.unlisted = [
            result.case
            for result in target.results
            if target.target.expected  # the user's own list
            if result.expected and confirmed & {*unlisted_faults(entries, probes[result.case], result)}
        ]
    if target.unavailable:
        return
    if run.plan.can_fill and target.results:
        with target.guarded("filling"):
            target.filling = filling_record(run.plan, target.target, target.results, left_out)


def final_findings(findings: Iterable[Finding], results: Iterable[Result]) -> list[Finding]:
    """Return findings with counts from the final results, new causes first.

    An experiment may name a fault that the list of known failures has: then results are expected that were new when
    their finding was made.
    """
    by_case = {result.case: result for result in results}
    counted_anew = [_counted_anew(finding, by_case) for finding in findings]
    return sorted(counted_anew, key=_order)


def _counted_anew(finding: Finding, results: Mapping[str, Result]) -> Finding:
    members = [results[case] for case in dict.fromkeys(finding["cases"])]
    whole = cast(Finding, {**finding, **counted(members)})
    if finding["kind"] in NO_FAILURE or not members or not all(result.failing for result in members):
        return whole
    whole["expected"] = all(result.expected for result in members)
    if whole["expected"] and not finding["expected"]:
        reasons = {result.why for result in members}
        whole["why"] = reasons.pop() if len(reasons) == 1 else ""
    return whole


def _order(finding: Finding) -> tuple[bool, bool, bool, bool, int]:
    """Sort failures before other findings, refusals last; new before known; and a cause whose cases are all new before
    one that shares cases with it."""
    if finding["verdict"] in DECLINED:
        return True, True, True, True, 0
    count, new = len(finding["cases"]), finding["new"]
    return False, finding["kind"] in NO_FAILURE, not new, new < count, -count


def summary_on(target: TargetRun, run: Run) -> Summary:
    """Return the summary of a target."""
    selection = run.plan.selection
    return summary_of(
        target.results,
        target.findings,
        stale=len(target.stale),
        unlisted=len(target.unlisted),
        lists_used=run.plan.expected,
        look=look_of(selection.profile, (*selection.cases, *selection.directories)),
        chosen=selection.chosen,
    )


def looked_up(result: Result, probes: Mapping[str, Probe], entries: Sequence[Entry]) -> Result:
    """Return a result with the entry of the list of known failures that covers it."""
    entry = matching(entries, probes[result.case], result)
    return structs.replace(result, expected=entry is not None, why=entry.reason if entry else "")


def no_longer_needed(plan: Plan, listed: Iterable[Entry], run: TargetRun) -> list[Entry]:
    """Return the entries for a target that no failure needs any more.

    Nothing is known of an entry that covers cases of the profile which were not run. Wrapped cases and those of
    directories say nothing about entries. A random case that followed may need an entry, but makes none stale, because
    the next run may have other ones.
    """
    if run.target.wrap or plan.selection.directories:
        return []
    probes = {probe.id: probe for probe in plan.probes}
    ran = [(probes[r.case], r) for r in run.results if r.case in probes]
    entries = stale(applying(listed, run.description), ran)
    after = {probe.id: probe for probe in plan.filled.get(run.target.name, ())}
    followed = [(after[r.case], r) for r in run.results if r.case in after]
    entries = [entry for entry in entries if not any(entry.expects(probe, r) for probe, r in followed)]
    if not entries:
        return []
    return decidable_entries(entries, {result.case for _, result in ran}, plan.selection.profile)
