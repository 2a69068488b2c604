"""Cases of a search: in batches, half of them near the passing cases with the largest errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ...cases.profiles.random_cases import random_stream
from ...cases.specs.family import drawn_operators
from ...cases.specs.wrapping import can_wrap
from ..judging.judgement import Verdict
from ..probes.probe import Probe, SpecProbe
from ..results.result import Result
from ..workers.process import BATCH_JOBS
from .drawing import altered, drawn

NEAR = 32
"""Number of passing cases near which cases are drawn."""

_STEERED = 0.5
_FRESH = 0.75  # share of new draws with many features at a time; the others have few, which some failures need


@dataclass
class Search:
    """Random cases of operator versions and types, until a limit is reached.

    seconds, cases
        Limits of time and of drawn cases, whichever comes first.
    wrap
        The surrounding graph of all cases; draws that do not fit into it count as cases.
    """

    versions: Sequence[tuple[str, int]]
    types: Sequence[str]
    seed: int
    seconds: float = float("inf")
    cases: float = float("inf")
    wrap: str = ""

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        ops, numbers = {op for op, _ in self.versions}, {version for _, version in self.versions}
        stream_ops = ops & set(drawn_operators())
        stream = random_stream(self.seed, stream_ops, numbers, self.types) if stream_ops else iter(())
        self._fresh = (spec for spec in stream if (spec.op, spec.version) in set(self.versions))
        self._deadline: float | None = None
        self._drawn, self._judged = 0, 0
        self._seen: set[str] = set()
        self._batch: dict[str, Any] = {}
        self._near: list[tuple[float, Any]] = []

    def next_cases(self, results: Sequence[Result]) -> Sequence[Probe]:
        """Return the next cases, after the results of all cases so far; an empty sequence at the end."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self.seconds
        for result in results[self._judged :]:
            if result.verdict is Verdict.PASS and result.judged and result.case in self._batch:
                self._near.append((result.worst or 0.0, self._batch[result.case]))
        self._judged = len(results)
        self._near = sorted(self._near, key=lambda pair: -pair[0])[:NEAR]
        probes: Sequence[SpecProbe] = []
        while not probes and self._drawn < self.cases and time.monotonic() < self._deadline:
            probes = list(self._new_probes(int(min(BATCH_JOBS, self.cases - self._drawn))))
        self._batch = {probe.id: probe.spec for probe in probes}
        return probes

    def _new_probes(self, count: int) -> Iterator[SpecProbe]:
        for spec in [self._next() for _ in range(count)]:
            self._drawn += 1
            if spec.id not in self._seen and (not self.wrap or can_wrap(spec, self.wrap)):
                self._seen.add(spec.id)
                yield SpecProbe(spec, fresh=True)

    def _next(self) -> Any:
        if self._near and self._random.random() < _STEERED:
            return altered(self._random, self._random.choice(self._near)[1], self.types)
        if self._random.random() < _FRESH and (spec := next(self._fresh, None)) is not None:
            return spec
        return drawn(self._random, self.versions, self.types)
