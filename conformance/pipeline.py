"""A target at work for items of pytest: cases are sent ahead of the item that waits for them, each is judged once."""

from __future__ import annotations

import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..cases import Case, CaseSpec
from .diagnosis import DIAGNOSED, Search, witness_of
from .engine import outcomes_of
from .expected_failures import Entry, Failure, applying, matching, stale
from .probe import SpecProbe
from .process import Outcome, TargetProcess, TargetUnavailable
from .result import Result, result_of
from .target import Target
from .verdict import Judgement, Verdict, judge
from .wording import failure_text

__all__ = ["Judged", "Pipeline"]


# Hypotheses that are tried on failing cases: some seconds, for a target that fails in ways that nothing explains.
_EFFORT = 3000


@dataclass(frozen=True)
class Judged:
    """A case's result; ``text`` tells a failure that nobody expected, and is empty otherwise."""

    result: Result
    text: str


class Pipeline:
    """One target, started when its first result is asked for.

    Cases announced by :meth:`expect` run while earlier ones are judged; a case that is asked for unannounced, or again,
    runs then.
    """

    def __init__(self, target: Target, entries: Sequence[Entry] = (), targets_file: Path | None = None) -> None:
        """`entries` are the expected failures; `targets_file` is where the target is defined, if in a file."""
        self.target = target
        self.entries = tuple(entries)
        self.description: dict[str, Any] = {}
        self._targets_file = targets_file
        self._process: TargetProcess | None = None
        self._agenda: deque[CaseSpec] = deque()
        self._under_way: set[str] = set()
        self._running: Iterator[tuple[Case, Outcome, Outcome | None]] = iter(())
        self._ready: dict[str, Judged] = {}
        self._failures: dict[str, Failure] = {}
        self._search = Search(target.accuracy, _EFFORT)

    def start(self) -> None:
        """Start the target if it is not at work. Raises TargetUnavailable."""
        if self._process is None:
            process = TargetProcess(self.target)
            self.description = process.start()
            self._process = process

    def close(self) -> None:
        """End the target's process; what has been announced is forgotten."""
        self._agenda.clear()
        self._under_way.clear()
        close = getattr(self._running, "close", None)
        self._running = iter(())
        if close is not None:
            close()
        if self._process is not None:
            self._process.close()
        self._process = None

    def expect(self, specs: Iterable[CaseSpec]) -> None:
        """Announce cases that will be asked for, in this order. None is announced twice."""
        for spec in specs:
            if spec.id not in self._failures and spec.id not in self._under_way:
                self._agenda.append(spec)
                self._under_way.add(spec.id)

    def results_of(self, specs: Iterable[CaseSpec]) -> Iterator[Judged]:
        """The results of cases, in order, each as soon as it is there.

        Raises TargetUnavailable where the target does not start, or not again after a crash.
        """
        self.start()
        specs = list(specs)
        for spec in specs:
            self._failures.pop(spec.id, None)
        self.expect(spec for spec in specs if spec.id not in self._ready)
        for spec in specs:
            while spec.id not in self._ready:
                self._advance()
            judged = self._ready.pop(spec.id)
            if judged.result.verdict is Verdict.UNAVAILABLE:
                raise TargetUnavailable(judged.result.message)
            self._failures[spec.id] = Failure.of(judged.result)
            yield judged

    def still_fails(self, entry: Entry, specs: Iterable[CaseSpec]) -> bool:
        """Whether something fails as an entry expects, or nothing that it covers could be tried.

        specs
            All that the entry covers. Of those that have not run as many do as it takes.
        """
        specs = list(specs)
        for spec in specs:
            if spec.id in self._failures and entry.expects(spec, self._failures[spec.id]):
                return True
        for spec in specs:
            if spec.id not in self._failures:
                (judged,) = self.results_of([spec])
                if entry.expects(spec, judged.result):
                    return True
        return not stale([entry], ((spec, self._failures[spec.id]) for spec in specs))

    def _announced(self) -> Iterator[CaseSpec]:
        while self._agenda:
            yield self._agenda.popleft()

    def _advance(self) -> None:
        """Judge the next case that comes back."""
        assert self._process is not None
        found = next(self._running, None)
        if found is None:
            # Everything announced so far is done, and what was announced since then starts a new stream.
            self._running = outcomes_of(self._process, self._announced())
            found = next(self._running)
        case, outcome, twin = found
        self._under_way.discard(case.spec.id)
        self._ready[case.spec.id] = self._judged(case, outcome, twin)

    def _judged(self, case: Case, outcome: Outcome, twin: Outcome | None) -> Judged:
        spec, accuracy = case.spec, self.target.accuracy
        judgement = judge(case, outcome, twin, accuracy)
        entry = matching(applying(self.entries, self.description), spec, judgement)
        repeat = self._repeat(spec)
        seconds = outcome.seconds + (twin.seconds if twin else 0.0)
        result = result_of(spec, self.target.name, judgement, seconds, entry.reason if entry else None, repeat)
        if judgement.verdict in DIAGNOSED and entry is None:
            result = self._explained(case, outcome, judgement, result)
        if not result.failing or result.expected:
            return Judged(result, "")
        text = failure_text(
            (case.trial, case.twin),
            judgement,
            outcome,
            twin,
            accuracy=accuracy,
            clauses=result.clauses,
            diagnosis=result.diagnosis,
            repeat=repeat,
        )
        return Judged(result, text)

    def _explained(self, case: Case, outcome: Outcome, judgement: Judgement, result: Result) -> Result:
        """The result with what explains it, which an entry may name."""
        probe = SpecProbe(case.spec)
        witness = witness_of(probe.id, case.trial, outcome, probe.clauses, probe.size)
        explanation = self._search.explain(witness) if witness is not None else None
        if explanation is None:
            return result
        said = replace(result, diagnosis=tuple(mistake.id for mistake in explanation))
        entry = matching(applying(self.entries, self.description), case.spec, said)
        return replace(said, expected=entry is not None, why=entry.reason if entry else "")

    def _repeat(self, spec: CaseSpec) -> str:
        """The command that shows a case on the target."""
        place = ["--targets-file", str(self._targets_file)] if self._targets_file is not None else []
        command = shlex.join(["onnxspec", "explain", spec.id, "--target", self.target.name, *place])
        path = self.target.environment.get("PYTHONPATH") if self.target.adapter == "backend" else None
        return f"PYTHONPATH={shlex.quote(path)} {command}" if path else command
