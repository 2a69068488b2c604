"""Evidence from a whole run: how a target's other results affect the reading of a failing one."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

from ...reference import Fault, UnknownOperator, operator_of
from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..results.result import Result
from .conditions import would_show
from .failing_case import DIAGNOSED

_COUNTEREXAMPLES = 6
"""Maximum number of passing cases in which a fault is tried: the smallest that exercise its clause."""

_TELLING = 2
"""Minimum number of right results that follow an interpretation: a small fault may make a single one right."""


@dataclass(frozen=True)
class TargetEvidence:
    """Evidence from the results of one target.

    accuracy
        The accuracy class by which it is judged.
    """

    accuracy: str
    results: Sequence[Result] = ()
    probes: Mapping[str, Probe] = field(default_factory=dict)

    @cached_property
    def followed(self) -> dict[str, dict[str, str]]:
        """Interpretations that most of the target's right results follow, by operator."""
        votes: dict[str, Counter[tuple[str, str]]] = {}
        for result in self.results:
            if result.verdict is Verdict.PASS:
                votes.setdefault(result.op, Counter()).update(result.interpretations.items())
        return {
            op: dict(reversed([option for option, count in options.most_common() if count >= _TELLING]))
            for op, options in votes.items()
        }

    @cached_property
    def arithmetics(self) -> dict[str, tuple[str, ...]]:
        """Wider accuracy classes that results show, by type. Arithmetic does not change from case to case, so at least
        as many results must need a class as pass without it. If no result of a type is right, the last of its wider
        classes is assumed."""
        classes: dict[str, Counter[str]] = defaultdict(Counter)
        right: Counter[str] = Counter()
        wider: dict[str, tuple[str, ...]] = {}
        for result in self.results:
            right[result.type] += result.verdict is Verdict.PASS and result.judged > 0
            if result.verdict is Verdict.INACCURATE and result.accuracy:
                classes[result.type][result.accuracy] += 1
            if result.verdict in DIAGNOSED and result.type not in wider:
                with suppress(UnknownOperator):  # a node of a directory without a document
                    classes_of_type = operator_of(result.op, result.domain).classes(self.accuracy, result.type)
                    wider[result.type] = classes_of_type.wider
        needed = {type: seen for type, seen in classes.items() if seen.total() >= right[type]}
        return {
            type: tuple(name for name, _ in needed[type].most_common(2)) if type in needed else others[-1:]
            for type, others in wider.items()
            if type in needed or not right[type]
        }

    @cached_property
    def passing(self) -> dict[str, list[Probe]]:
        """Passing cases of each operator, the smallest first."""
        passing: defaultdict[str, list[Probe]] = defaultdict(list)
        for result in self.results:
            if result.verdict is Verdict.PASS and "unconventional" not in result.flags and result.case in self.probes:
                passing[result.op].append(self.probes[result.case])
        return {op: sorted(probes, key=lambda probe: (probe.size, probe.id)) for op, probes in passing.items()}

    def counterexamples(self, fault: Fault, op: str, type: str = "") -> int:
        """Return the number of passing cases that would show the fault: among the smallest of its clause, or for an
        arithmetic fault among all.

        type
            The only type of the cases, for an arithmetic fault: a kernel has its arithmetic in every case of a type.
        """
        types = {type} if type and fault.within else fault.types
        if (fault, op, type) not in self._counts:
            able = (p for p in self.passing.get(op, ()) if p.type in types and fault.applies(op, p.version))
            exercising: Iterable[Probe] = (p for p in able if fault.within or fault.clause(op) in p.clauses)
            if not fault.within:
                exercising = itertools.islice(exercising, _COUNTEREXAMPLES)
            self._counts[fault, op, type] = sum(would_show(fault, probe) for probe in exercising)
        return self._counts[fault, op, type]

    @cached_property
    def _counts(self) -> dict[tuple[Fault, str, str], int]:
        return {}
