"""`onnxspec fuzz` on a kernel of the zoo, until the first case that fails."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from onnxspec.cases import operator_versions
from onnxspec.conformance.fuzzing.database import FORMAT, Database
from onnxspec.conformance.fuzzing.hunt import Hunt, Limits
from onnxspec.conformance.probes.stream import Tried
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.process import TargetProcess
from onnxspec.reference import FORMATS

_ADAPTER = Path(__file__).with_name("adapter.py")


@dataclass(frozen=True)
class Search:
    """What a search came to.

    failing
        The case that failed, by its id; None where there was none.
    cases, seconds
        How many cases it took, and how long.
    """

    failing: str | None
    cases: int
    seconds: float


class _Seen(Exception):
    """The first failing case, by its id."""


class _Sighting(Hunt):
    """A search that is content with one failing case: neither is it made small nor named."""

    def _found(self, one: Tried, deadline: float, known: bool) -> None:
        raise _Seen(one.probe.id)


def searched(batch: ModuleType, fault: str | None, seed: int, limits: Limits) -> Search:
    """Search a kernel, in a process of its own as any target has, for a failing case."""
    options = {"batch": str(batch.__file__)} | ({} if fault is None else {"fault": fault})
    target, start = Target(f"{batch.__name__}:{fault}", str(_ADAPTER), options), time.monotonic()
    with TargetProcess(target) as process:
        database = Database(FORMAT, target.name)
        versions = list(operator_versions())
        hunt = _Sighting(target, process, versions, tuple(FORMATS), seed, False, database)
        process.start()
        failing = None
        try:
            hunt.run(limits)
        except _Seen as seen:
            failing = str(seen)
    return Search(failing, hunt.done, time.monotonic() - start)
