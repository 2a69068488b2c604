"""Target process for items of pytest; failing results are diagnosed one by one."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec import structs

from ...reference.operators.internal_error import format_internal_error
from ..diagnosis.explainer import Explainer
from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..probes.stream import CaseRun, tried
from ..results.expected.entries import Entry, Failure, applying, matching, stale
from ..results.result import Result
from ..results.wording import failure_text
from ..running.target_runner import judged_result
from ..targets.target import Target
from ..workers.process import TargetProcess, TargetUnavailable

# Hypotheses that are tried on failing cases: some seconds, for a target that fails in ways that nothing explains.
_EFFORT = 3000


@dataclass(frozen=True)
class Judged:
    """A case's result, with a text about an unexpected failure; empty for others."""

    result: Result
    text: str


class Session:
    """One target, started when its first result is asked for."""

    def __init__(self, target: Target, entries: Sequence[Entry] = (), targets_file: Path | None = None) -> None:
        """`entries` are the expected failures; `targets_file` defines the target, if it is in a file."""
        self.target = target
        self.entries = tuple(entries)
        self.description: dict[str, Any] = {}
        self._targets_file = targets_file
        self._process: TargetProcess | None = None
        self._failures: dict[str, Failure] = {}
        self._explainer = Explainer(target.accuracy, _EFFORT, self.entries)

    def start(self) -> None:
        """Start the target if it is not running. Raise TargetUnavailable."""
        if self._process is None:
            process = TargetProcess(self.target)
            self.description = process.start()
            self._process = process

    def close(self) -> None:
        """End the target's process."""
        if self._process is not None:
            self._process.close()
        self._process = None

    def results_of(self, probes: Iterable[Probe]) -> Iterator[Judged]:
        """Run cases, and yield their results in order, each as soon as it is there.

        Raise TargetUnavailable if the target does not start, or not again after a crash.
        """
        self.start()
        assert self._process is not None
        entries = applying(self.entries, self.description)
        for case_run in tried(self._process, probes, self.target.accuracy):
            judged = self._judged(case_run, judged_result(case_run, self.target, entries, self._repeat))
            if judged.result.verdict is Verdict.UNAVAILABLE:
                raise TargetUnavailable(judged.result.message)
            self._failures[judged.result.case] = Failure.of(judged.result)
            yield judged

    def still_fails(self, entry: Entry, probes: Iterable[Probe]) -> bool:
        """Return whether something fails as an entry expects, or nothing that it covers could be tried.

        probes
            All that the entry covers. Those that have not run do, as far as needed.
        """
        probes = list(probes)
        for probe in probes:
            if probe.id in self._failures and entry.expects(probe, self._failures[probe.id]):
                return True
        for probe in probes:
            if probe.id not in self._failures:
                (judged,) = self.results_of([probe])
                if entry.expects(probe, judged.result):
                    return True
        return not stale([entry], ((probe, self._failures[probe.id]) for probe in probes))

    def _judged(self, one: CaseRun, result: Result) -> Judged:
        # An entry that names a fault is about what it explains, whatever else expects it.
        if not result.expected or any(e.faults and e.covers(one.probe) for e in self.entries):
            result = self._explained(one, result)
        if not result.failing or result.expected:
            return Judged(result, "")
        text = failure_text(
            one.prepared,
            one.outcomes,
            one.judgement,
            accuracy=self.target.accuracy,
            clauses=result.clauses,
            diagnosis=result.diagnosis,
            repeat=result.repeat,
        )
        return Judged(result, text)

    def _explained(self, one: CaseRun, result: Result) -> Result:
        """Return the result with its diagnosis, which an entry may name."""
        try:
            diagnosis = self._explainer.explain(one)
        except Exception as error:  # whatever it is, it is ours or the operator's, and costs this case its diagnosis
            broke = f"its diagnosis broke off, by the suite's fault or the operator's: {format_internal_error(error)}"
            return structs.replace(result, message=f"{result.message}; {broke}")
        if not diagnosis:
            return result
        explained = structs.replace(result, diagnosis=diagnosis)
        entry = matching(applying(self.entries, self.description), one.probe, explained)
        return structs.replace(explained, expected=entry is not None, why=entry.reason if entry else "")

    def _repeat(self, probe: Probe) -> str:
        """Return the command that shows a case on the target."""
        place = ["--targets-file", str(self._targets_file)] if self._targets_file is not None else []
        command = shlex.join([*probe.repeat(self.target.name), *place])
        path = self.target.environment.get("PYTHONPATH") if self.target.adapter == "backend" else None
        return f"PYTHONPATH={shlex.quote(path)} {command}" if path else command
