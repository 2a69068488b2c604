"""Evidence: for the smallest case of each finding, what a reader needs to see it and to make it happen again.

It lies in the run directory as ``evidence/TARGET/CASE/``: the numbers (``evidence.json``), a script that
needs only onnx, NumPy and the runtime, and the case as an ONNX test-case directory. It decides nothing; a run without
it is as good as one with it, so whatever goes wrong here is said and nothing more.
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

from ...cases.directories.directory import DataSet, write_directory
from ...cases.directories.fairness import data_sets_of
from ...reference import SPECIAL
from ..judging.judgement import DECLINED, FAILING, Judgement, Verdict
from ..probes.probe import Prepared, Probe, SpecProbe
from ..probes.stream import CaseRun
from ..targets.target import Target
from ..workers.hangs import HangBudget
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
    """Outputs of targets in cases that a finding may rest on, as long as there is room; others are run again."""

    room: int = KEPT_BYTES
    fresh: set[str] = field(default_factory=set)
    _kept: dict[str, tuple[Judgement, tuple[Outcome, ...]]] = {}

    def offer(self, one: CaseRun) -> None:
        """Keep the outcomes of a case on which a finding may rest. ``fresh`` has all cases that were ever offered."""
        judgement = one.judgement
        self.fresh.add(one.probe.id)
        telling = judgement.verdict in FAILING | DECLINED
        if not telling and not {"unconventional", *SPECIAL} & {*judgement.flags}:
            return
        size = sum(map(_bytes_of, one.outcomes))
        if size <= self.room:
            self.room -= size
            self._kept[one.probe.id] = judgement, one.outcomes

    def get(self, case: str) -> tuple[Judgement, tuple[Outcome, ...]] | None:
        """The verdict on a case and what was returned, None where it was not kept."""
        return self._kept.get(case)


def _bytes_of(outcome: Outcome) -> int:
    arrays = [a for lists in outcome.outputs for outputs in lists for a in outputs if a is not None]
    return sum(array.nbytes for array in arrays) + len(outcome.captured) + 1000


def no_evidence() -> EvidenceRecord:
    """The evidence of nothing."""
    return {"folders": {}, "larger": {}, "missing": {}}


def write_evidence(
    folder: Path,
    target: Target,
    findings: Sequence[Finding],
    probes: Mapping[str, Probe],
    results: Sequence[Result],
    kept: Kept,
    hangs: HangBudget | None = None,
    start: Callable[..., TargetProcess] = TargetProcess,
) -> EvidenceRecord:
    """Write the evidence of a target's findings below a run directory; returns where it lies.

    findings
        As :func:`.findings.findings_of` gives them.
    kept
        What the target returned in this run; what is not there, as after a resumed run, is run again.
    hangs
        The run's budget for hangs.
    start
        What the target is put to work with.

    Never raises for what a target, a case or the disk does.
    """
    place = folder / FOLDER / slug(target.name)
    by_case = {result.case: result for result in results}
    shown = [f for f in findings[:MOST_FINDINGS] if f["kind"] != "biased" and f["smallest"] in probes]
    larger = {f["smallest"]: case for f in shown if (case := _larger(f, probes))}
    cases = [case for f in shown for case in (f["smallest"], larger.get(f["smallest"])) if case is not None]
    written: dict[str, str] = {}
    missing: dict[str, str] = {}
    try:
        _clear(place, {case for case in cases if case not in kept.fresh})
        with contextlib.ExitStack() as stack:
            process: TargetProcess | None = None
            for case in dict.fromkeys(cases):
                try:
                    if not (place / case / EVIDENCE).is_file():
                        prepared = probes[case].prepare()
                        judged = kept.get(case)
                        if judged is None:
                            process = process or stack.enter_context(start(target, hangs=hangs))
                            outcomes = tuple(process.run(prepared.jobs))
                            judged = prepared.judge(outcomes, target.accuracy), outcomes
                        _write(place, probes[case], prepared, target, *judged, by_case.get(case))
                    written[case] = (place / case).relative_to(folder).as_posix()
                except Exception as error:  # evidence of one case must not cost that of another
                    missing[case] = one_line(f"{type(error).__name__}: {error}", 300)
    except Exception as error:
        missing = dict.fromkeys(set(cases) - set(written), one_line(f"{type(error).__name__}: {error}", 300))
    larger = {small: case for small, case in larger.items() if case in written}
    return {"folders": written, "larger": larger, "missing": missing}


def _larger(finding: Finding, probes: Mapping[str, Probe]) -> str | None:
    """The smallest case of a finding about numbers that has a few steps and units, if its smallest case has not."""
    if finding["kind"] not in (*_BY_NUMBERS, "convention", "special-values") or _shows_pattern(
        probes[finding["smallest"]]
    ):
        return None
    telling = [probes[case] for case in finding["cases"] if case in probes and _shows_pattern(probes[case])]
    return min(telling, key=lambda probe: (probe.size, probe.id)).id if telling else None


def _shows_pattern(probe: Probe) -> bool:
    if not isinstance(probe, SpecProbe):
        return True
    return probe.spec.shows_pattern


def slug(name: str) -> str:
    """A target's name as that of a folder, different for different names."""
    safe = re.sub(r"[^A-Za-z0-9+_-]", "_", name)[:80]
    return safe if safe == name else f"{safe}-{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:6]}"


def forget_evidence(folder: Path) -> None:
    """Remove the evidence in a run directory whose run starts again; nothing else that may lie there."""
    with contextlib.suppress(OSError):
        for place in (folder / FOLDER).iterdir():
            _clear(place, set())
            with contextlib.suppress(OSError):  # something else is in it, or it is no folder
                place.rmdir()
        (folder / FOLDER).rmdir()


def _clear(place: Path, wanted: set[str]) -> None:
    """Remove the evidence of an earlier run, all but that of the wanted cases; nothing else that may lie there."""
    if not place.is_dir() or place.is_symlink():
        return
    for old in place.iterdir():
        if old.name not in wanted and not old.is_symlink() and (old / EVIDENCE).is_file():
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
    """Write the evidence of one case; its folder is whole or not there. Raises OSError and whatever a model causes."""
    from ..showing.evidence import evidence_of  # for which a run in which nothing fails has no use

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
