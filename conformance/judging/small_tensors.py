"""Small tensors that a target loses or misreads, which the bounds of a wider accuracy class hold.

A bias a hundredth as large as the other terms moves numbers by no more than bfloat16's roundings do, and all of them.
What tells the two apart is the computation without that bias: it gives what was returned to within the bounds of the
declared class, and no arithmetic that rounds coarsely comes so near to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...reference import Fault, Interpretations, faults_of, operator_for, resolve
from ...reference.faults.hypothesis import Run
from .runs import NodeRun

__all__ = ["small_tensor_fault"]

_TOPICS = frozenset({"bias", "initial-states", "peepholes"})
"""Clauses of the tensors that may be small beside all else that is added up."""

_LEAST_BITS = 64.0
"""Evidence of a fault for which a class that holds the same numbers is given up: eight elements that are nearer to the
fault's by a factor of 256. Conforming kernels of three coarse classes had none in the 628 cases of `core` for float32
that they miss, and a lost bias has thousands in a node of eight units."""


def small_tensor_fault(runs: Sequence[NodeRun], accuracy: str, interpretations: Interpretations) -> Fault | None:
    """Return the fault of a small tensor that gives the outputs of all runs within the bounds of an accuracy class, or
    None. Of several, the first of the table."""
    node, type_name = runs[0].node, resolve(runs[0].node, runs[0].inputs).format.name
    faults = faults_of(node.operator.known_as, node.since_version, type_name)
    possible = [fault for fault in faults if fault.structural and fault.topic.partition(".")[0] in _TOPICS]
    groups: dict[int, list[NodeRun]] = {}
    for run in runs:
        groups.setdefault(id(run.node), []).append(run)
    bits = np.zeros(len(possible))
    for group in groups.values():
        bits += list(_evidence(group, possible, accuracy, interpretations))
    return next((fault for fault, some in zip(possible, bits, strict=True) if some >= _LEAST_BITS), None)


def _evidence(
    runs: Sequence[NodeRun], faults: Iterable[Fault], accuracy: str, interpretations: Interpretations
) -> Iterator[float]:
    """Yield the evidence for each fault in the runs of one node; minus infinity where it does not explain them."""
    seen = tuple(Run(run.inputs, run.present) for run in runs)
    observation = operator_for(runs[0].node).observation(runs[0].node, seen, accuracy)
    for fault in faults:
        fit = observation.fit((fault,), interpretations, accuracy)
        yield -np.inf if fit is None else fit.evidence
