"""The content of run.json."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

from ...cases import digests_for
from ...reference import clause_named, operator_names
from ..probes.drawn import fresh_profile, split_nonce
from ..probes.probe import Probe, SpecProbe
from ..results.environment import environment, version_of
from ..results.level_grades import level_records
from ..results.lines import FILLED
from ..results.records import SCHEMA, RunRecord, SelectionRecord, TargetRecord
from ..results.signed_errors import biases, grades, passing_grades
from .filling import digest_of_cases
from .run import Plan, Run, TargetRun


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
    }
    if selection.directories:
        narrowed["directories"] = list(selection.directories)
    record: RunRecord = {
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
        "digests": {**_digests(plan), **_filled(plan)},
        "environment": environment(),
        "counts": dict(sum((t.counts for t in run.targets), Counter[str]())),
        "targets": targets,
        "clauses": {id: {"status": c.status, "text": c.text, "source": c.source} for id, c in clauses.items()},
    }
    if plan.record:
        record["keeps_outputs"] = True
    if plan.skipped:
        record["skipped"] = list(plan.skipped)
    return record


def _digests(plan: Plan) -> dict[str, str]:
    """Return digests of the cases, so that equal names are known to mean equal cases."""
    directories = {"directories": plan.digest} if plan.digest else {}
    if plan.selection.directories:
        return directories
    if fresh_profile(plan.selection.profile) is not None:
        return {"random": _digest_of_texts(plan.everything)}
    operators = operator_names()
    versions = sorted({(p.op, p.version) for p in plan.everything if p.op in operators})
    pinned, nonce = split_nonce(plan.selection.profile)
    asked = [probe for probe in plan.everything if isinstance(probe, SpecProbe) and probe.fresh]
    fresh = {"nonce": _digest_of_texts(asked)} if nonce else {}
    return {**digests_for(pinned, versions), **directories, **fresh}


def _digest_of_texts(probes: Iterable[Probe]) -> str:
    return hashlib.sha256("\n".join(probe.text for probe in probes).encode()).hexdigest()


def _filled(plan: Plan) -> dict[str, str]:
    """Return digests of the random cases that followed on each target."""
    return {
        f"{FILLED}{name}": digest_of_cases(probe.text for probe in probes)
        for name, probes in plan.filled.items()
        if probes
    }


def _target_description(run: TargetRun) -> TargetRecord:
    record: TargetRecord = {
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
    }
    if run.unlisted:
        record["unlisted"] = list(run.unlisted)
    if run.internal_errors:
        record["mishaps"] = list(run.internal_errors)
    if levels := level_records(run.results):
        record["levels"] = levels
    if run.filling is not None:
        record["filling"] = run.filling
    return record
