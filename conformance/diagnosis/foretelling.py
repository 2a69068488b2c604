"""Names that foretell: which fault explains a smallest case, and what the target returns in cases that it never saw.

A small case is explained by more than one fault. So whatever explains it has to say what the target will return in
fresh cases of the same kind, with other numbers and larger sizes: only what is right there, within the bounds of every
number, has a claim to be the cause.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...cases import CaseSpec
from ...reference import Fault, faults_of
from ...reference.faults.scope import scoped_of
from ..judging.judgement import FAILING
from ..probes.probe import SpecProbe
from ..probes.stream import Tried

__all__ = ["FRESH", "Foretold", "foretold", "fresh_specs"]

FRESH = 10
"""Fresh cases that a name must foretell."""

_ENOUGH = 5  # of them must fail: of a case that passes a fault says little
_LARGER = {"T": 3, "N": 2, "I": 3, "H": 5}


@dataclass(frozen=True)
class Foretold:
    """The fault that foretold what the target returns, the simplest of them; and how many others did so too."""

    fault: Fault
    others: int


def fresh_specs(spec: CaseSpec) -> list[CaseSpec]:
    """Cases of the same kind as one, with other numbers, every second of them larger."""
    fresh = []
    for seed in range(1, FRESH + 1):
        sizes: dict[str, Any] = {"seed": spec.seed + seed, "weights_seed": spec.weights_seed + seed}
        if seed % 2:
            # Nothing at all, and one step where that is all there may be, are what the case is about.
            sizes |= {name: max(n, least) for name, least in _LARGER.items() if (n := getattr(spec, name)) > 0}
        fresh.append(replace(spec, **sizes))
    return fresh


def foretold(
    one: Tried,
    run: Callable[[Sequence[SpecProbe]], Iterator[Tried]],
    explains: Callable[[Fault, Tried], bool],
    hurry: Callable[[], bool] = lambda: False,
) -> Foretold | None:
    """The fault that explains a case and foretells fresh ones; None where there is none, or not enough of them fail.

    run
        What the target makes of some cases.
    explains
        Whether a fault explains what it returned.
    hurry
        Whether time is up; faults that are made in one place only come last.
    """
    assert isinstance(one.probe, SpecProbe)
    spec = one.probe.spec
    if not isinstance(spec, CaseSpec) or spec.illegal:
        return None
    known = [d for d in faults_of(spec.op, spec.version, spec.type) if not (d.accepts or d.drifts)]
    fresh: list[Tried] | None = None
    for candidates in (iter(known), (d for d in scoped_of(iter(known)) if spec.op in d.operators)):
        fitting = []
        for fault in candidates:
            if hurry():
                return None
            if explains(fault, one):
                fitting.append(fault)
        if fitting and fresh is None:
            answers = run([SpecProbe(s, fresh=True) for s in fresh_specs(spec)])
            fresh = [answer for answer in answers if answer.judgement.verdict in FAILING]
        if fresh is not None and len(fresh) < _ENOUGH:
            return None
        right = [d for d in fitting if all(explains(d, answer) for answer in fresh or ())]
        if right:
            return Foretold(right[0], len(right) - 1)
    return None
