"""`onnxspec fuzz` on a kernel of the zoo, until the first failing case."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from onnxspec.cases import operator_versions
from onnxspec.conformance.fuzzing.database import FORMAT, Database
from onnxspec.conformance.fuzzing.hunt import Hunt, Limits
from onnxspec.conformance.probes.stream import CaseRun
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference import FORMATS

_ADAPTER = Path(__file__).with_name("adapter.py")


@dataclass(frozen=True)
class Search:
    """Result of a search.

    failing
        The id of the failing case; None where there was none.
    cases, seconds
        The number of cases that it took, and the time.
    """

    failing: str | None
    cases: int
    seconds: float


class _Seen(Exception):
    """The first failing case, by its id."""


class _Sighting(Hunt):
    """A search that stops at the first failing case, without shrinking or naming it."""

    def _found(self, one: CaseRun, deadline: float, known: bool) -> None:
        raise _Seen(one.probe.id)


def searched(batch: ModuleType, fault: str | None, seed: int, limits: Limits) -> Search:
    """Search a kernel for a failing case, in a process of its own like any target."""
    options = {"batch": str(batch.__file__)} | ({} if fault is None else {"fault": fault})
    target, start = Target(f"{batch.__name__}:{fault}", str(_ADAPTER), options), time.monotonic()
    with TargetProcess(target) as process:
        database = Database(FORMAT, target.name)
        versions = list(operator_versions())
        hunt = _Sighting(target, process, versions, tuple(FORMATS), seed, database)
        process.start()
        failing = None
        try:
            hunt.run(limits)
        except _Seen as seen:
            failing = str(seen)
    return Search(failing, hunt.done, time.monotonic() - start)
