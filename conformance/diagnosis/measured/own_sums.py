"""A target's own sums: whether products of half types are added up in the half type, told by nodes of one step.

A class whose bounds hold that holds much else as well, so no failing case shows it. Three rows of one node do: one has
the argument as a single product, one as a large product and many that are too small to be added to it in the half type,
and one the large product alone. Where sums are wider the first two agree, whatever the functions are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from ....cases.specs.model import build_model
from ....reference import FORMATS, Fault, faults_of
from ...results.result import Result
from ...workers.process import Job, Outcome
from ..failing_case import DIAGNOSED
from .own_functions import one_step, showing_gates, shows_gates

__all__ = ["summing_faults"]

_CLASS = "fast"
"""The class in which half types accumulate in themselves."""

_TERMS = 1024
"""Products that are too small: of 16 sums side by side, the one with the large product still loses 64."""

_SEEN = 4.0
"""The number of units that the first two rows must be apart: each is rounded, and functions may be off between them."""


def summing_faults(run: Callable[[Iterable[Job]], Iterator[Outcome]], results: Sequence[Result]) -> list[Fault]:
    """The faults that consist in summing up in half types, where the target is seen to do so."""
    shown: dict[str, Fault] = {}
    for (op, type), version in _places(results).items():
        fault = next((d for d in faults_of(op, version, type) if d.within == _CLASS), None)
        if fault is None or fault.id in shown:
            continue
        spec = one_step(op, version, type, N=3, I=_TERMS + 1)
        nodes = list(showing_gates(spec, _rows(type)))
        jobs = [
            Job(f"{spec.id}~sums-{number}", build_model(spec, spec.node, inputs, spec.outputs), (inputs,))
            for number, inputs in enumerate(nodes)
        ]
        if any(_loses(outcome, type) for outcome in run(jobs)):
            shown[fault.id] = fault
    return list(shown.values())


def _places(results: Iterable[Result]) -> dict[tuple[str, str], int]:
    """Operators and types in which results fail, each with a version."""
    places: dict[tuple[str, str], int] = {}
    for r in results:
        if r.verdict in DIAGNOSED and FORMATS[r.type].dtype.itemsize == 2 and shows_gates(r.op, r.version):
            places.setdefault((r.op, r.type), r.version)
    return places


def _rows(type: str) -> np.ndarray:
    """The three rows of X; every number is one of the type, and so is the whole sum."""
    small = FORMATS[type].unit / 2
    rows = np.zeros((3, _TERMS + 1))
    rows[0, 0] = 1 + _TERMS * small
    rows[1:, 0] = 1.0
    rows[1, 1:] = small
    return rows


def _loses(outcome: Outcome, type: str) -> bool:
    """Tell whether small products were lost: what came back for them is nearer to what the large product alone
    gives."""
    returned = [array for lists in outcome.outputs for outputs in lists for array in outputs]
    got = returned[0] if outcome.status == "ran" and returned else None
    if got is None or got.shape != (1, 1, 3, 1) or not np.isfinite(got.astype(np.float64)).all():
        return False
    whole, summed, large = got.astype(np.float64).ravel()
    apart = _SEEN * FORMATS[type].unit * abs(whole)
    return bool(abs(summed - whole) > apart and abs(large - whole) > apart and abs(large - summed) < abs(large - whole))
