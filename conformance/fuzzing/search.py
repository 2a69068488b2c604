"""Random cases beyond the profiles, reproducible by seed: in batches, half of them near the passing cases with the
largest errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from random import Random
from typing import Any

from ...cases import Spec, profile
from ...cases.portable import CaseTextError, check_case
from ...cases.profiles.random_cases import random_stream
from ...cases.specs.family import drawn_operators, family_of
from ...cases.specs.wrapping import can_wrap
from ...reference import operator_version
from ..judging.judgement import Verdict
from ..probes.probe import Probe, SpecProbe
from ..results.result import Result
from ..workers.process import BATCH_JOBS

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


_TRIES = 50
_DRAWS = 500  # most draws are legal cases: if so many are not, there is a bug
_CHANGED = 3  # maximum number of fields that a crossover changes
_CROSSED = 0.75  # share of draws that start from a case of the profile, with its rare values and few features


def drawn(random: Random, versions: Sequence[tuple[str, int]], types: Sequence[str]) -> Any:
    """Return a legal case of one of these operator versions, in one of these types.

    Raise the error of the last draw if no draw gives a legal case.
    """
    for remaining in reversed(range(_DRAWS)):
        op, version = random.choice(versions)
        usable = [type_name for type_name in operator_version(op, version).types if type_name in types]
        if not usable:
            continue
        spec = _of_version(random, op, version, random.choice(usable))
        if spec is None:
            continue
        try:
            check_case(spec)
        except (ValueError, TypeError):  # includes CaseTextError
            if not remaining:
                raise
        else:
            return spec
    raise CaseTextError(f"no case was drawn in {_DRAWS} attempts")


def _of_version(random: Random, op: str, version: int, kind: str) -> Any | None:
    """Return a random case, or a case of the profile with some fields of a random one; None where none can be made."""
    family = family_of(op)
    spec: Any = family.random_case(op, f"fuzz/{random.getrandbits(64)}", version, kind)
    if spec is None or random.random() >= _CROSSED:
        return spec
    cases = [case for case in profile("core", op, version) if not case.illegal and case.type == spec.type]
    if not cases:
        return spec
    return _crossed(random, random.choice(cases), spec)


def _crossed(random: Random, spec: Any, donor: Any) -> Any | None:
    """Return a case with up to three fields, and the seed, of another one; None where none can be made."""
    family = family_of(spec.op)
    names = sorted(field.name for field in fields(donor) if field.name not in ("op", "version"))
    crossed = family.crossed(spec, donor, random.sample(names, min(_CHANGED, len(names))))
    return family.crossed(crossed, donor, ["seed"]) if crossed is not None and hasattr(donor, "seed") else crossed


def _legal(spec: Spec) -> bool:
    try:
        check_case(spec)
    except (ValueError, TypeError):
        return False
    return True


def altered(random: Random, spec: Any, types: Sequence[str]) -> Any:
    """Return a case that differs from ``spec`` in a few fields. ``spec`` is one whose errors nearly reach the bound."""
    for _ in range(_TRIES):
        near = _crossed(random, spec, drawn(random, [(spec.op, spec.version)], types))
        if near is not None and _legal(near):
            return near
    return drawn(random, [(spec.op, spec.version)], types)
