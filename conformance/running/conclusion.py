"""Conclusions from the results of a target: findings, filling, stale entries of its list, the content of run.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from msgspec import structs

from ...cases import digests_for
from ...reference import clause_named, operator_names
from ..diagnosis.findings import counted, findings_of
from ..judging.judgement import DECLINED
from ..judging.vocabulary import NO_FAILURE
from ..probes.drawn import fresh_profile, split_nonce
from ..probes.probe import Probe, SpecProbe
from ..results.environment import environment, version_of
from ..results.expected.entries import Entry, applying, decidable_entries, matching, stale, unlisted_faults
from ..results.grades import biases, grades, level_records, passing_grades
from ..results.lines import FILLED
from ..results.records import SCHEMA, Finding, RunRecord, SelectionRecord, TargetRecord
from ..results.result import Result
from ..results.summary import Summary, summary_of
from .filling import digest_of_cases, filling_record
from .run import Plan, Run, TargetRun


def conclude(run: Run, target: TargetRun, listed: Iterable[Entry], left_out: str) -> None:
    """Set findings, stale entries and filling of a target from its results, and from the findings so far.

    listed
        The target's list of known failures.
    left_out
        Reason why no random cases followed.
    """
    probes = {probe.id: probe for probe in run.plan.probes_of(target.target)}
    with target.guarded("stale entries"):  # which lists the profile of every operator, others' own among them
        target.stale = no_longer_needed(run.plan, listed, target)
    with target.guarded("findings"):
        findings = target.findings or findings_of(target.results, probes)
        target.findings = final_findings(findings, target.results)
        confirmed = {finding["fault"] for finding in target.findings if finding["foretold"]}
        entries = applying(listed, target.description)
        target.unlisted = [
            result.case
            for result in target.results
            if target.target.expected  # the user's own list
            if result.expected and confirmed & {*unlisted_faults(entries, probes[result.case], result)}
        ]
    if run.plan.can_fill and target.results and not target.unavailable:
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
        profile=selection.profile,
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


# run.json


def description_of(run: Run) -> RunRecord:
    """Return the content of run.json."""
    selection, plan = run.plan.selection, run.plan
    targets = [_target_description(target) for target in run.targets]
    named = {c for t in run.targets for r in t.results for c in (*r.clauses, r.clause) if c}
    named |= {c for target in targets for finding in target["findings"] for c in finding["clauses"]}
    clauses = {id: clause_named(id) for id in sorted(named)}
    narrowed: SelectionRecord = {
        "op": sorted(set(selection.ops)),
        "since_version": sorted(set(selection.versions)),
        "type": sorted(set(selection.types)),
        "case": sorted(set(selection.cases)),
        "directories": list(selection.directories),
    }
    return {
        "schema": SCHEMA,
        "onnxspec": version_of("onnxspec") or "",
        "started": run.started.isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        "complete": run.complete,
        "command": list(plan.command),
        "profile": selection.profile,
        "selection": narrowed,
        "shard": str(plan.shard) if plan.shard is not None else None,
        "expected_failures": plan.expected,
        "cases": len(plan.probes),
        "digests": _digests(plan),
        "keeps_outputs": plan.record,
        "skipped": list(plan.skipped),
        "merged": [],
        "environment": environment(),
        "counts": dict(sum((t.counts for t in run.targets), Counter[str]())),
        "targets": targets,
        "clauses": {id: {"status": c.status, "text": c.text, "source": c.source} for id, c in clauses.items()},
    }


def _digests(plan: Plan) -> dict[str, str]:
    """Return digests of the cases, so that equal names are known to mean equal cases, and of the random cases that
    followed on each target."""
    filled = {
        f"{FILLED}{name}": digest_of_cases(probe.text for probe in some) for name, some in plan.filled.items() if some
    }
    directories = {"directories": plan.digest} if plan.digest else {}
    if plan.selection.directories:
        return {**directories, **filled}
    if fresh_profile(plan.selection.profile) is not None:
        return {"random": digest_of_cases(probe.text for probe in plan.everything), **filled}
    operators = operator_names()
    versions = sorted({(p.op, p.version) for p in plan.everything if p.op in operators})
    pinned, nonce = split_nonce(plan.selection.profile)
    asked = (probe.text for probe in plan.everything if isinstance(probe, SpecProbe) and probe.fresh)
    fresh = {"nonce": digest_of_cases(asked)} if nonce else {}
    return {**digests_for(pinned, versions), **directories, **fresh, **filled}


def _target_description(run: TargetRun) -> TargetRecord:
    return {
        "name": run.target.name,
        "adapter": run.target.adapter,
        "description": run.description,
        "unavailable": run.unavailable,
        "class": run.target.accuracy,
        "wrap": run.target.wrap,
        "expected_file": run.target.expected,
        "grade": grades(run.results, run.target.accuracy),
        "passing_grade": passing_grades(run.results, run.target.accuracy),
        "options": dict(run.target.options),
        "counts": dict(run.counts),
        "unexpected": len(run.unexpected),
        "seconds": round(run.seconds, 3),
        "bias": biases(run.results),
        "findings": run.findings,
        "evidence": run.evidence,
        "stale": [{"reason": e.reason, "cases": list(e.cases), "features": list(e.features)} for e in run.stale],
        "filling": run.filling,
        "levels": level_records(run.results),
        "unlisted": list(run.unlisted),
        "mishaps": list(run.internal_errors),
    }
