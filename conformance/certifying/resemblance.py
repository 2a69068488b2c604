"""Resemblance of a target's numbers to somebody else's, bit for bit: a cheap sign that another provider computed them,
or nobody did. It proves nothing: a target may be built on onnxruntime, and may say so."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Trial
from ...reference import evaluate, evaluate_in_order
from ..judging.judgement import Verdict
from ..judging.runs import view_of
from ..probes.probe import Prepared, Probe
from ..targets.target import parse_target
from ..workers.job import Outcome, TargetUnavailable
from ..workers.process import TargetProcess
from .derivation import Derivation

_SAMPLE = 32
"""Cases that are compared: passing ones of float types with numbers enough."""

_LEAST = 24
"""Numbers of a case. Two right implementations agree in a rounding to nearest more often than not where the last
operation alone rounds; over so many, behind several functions each, they part somewhere."""

_SHARE = 0.9

_TYPES = frozenset({"float32", "float64", "float16", "bfloat16"})


def resemblances(derivation: Derivation) -> list[str]:
    """Return a line for each implementation whose bits a target returns, unless that is the target's own."""
    description = derivation.entry["description"]
    own = description.get("runtime") == "onnxruntime" and description.get("provider") in ("", "CPUExecutionProvider")
    chosen = list(_chosen(derivation))
    if len(chosen) < 4:
        return []
    lines = []
    others = {"our own reference": _by_reference(chosen), **({} if own else {"onnxruntime's CPU": _by_runtime(chosen)})}
    for name, same in others.items():
        if same >= _SHARE * len(chosen):
            lines.append(
                f"in {same} of {len(chosen)} cases the outputs are those of {name}, bit for bit: did the target "
                "compute them itself?"
            )
    return lines


def _chosen(derivation: Derivation) -> Iterator[tuple[Probe, Prepared, Outcome]]:
    """Return a sample of passing cases, spread over all."""
    fitting = [
        result.case
        for result in derivation.results
        if result.verdict is Verdict.PASS and result.type in _TYPES and result.elements >= _LEAST
    ]
    step = max(1, len(fitting) // _SAMPLE)
    for case in fitting[::step][:_SAMPLE]:
        probe = derivation.probes[case]
        prepared = probe.prepare()
        outcome = derivation.outcomes[case][0]
        if prepared.trials and outcome.status == "ran":
            yield probe, prepared, outcome


def _by_runtime(chosen: Sequence[tuple[Probe, Prepared, Outcome]]) -> int:
    same = 0
    with suppress(TargetUnavailable), TargetProcess(parse_target("onnxruntime"), repeats=1) as process:
        jobs = [prepared.jobs[0] for _, prepared, _ in chosen]
        for (_, _, outcome), other in zip(chosen, process.run(jobs), strict=True):
            same += other.status == "ran" and _same(outcome, other.outputs)
    return same


def _by_reference(chosen: Sequence[tuple[Probe, Prepared, Outcome]]) -> int:
    same = 0
    for _, prepared, outcome in chosen:
        trial, outcome = view_of(prepared.trials, (outcome,), None).own
        with suppress(KeyError, ValueError, NotImplementedError), np.errstate(all="ignore"):
            same += any(_same(outcome, _by(way, trial)) for way in (evaluate, evaluate_in_order))
    return same


def _by(way: Callable[..., Mapping[str, NDArray[Any]]], trial: Trial) -> tuple[Any, ...]:
    lists = []
    for feed in trial.feeds:
        values = way(trial.node, feed.inputs)
        kind = feed.inputs[trial.node.operator.sequence].dtype
        lists.append(((*(np.asarray(values[name]).astype(kind) for name in trial.node.outputs),),))
    return tuple(lists)


def _same(outcome: Outcome, others: Sequence[Sequence[Sequence[object]]]) -> bool:
    """Tell whether the first of the outputs of every run are those, bit for bit."""
    pairs = [(lists[0], other[0]) for lists, other in zip(outcome.outputs, others, strict=True)]
    return all(len(one) == len(two) and all(map(_equal, one, two)) for one, two in pairs)


def _equal(one: object, other: object) -> bool:
    both = isinstance(one, np.ndarray) and isinstance(other, np.ndarray)
    return both and one.dtype == other.dtype and one.tobytes() == other.tobytes()  # type: ignore[attr-defined]
