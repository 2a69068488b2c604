"""Random cases beyond the profiles, reproducible by seed, in batches until a limit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ...cases.portable import check_case
from ...cases.profiles.random_cases import random_stream
from ...cases.specs.wrapping import can_wrap
from ..probes.probe import Probe, SpecProbe
from ..workers.process import BATCH_JOBS


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
        ops, numbers = {op for op, _ in self.versions}, {version for _, version in self.versions}
        stream = random_stream(self.seed, ops, numbers, self.types)
        self._stream = (spec for spec in stream if (spec.op, spec.version) in self.versions)
        self._deadline: float | None = None
        self._drawn = 0

    def next_cases(self) -> Sequence[Probe]:
        """Return the next cases; an empty list at the end."""
        if self._deadline is None:
            self._deadline = time.monotonic() + self.seconds
        while self._drawn < self.cases and time.monotonic() < self._deadline:
            specs = list(islice(self._stream, int(min(BATCH_JOBS, self.cases - self._drawn))))
            self._drawn += len(specs)
            if probes := [SpecProbe(spec, fresh=True) for spec in specs if self._is_case(spec)]:
                return probes
            if not specs:  # the operators have no more cases
                break
        return []

    def _is_case(self, spec: Any) -> bool:
        """Return whether a draw is a legal case, in the surrounding graph; operators of others may draw another."""
        try:
            check_case(spec)
        except (ValueError, TypeError):
            return False
        return not self.wrap or can_wrap(spec, self.wrap)
