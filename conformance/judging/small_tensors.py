"""Detection of lost or misread small tensors, whose effect is within the bounds of a wider accuracy class.

A bias a hundredth as large as the other terms moves all numbers by no more than bfloat16's roundings do. The
computation without that bias distinguishes the two: it reproduces the target's outputs within the bounds of the
declared class, and no arithmetic that rounds coarsely comes so near to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...reference import Fault, Interpretations, faults_of, operator_for, resolve
from ...reference.faults.contexts import Run
from ...reference.faults.observation import Observation
from .runs import NodeRun

_TOPICS = frozenset({"bias", "initial-states", "peepholes"})
"""Clauses of tensors that may be small in comparison with the other terms of their sum."""

_LEAST_BITS = 64.0
"""Minimum evidence for a fault, against a class that holds the same numbers.

It is that of eight elements that are nearer to the fault's by a factor of 256. Conforming kernels of three coarse
classes had no such evidence in the 628 cases of `core` for float32 that they miss. A lost bias has thousands in a node
of eight units.
"""


def small_tensor_fault(runs: Sequence[NodeRun], accuracy: str, interpretations: Interpretations) -> Fault | None:
    """Return the fault of a small tensor that explains the outputs of all runs within an accuracy class, or None.

    If there are several, return the first of the table.
    """
    node, type_name = runs[0].node, resolve(runs[0].node, runs[0].inputs).format.name
    faults = faults_of(node.operator.known_as, node.since_version, type_name)
    possible = [fault for fault in faults if fault.structural and fault.topic.partition(".")[0] in _TOPICS]
    groups: dict[int, list[NodeRun]] = {}
    for run in runs:
        groups.setdefault(id(run.node), []).append(run)
    bits = np.zeros(len(possible))
    for group in groups.values():
        bits += list(_evidence(group, possible, accuracy, interpretations))
    return next((fault for fault, total in zip(possible, bits, strict=True) if total >= _LEAST_BITS), None)


def _evidence(
    runs: Sequence[NodeRun], faults: Iterable[Fault], accuracy: str, interpretations: Interpretations
) -> Iterator[float]:
    """Yield the evidence for each fault in the runs of one node; minus infinity where it does not explain them."""
    seen = tuple(Run(run.inputs, run.present) for run in runs)
    observation = Observation(operator_for(runs[0].node), runs[0].node, seen, accuracy)
    for fault in faults:
        fit = observation.fit((fault,), interpretations, accuracy)
        yield -np.inf if fit is None else fit.evidence
