"""Document and kernel, clause by clause: what a target's results show of the disagreements that are known."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ...reference import clause_named, fault_named, operator_of
from ...reference.documents.disagreements import Disagreement
from ..judging.judgement import DECLINED, Verdict
from ..judging.vocabulary import STATES, UNKNOWN
from ..probes.probe import Probe
from ..results.records import DisagreementRecord
from ..results.result import Result
from ..targets.target import Target

__all__ = ["FOLDER", "disagreements_of", "write_reproducers"]

FOLDER = "disagreements"

_SHOWN, _WITHIN, _NOT = "shown", "within the bound", STATES[UNKNOWN]


def disagreements_of(results: Sequence[Result], probes: Mapping[str, Probe]) -> list[DisagreementRecord]:
    """The record in run.json of the disagreements that are known between documents and kernels; nothing of operators of
    which no case was run.

    ``units`` is the largest error in units of y_scale that a case of it has, ``error`` that error as a number.
    """
    by_op: dict[str, list[Result]] = {}
    for result in results:
        if result.case in probes and result.clauses:  # of a model that no document speaks of there are none
            by_op.setdefault(result.op, []).append(result)
    return [_entry(each, mine, probes) for op, mine in by_op.items() for each in operator_of(op).disagreements]


def _entry(one: Disagreement, results: Sequence[Result], probes: Mapping[str, Probe]) -> DisagreementRecord:
    members = [r for r in results if _shows(one, r)]
    # A case that shows it and nothing else shows it best.
    alone = [r for r in members if len(r.diagnosis) <= 1] or members
    sized = [r for r in alone if (r.where or {}).get("units") is not None]
    worst = max(sized, key=lambda r: (r.where or {}).get("units") or 0.0, default=None)
    smallest = min(alone, key=lambda r: (probes[r.case].size, r.case), default=None)
    first = worst if one.bounded else smallest
    clause = clause_named(one.clause)
    return {
        "id": one.id,
        "kind": one.kind,
        "clause": one.clause,
        "status": clause.status,
        "document": clause.text,
        "where": clause.source,
        "kernel": one.kernel,
        "source": list(one.source),
        "when": one.when,
        "size": one.size,
        "foundation": one.foundation,
        "seen": (_WITHIN if one.bounded else _SHOWN) if members else _NOT,
        "verdicts": sorted({r.verdict.value for r in members}),
        "cases": len(members),
        "smallest": first.case if first is not None else "",
        "message": first.message[:300] if first is not None else "",
        "units": (worst.where or {}).get("units") if worst is not None else None,
        "error": (worst.where or {}).get("error") if worst is not None else None,
        "repeat": first.repeat if first is not None else "",
        "script": "",
    }


def _shows(one: Disagreement, result: Result) -> bool:
    if one.bounded:
        right = result.verdict is Verdict.PASS and result.elements > 0
        return right and any(fnmatchcase(result.case, pattern) for pattern in one.cases or ("*",))
    if not result.failing and result.verdict not in DECLINED:
        return False
    if one.cases:
        return any(fnmatchcase(result.case, pattern) for pattern in one.cases)
    known = map(fault_named, result.diagnosis)
    return any(one.id in d.disagreements for d in known if d is not None)


def write_reproducers(
    folder: Path, target: Target, found: Sequence[DisagreementRecord], probes: Mapping[str, Probe]
) -> None:
    """Write a script for the smallest case of each disagreement below a run directory, and name it in its entry. What
    cannot be written is left out."""
    for entry in found:
        probe = probes.get(entry["smallest"])
        script = probe.prepare().script(target) if probe is not None else None
        if script is not None:
            path = folder / FOLDER / f"{entry['id']}.py"
            with contextlib.suppress(OSError):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(script, encoding="utf-8")
                entry["script"] = path.relative_to(folder).as_posix()
