"""Evidence for the smallest case of each finding: the data to see the failure and to reproduce it.

It is in the run directory as ``evidence/TARGET/CASE/``: the numbers (``evidence.json``), a script that needs only onnx,
NumPy and the runtime, and the case as an ONNX test-case directory. Evidence decides no verdict, and a run without it is
complete. So errors here are only reported.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from ...reference import LOSES_NAN
from ..judging.judgement import DECLINED, FAILING, Judgement, Verdict
from ..probes.probe import Prepared, Probe, SpecProbe
from ..probes.stream import CaseRun
from ..targets.target import Target
from ..workers.process import Outcome, TargetProcess
from ..workers.worker import one_line
from .records import EvidenceRecord, Finding
from .result import Result

FOLDER = "evidence"
EVIDENCE, SCRIPT = "evidence.json", "script.py"

KEPT_BYTES = 64 << 20
LARGEST_CASE = 32 << 20
MOST_FINDINGS = 60
_BY_NUMBERS = frozenset(v.value for v in (Verdict.WRONG, Verdict.INACCURATE, Verdict.UNSTABLE))


class Kept(Struct):
    """Outputs of targets in cases that may support a finding, up to a size limit; other cases are run again."""

    room: int = KEPT_BYTES
    fresh: set[str] = field(default_factory=set)
    _kept: dict[str, tuple[Judgement, tuple[Outcome, ...]]] = {}

    def offer(self, one: CaseRun) -> None:
        """Keep the outcomes of a case that may support a finding. ``fresh`` has the ids of all offered cases."""
        judgement = one.judgement
        self.fresh.add(one.probe.id)
        relevant = judgement.verdict in FAILING | DECLINED
        if not relevant and not {"unconventional", LOSES_NAN} & {*judgement.flags}:
            return
        size = sum(map(_bytes_of, one.outcomes))
        if size <= self.room:
            self.room -= size
            self._kept[one.probe.id] = judgement, one.outcomes

    def get(self, case: str) -> tuple[Judgement, tuple[Outcome, ...]] | None:
        """Return the verdict on a case and the target's outcomes; None where they were not kept."""
        return self._kept.get(case)


def _bytes_of(outcome: Outcome) -> int:
    arrays = [a for lists in outcome.outputs for outputs in lists for a in outputs if a is not None]
    return sum(array.nbytes for array in arrays) + len(outcome.captured) + 1000


def no_evidence() -> EvidenceRecord:
    """Return an empty record."""
    return {"folders": {}, "larger": {}, "missing": {}}


def write_evidence(
    folder: Path,
    target: Target,
    findings: Sequence[Finding],
    probes: Mapping[str, Probe],
    results: Sequence[Result],
    kept: Kept,
    process_of: Callable[[], TargetProcess],
) -> EvidenceRecord:
    """Write the evidence of a target's findings into a run directory; return the record of its folders.

    kept
        The target's outcomes in this run; missing ones, as of a resumed run, are run again.
    process_of
        Factory of the target's process.

    Errors of a target, a case or the disk never raise.
    """
    target_folder = folder / FOLDER / slug(target.name)
    by_case = {result.case: result for result in results}
    selected = [f for f in findings[:MOST_FINDINGS] if f["kind"] != "biased" and f["smallest"] in probes]
    larger = {f["smallest"]: case for f in selected if (case := _larger(f, probes))}
    cases = [case for f in selected for case in (f["smallest"], larger.get(f["smallest"])) if case is not None]
    written: dict[str, str] = {}
    missing: dict[str, str] = {}
    try:
        _clear(target_folder)
        with contextlib.ExitStack() as stack:
            process: TargetProcess | None = None
            for case in dict.fromkeys(cases):
                try:
                    prepared = probes[case].prepare()
                    judged = kept.get(case)
                    if judged is None:
                        process = process or stack.enter_context(process_of())
                        outcomes = tuple(process.run(prepared.jobs))
                        judged = prepared.judge(outcomes, target.accuracy), outcomes
                    _write(target_folder, probes[case], prepared, target, *judged, by_case.get(case))
                    written[case] = (target_folder / case).relative_to(folder).as_posix()
                except Exception as error:  # an error in one case must not affect the evidence of others
                    missing[case] = one_line(f"{type(error).__name__}: {error}", 300)
    except Exception as error:
        missing = dict.fromkeys(set(cases) - set(written), one_line(f"{type(error).__name__}: {error}", 300))
    larger = {small: case for small, case in larger.items() if case in written}
    return {"folders": written, "larger": larger, "missing": missing}


def _larger(finding: Finding, probes: Mapping[str, Probe]) -> str | None:
    """Return the smallest case with several steps and units, for a finding whose smallest case has too few.

    Return None for other findings, and for those not about numbers.
    """
    if finding["kind"] not in (*_BY_NUMBERS, "convention", "special-values") or _shows_pattern(
        probes[finding["smallest"]]
    ):
        return None
    candidates = [probes[case] for case in finding["cases"] if case in probes and _shows_pattern(probes[case])]
    return min(candidates, key=lambda probe: (probe.size, probe.id)).id if candidates else None


def _shows_pattern(probe: Probe) -> bool:
    if not isinstance(probe, SpecProbe):
        return True
    return probe.spec.shows_pattern


def slug(name: str) -> str:
    """Return a folder name for a target, different for different names."""
    safe = re.sub(r"[^A-Za-z0-9+_-]", "_", name)[:80]
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}"


def _clear(place: Path) -> None:
    """Remove the evidence of an earlier run, and no other files."""
    if not place.is_dir() or place.is_symlink():
        return
    for old in place.iterdir():
        if not old.is_symlink() and (old / EVIDENCE).is_file():
            shutil.rmtree(old)


def _write(
    place: Path,
    probe: Probe,
    prepared: Prepared,
    target: Target,
    judgement: Judgement,
    outcomes: Sequence[Outcome],
    result: Result | None,
) -> None:
    """Write the evidence of one case, atomically. Raise OSError, and any exception that a model causes."""
    # Imported late: only runs with findings need it.
    from ...cases.directories.directory import DataSet, write_directory
    from ...cases.directories.manifest import data_sets_of
    from ..showing.evidence import evidence_of

    job = prepared.jobs[0]
    if len(job.model) + sum(a.nbytes for feed in job.feeds for a in feed.values()) > LARGEST_CASE:
        raise ValueError(f"the case is larger than the {LARGEST_CASE >> 20} MiB that are kept")
    diagnosis = result.diagnosis if result is not None else ()
    evidence = {
        "case": probe.id,
        "target": target.name,
        "operator": f"{probe.domain}::{probe.op}-{probe.version}" if probe.domain else f"{probe.op}-{probe.version}",
        "type": probe.type,
        "message": judgement.message,
        **evidence_of(job.model, job.feeds, prepared.trials, judgement, outcomes, target.accuracy, diagnosis),
    }
    text = json.dumps(evidence, allow_nan=False, separators=(",", ":"))
    unfinished = place / f".{hashlib.sha256(probe.id.encode()).hexdigest()[:12]}"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        legal = bool(prepared.trials) and prepared.trials[0].violation is None
        data = data_sets_of(prepared.trials[0]) if legal else [DataSet(feed, {}) for feed in job.feeds]
        write_directory(unfinished, job.model, data)
        if (script := prepared.script(target)) is not None:
            (unfinished / SCRIPT).write_text(script, encoding="utf-8")
        (unfinished / EVIDENCE).write_text(text + "\n", encoding="utf-8")
        shutil.rmtree(place / probe.id, ignore_errors=True)
        unfinished.replace(place / probe.id)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
