"""What run.json holds of a run."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..cases import digests_for
from ..reference import clause_named
from .environment import environment, version_of
from .journal import SCHEMA
from .run import Run, TargetRun
from .signed_errors import biases, grades

__all__ = ["description_of"]


def description_of(run: Run) -> dict[str, Any]:
    """run.json."""
    selection, plan = run.plan.selection, run.plan
    targets = [_target_description(target) for target in run.targets]
    named = {c for t in run.targets for r in t.results for c in (*r.clauses, r.clause) if c}
    named |= {c for target in targets for finding in target["findings"] for c in finding["clauses"]}
    clauses = {id: clause_named(id) for id in sorted(named)}
    return {
        "schema": SCHEMA,
        "onnxspec": version_of("onnxspec") or "",
        "started": run.started.isoformat(timespec="seconds"),
        "seconds": round(run.seconds, 3),
        "complete": run.complete,
        "command": list(plan.command),
        "profile": selection.profile,
        "selection": {
            "op": sorted(set(selection.ops)),
            "since_version": sorted(set(selection.versions)),
            "type": sorted(set(selection.types)),
            "case": sorted(set(selection.cases)),
            **({"directories": list(selection.directories)} if selection.directories else {}),
        },
        "shard": str(plan.shard) if plan.shard is not None else None,
        "expected_failures": plan.expected,
        "cases": len(plan.probes),
        **({"skipped": list(plan.skipped)} if plan.skipped else {}),
        "digests": {"directories": plan.digest}
        if selection.directories
        else digests_for(selection.profile, sorted({(p.op, p.version) for p in plan.everything})),
        "environment": environment(),
        "counts": dict(sum((t.counts for t in run.targets), Counter[str]())),
        "targets": targets,
        "clauses": {id: {"status": c.status, "text": c.text, "source": c.source} for id, c in clauses.items()},
    }


def _target_description(run: TargetRun) -> dict[str, Any]:
    return {
        "name": run.target.name,
        "adapter": run.target.adapter,
        "description": run.description,
        "unavailable": run.unavailable,
        "class": run.target.accuracy,
        "wrap": run.target.wrap,
        "expected_file": run.target.expected,
        "grade": grades(run.results, run.target.accuracy),
        "options": dict(run.target.options),
        "counts": dict(run.counts),
        "unexpected": len(run.unexpected),
        "seconds": round(run.seconds, 3),
        "bias": biases(run.results),
        "findings": run.findings,
        **({"disagreements": run.disagreements} if run.disagreements else {}),
        "evidence": {name: dict(value) for name, value in vars(run.evidence).items()},
        "stale": [{"reason": e.reason, "cases": list(e.cases), "features": list(e.features)} for e in run.stale],
    }
