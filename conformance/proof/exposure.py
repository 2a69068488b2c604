"""Parts of an operator that a case would show to be wrong: one by one, beyond doubt.

A part shows where the verdict would be a failure under the *kindest* interpretation: whichever of the meanings that the
case's open clauses allow is taken, some judged number is more than two radii away, so that no rounding on either side
brings it back. In a case that runs both directions each half is looked at by itself too: a fault that is there in one
direction only leaves the other half right.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...cases import Feed, Spec, Trial, build_case
from ...cases.specs.family import context_space
from ...reference import Interpretations, Node, Operator, operator_of
from ...reference.faults.part import Part
from ...reference.operators.asking import readings
from ...reference.operators.mishap import told_mishap
from ...reference.operators.operator import Resolved
from ...reference.recurrent.agreement import ratios
from ...reference.recurrent.expectation import ExpectationsBy

Arrays = Mapping[str, NDArray[Any]]

BEYOND = 2.0
"""Radii between what a faulty kernel returns and what is right, from which on its own roundings do not hide the fault:
two correct numbers are two radii apart at most."""

ACCURACY = "standard"
"""The accuracy class by which it is said whether a part shows: that of targets which declare none."""


class Shown(Struct, frozen=True):
    """The places in which a part shows in a case: the whole, and by direction (index 0 and 1 as W holds them) when that
    direction alone goes wrong."""

    whole: bool
    halves: tuple[bool, ...]


class NotMeasured(Exception):
    """The suite's own code broke off, or an operator's; the text says where, in one line."""


Run = tuple[Spec, Mapping[str, Shown]]
"""One run of a case's session: the case that has the run's sizes and nothing else before it than the run has, and the
parts that the run shows."""

Way = tuple[Interpretations, str]
"""A way in which a result may be right: by an interpretation, in an arithmetic."""


def runs_shown(spec: Spec) -> list[Run]:
    """The parts that the runs of a legal case show, its own one first.

    An earlier run is judged like a case's own, by the same interpretations, so a kernel that goes wrong in it is found.
    Its data are of the same kind, but not those of the case that stands for it here: that one names sizes and
    conditions.
    """
    runs: list[Run] = [(spec, parts_shown(spec))]
    space = context_space(spec.op)
    measured = spec if space is None else space.measured(spec)
    earlier = None if space is None else space.earlier(measured)
    if earlier is not None:
        trial = build_case(measured).trial
        runs.append((earlier, _parts_shown(spec.op, replace(trial, feeds=trial.feeds[:1]))))
    return runs


def parts_shown(spec: Spec) -> dict[str, Shown]:
    """The parts that the own run of a legal case shows, by id. What runs before it is right."""
    space = context_space(spec.op)
    return _parts_shown(spec.op, build_case(spec if space is None else space.measured(spec)).trial)


def _parts_shown(op: str, trial: Trial) -> dict[str, Shown]:
    operator, node, feed = operator_of(op), trial.node, trial.feeds[-1]
    with np.errstate(all="ignore"):
        kind = feed.inputs[node.operator.sequence].dtype
        right = {n: a.astype(kind) for n, a in operator.evaluate(node, feed.inputs).items()}
        arithmetics = operator.classes(ACCURACY, operator.resolve(node, feed.inputs).format.name).right
        ways = [(each, name) for each in readings([(node, feed.inputs)], trial.touched) for name in arithmetics]
        answers: dict[str, Arrays] = {"": right} if len(ways) > 1 else {}
        for part in operator.parts():
            got = answer_of(part, trial)
            if not all(got[name].tobytes() == right[name].tobytes() for name in right):
                answers[part.id] = got
        expected = operator.expecting_each(node, feed.inputs, list(answers.values()))
        failing = {
            id: partial(_failing, operator, node, feed, got, expects)
            for (id, got), expects in zip(answers.items(), expected, strict=True)
        }
        failing_of_right = failing.pop("", None)
        of_right = None if failing_of_right is None else [*map(failing_of_right, ways)]
        shown = {id: _shown(failing_by, ways, of_right) for id, failing_by in failing.items()}
    return {id: of_part for id, of_part in shown.items() if of_part.whole or any(of_part.halves)}


def answer_of(part: Part, trial: Trial) -> Arrays:
    """The outputs of the case's own run; what runs before it is there for what a session may keep."""
    memory: dict[str, Any] = {}
    for feed in trial.feeds:
        outputs = part.answer(trial.node, feed.inputs, memory)
        if not memory and feed is not trial.feeds[-1]:
            outputs = part.answer(trial.node, trial.feeds[-1].inputs, {})
            break
    return outputs


def _shown(
    failing_by: Callable[[Way], NDArray[np.bool_]], ways: Sequence[Way], of_right: list[NDArray[np.bool_]] | None
) -> Shown:
    whole, halves = True, None
    for number, way in enumerate(ways):
        failing = failing_by(way)
        own = failing.copy()
        if of_right is not None:
            # A half that is right is excused by an interpretation only where it is right by that interpretation too.
            own |= np.array([of_right[number][np.arange(len(own)) != d].any() for d in range(len(own))])
        halves = own if halves is None else halves & own
        whole = whole and bool(failing.any())
        if not whole and not halves.any():
            break
    assert halves is not None
    return Shown(whole, tuple(map(bool, halves)))


def _failing(
    operator: Operator, node: Node, feed: Feed, got: Arrays, expects: ExpectationsBy, way: Way
) -> NDArray[np.bool_]:
    """A mask of directions (D,) in which some judged number is wrong in this way."""
    interpretations, accuracy = way
    resolved = operator.resolve(node, feed.inputs, interpretations)
    failing = np.zeros(len(resolved.directions), bool)
    for expectation in expects(accuracy, interpretations):
        if expectation.conventional:
            continue
        wrong = ratios(expectation, got[expectation.output]) > BEYOND
        failing |= by_direction(wrong, expectation.output, resolved)
    return failing


def by_direction(wrong: NDArray[np.bool_], output: str, resolved: Resolved) -> NDArray[np.bool_]:
    """A mask of directions (D,) in which some element of an output is wrong."""
    axis = resolved.layout + (output == "Y")  # Y has the steps besides
    mask = np.zeros(len(resolved.directions), bool)
    mask |= np.moveaxis(wrong, axis, 0).reshape(len(mask), -1).any(axis=1)
    return mask


def measure(specs: Sequence[Spec], processes: int = 1) -> Generator[Sequence[Run], None, None]:
    """The parts that the runs of each case show, in order, by so many processes. Raises NotMeasured."""
    from ..workers.pool import spread  # and what shares work, for which a run has no use

    with contextlib.closing(spread(_runs_shown, specs, processes)) as results:
        for each in results:
            if isinstance(each, str):
                raise NotMeasured(each)
            yield each


def _runs_shown(spec: Spec) -> list[Run] | str:
    """Runs like :func:`runs_shown`'s; or what broke off, told where it did, since no traceback comes back from a
    process."""
    try:
        return runs_shown(spec)
    except Exception as error:  # whatever it is, it is ours or the operator's
        return f"case {spec.id}: {told_mishap(error)}"
