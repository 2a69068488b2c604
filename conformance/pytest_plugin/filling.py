"""The last items of a target: cases that follow the pinned ones where it lacks features (:mod:`..running.filling`).

There is one for each operator version and type, collected before anything is known of the target. The first one to run
fills up for all of them, since what follows depends on all results; the others tell what is theirs. With pytest-xdist
one worker fills: it reads what the others have left of their results, runs what it does not find, and tells everything
in its first item.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ..border.strict_json import MalformedJson, decode
from ..results.result import Result
from ..running.filling import cases_to_add, with_filled
from ..running.run import Plan
from .pipeline import Judged, Pipeline


class Share:
    """A folder in which workers of pytest-xdist leave results of one target for each other; nothing without one."""

    def __init__(self, folder: str | None, worker: str, target: str) -> None:
        self._target = target.encode().hex()[-150:]
        self._folder = Path(folder) if folder is not None else None
        self._own = f"results-{self._target}-{worker}"

    @property
    def several(self) -> bool:
        """Tell whether there are other workers."""
        return self._folder is not None

    def leave(self, results: Sequence[Result]) -> None:
        """Leave results for whichever worker fills."""
        if self._folder is not None:
            with (self._folder / self._own).open("a", encoding="ascii") as file:
                file.write("".join(f"{result.to_line()}\n" for result in results))

    def left(self) -> Iterator[Result]:
        """Return the results that all workers have left so far, without an incomplete line of another one."""
        for path in sorted(self._folder.glob(f"results-{self._target}-*")) if self._folder is not None else ():
            for line in path.read_bytes().splitlines():
                with contextlib.suppress(MalformedJson):
                    yield decode(line, Result)

    def claimed(self, task: str) -> bool:
        """Tell whether a task that one of the workers has to do is this one's: it is that of the first to ask."""
        if self._folder is None:
            return True
        try:
            (self._folder / f"{task}-{self._target}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class Filler:
    """The cases that follow on one target of a session."""

    def __init__(self, pipeline: Pipeline, plan: Plan) -> None:
        self._pipeline, self._plan = pipeline, plan
        self.judged: list[Judged] | None = None

    def fill(self, known: Iterable[Result]) -> list[Judged]:
        """Run the cases that follow, once, after pinned cases without a known result. Raise TargetUnavailable."""
        if self.judged is None:
            pinned = self._plan.probes_of(self._pipeline.target)
            there = {result.case: result for result in known}
            for judged in self._pipeline.results_of(probe for probe in pinned if probe.id not in there):
                there[judged.result.case] = judged.result
            results = [there[probe.id] for probe in pinned]
            target = self._pipeline.target
            plan = with_filled(self._plan, target, cases_to_add(self._plan, target, results))
            following = (probe for probe in plan.probes_of(target) if probe.id not in there)
            self.judged = list(self._pipeline.results_of(following))
        return self.judged
