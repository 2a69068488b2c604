"""Verdict on one case on one target, with the reason.

A verdict accuses a runtime, so it rests only on proofs: on radii that every conforming implementation meets, on every
interpretation that an open clause allows, and never on a convention.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import Trial
from ...reference import (
    ACCURACY_CLASSES,
    AccuracyClass,
    Expectation,
    Interpretations,
    operator_for,
    resolve,
)
from ...reference.operators.asking import readings
from ...reference.operators.operator import Classes, Operator
from ..workers.process import Outcome
from .attempt import Attempt, answered_by, attempt_at, hold
from .judgement import Judgement, Verdict, would_allow
from .rounding import has_its_signature, looks_like_flushing, looks_like_rounding
from .runs import NodeRun, ReadRuns, of_node, read, with_expectations
from .small_tensors import small_tensor_fault
from .special_values import with_special_values


def judge(
    trials: Sequence[Trial],
    outcomes: Sequence[Outcome],
    accuracy: str = "standard",
    *,
    answers: bool = True,
) -> Judgement:
    """Return the verdict on a case.

    trials, outcomes
        The case's own trial, and its all-outputs run if it has one; and the target's outcome of each.
    accuracy
        Name of the accuracy class by which the target is judged.
    answers
        Whether to find, for a pass, the interpretations that it proves, and whether the strict class holds. If not, its
        interpretations are some by which it passes.

    Raise IllegalNode if the document does not allow the node with its inputs. A trial with a violation does not raise:
    its node must be refused, and its second trial is the same node without the violation.
    """
    return judge_each(trials, [outcomes], accuracy, answers=answers)[0]


def judge_each(
    trials: Sequence[Trial],
    several: Sequence[Sequence[Outcome]],
    accuracy: str = "standard",
    *,
    wider: bool = True,
    answers: bool = True,
) -> list[Judgement]:
    """Return the verdicts on a case of several targets, or of several runs of one: see :func:`judge`.

    The expected outputs are computed together, which costs much less.

    several
        For each target or run, the outcomes of the trials.
    wider
        Whether to try wider classes to distinguish ``inaccurate`` from ``wrong``; if not, all are ``wrong``.
    """
    read_runs = [read(trials, outcomes) for outcomes in several]
    runs = iter(with_expectations([run for runs in read_runs if isinstance(runs, ReadRuns) for run in runs.runs]))
    return [
        _by_operators([*islice(runs, len(target.runs))], target.flags, accuracy, wider, answers)
        if isinstance(target, ReadRuns)
        else target
        for target in read_runs
    ]


def _by_operators(
    runs: Sequence[NodeRun], flags: Sequence[str], accuracy: str, wider: bool, answers: bool
) -> Judgement:
    """Return the verdict on numbers of all nodes. Nodes of one operator must follow the same interpretations."""
    groups: dict[Operator, list[NodeRun]] = {}
    for run in runs:
        groups.setdefault(operator_for(run.node), []).append(run)
    judgements = [_judged(group, flags, accuracy, wider, answers) for group in groups.values()]
    return judgements[0] if len(judgements) == 1 else _together(judgements)


_ORDER = tuple(Verdict)


def _together(judgements: Sequence[Judgement]) -> Judgement:
    """Return the verdict on all nodes of a graph: the worst one, with the counts of all."""
    worst = min(judgements, key=lambda one: _ORDER.index(one.verdict))
    interpretations = [(one.interpretations or {}).items() for one in judgements]
    return replace(
        worst,
        worst=max(one.worst for one in judgements),
        flags=tuple(dict.fromkeys(chain.from_iterable(one.flags for one in judgements))),
        interpretations=dict(chain.from_iterable(reversed(interpretations))),
        judged=sum(one.judged for one in judgements),
        elements=sum(one.elements for one in judgements),
        error_sums=tuple(map(sum, zip(*(one.error_sums for one in judgements), strict=True))),
    )


def _judged(runs: list[NodeRun], flags: Sequence[str], accuracy: str, wider: bool, answers: bool) -> Judgement:
    """Return the verdict on numbers of nodes of one operator."""
    trials = list({id(run.trial): run.trial for run in runs}.values())
    open_questions = frozenset().union(*(trial.open_questions for trial in trials))
    classes = _classes(trials[0], accuracy, wider)
    judgement = _by_values(runs, open_questions, classes, answers)
    declared = ACCURACY_CLASSES.get(accuracy)  # None: an operator's own arithmetic
    if declared is not None and not declared.judges:
        return _graded(judgement, flags)
    if answers and trials[0].graded and (judgement.verdict is Verdict.PASS or judgement.reason == "wide"):
        interpretations = Interpretations(**dict(judgement.interpretations or {}))
        judgement = replace(judgement, strict=hold(runs, "strict", interpretations))
    if judgement.verdict in (Verdict.WRONG, Verdict.INACCURATE) and "nondeterministic" in flags:
        alone = [_by_values([run], open_questions, Classes(classes.right), answers=False).verdict for run in runs]
        if any(v not in (Verdict.WRONG, Verdict.INACCURATE) for v in alone):
            message = f"repeated runs differ; one of them: {judgement.message}"
            judgement = replace(judgement, verdict=Verdict.UNSTABLE, message=message)
    answered = judgement.interpretations if judgement.verdict is Verdict.PASS else None
    remarks = dict.fromkeys(r for trial in trials for r in operator_for(trial.node).remarks(answered or {}))
    if flags or remarks:
        judgement = replace(judgement, flags=(*flags, *remarks, *judgement.flags))
    return with_special_values(judgement, runs, open_questions)


def _graded(judgement: Judgement, flags: Sequence[str]) -> Judgement:
    """Return the result of a comparison that only grades the target: it has ``worst``, and no pass or failure."""
    message = f"graded only; {judgement.message or 'within the bounds of standard'}"
    verdict = Verdict.INCONCLUSIVE
    return replace(judgement, verdict=verdict, reason="graded", message=message, accuracy=None, flags=tuple(flags))


def _classes(trial: Trial, accuracy: str, wider: bool) -> Classes:
    """Return the arithmetics by which a target is judged."""
    classes = operator_for(trial.node).classes(accuracy, trial.type)
    return classes if wider else Classes(classes.right)


def _by_values(runs: list[NodeRun], open_questions: frozenset[str], classes: Classes, answers: bool) -> Judgement:
    """Return the verdict by numbers.

    In the right arithmetics, one interpretation is enough if it holds for all runs of the case. Then wider classes
    distinguish inaccurate from wrong.
    """
    best: Attempt | None = None
    nodes = [(run.node, run.inputs) for run in runs]
    for name in (*classes.right, *classes.wider):
        for interpretations in readings(nodes, open_questions):
            if name not in classes.right and not hold(runs, name, interpretations):
                continue  # the error by this class is not reported
            attempt = attempt_at(runs, name, interpretations, open_questions)
            if attempt.holds and name in classes.right:
                if answers and open_questions:
                    attempt = replace(attempt, interpretations=answered_by(runs, name, interpretations, open_questions))
                return _accepted(attempt, name, classes, best)
            if attempt.holds and not (attempt.vague and classes.telling):
                assert best is not None
                if attempt.of_levels and attempt.interpretations != best.interpretations:
                    # Report the error by the interpretation that is nearest to the numbers.
                    best = attempt_at(runs, classes.right[0], interpretations, open_questions)
                wider = operator_for(runs[0].node).roundings(name)
                compared = list(_beside(runs, classes.right[0], name, interpretations))
                if not _rounds(compared, wider, interpretations):
                    if wider is not None and wider.flushes:
                        break  # it is hardly wider than the declared one
                    # Even wider classes prove less.
                    return _refuted(best, Verdict.WRONG)
                if wider is not None and wider.operands and small_tensor_fault(runs, classes.right[0], interpretations):
                    return _refuted(best, Verdict.WRONG)
                return _inaccurate(attempt, name, best, _signed(compared, wider))
            if name in classes.right and (best is None or attempt.failing < best.failing):
                best = attempt
    assert best is not None
    return _refuted(best, Verdict.WRONG)


_Beside = tuple[NodeRun, list[tuple[Expectation, Expectation]]]
"""A run, and for each output its expectations by a narrow class and by a wider one."""


def _beside(runs: list[NodeRun], declared: str, name: str, interpretations: Interpretations) -> Iterator[_Beside]:
    """Yield each run with its expected outputs by the declared class and by a wider one."""
    for run in runs:
        narrow, wide = (run.expected(accuracy, interpretations) for accuracy in (declared, name))
        yield run, list(zip(narrow, wide, strict=True))


def _rounds(compared: Iterable[_Beside], wider: AccuracyClass | None, interpretations: Interpretations) -> bool:
    """Return whether values that only a wider class holds look like its roundings.

    A structural fault is never inaccurate.
    """
    if wider is not None and wider.flushes:
        return all(
            looks_like_flushing(pairs, run.present, partial(_flushed, run, interpretations)) for run, pairs in compared
        )
    return all(looks_like_rounding(pairs, run.present, wider) for run, pairs in compared)


def _signed(compared: Iterable[_Beside], wider: AccuracyClass | None) -> bool:
    """Return whether at least one run shows that its errors are a wider class's roundings."""
    return any(has_its_signature(pairs, run.present, wider) for run, pairs in compared)


def _flushed(run: NodeRun, interpretations: Interpretations) -> dict[str, NDArray[Any]]:
    """Return the change of each output if subnormal numbers of the inputs become zeros."""
    operator = operator_for(run.node)
    form = resolve(run.node, run.inputs).format

    def zeroed(array: NDArray[Any]) -> NDArray[Any]:
        vanishing = np.abs(array.astype(np.float64)) < form.least_normal
        return np.where(vanishing, np.zeros_like(array), array) if array.dtype == form.dtype else array

    inputs = {name: zeroed(array) for name, array in run.inputs.items()}
    with np.errstate(all="ignore"):
        right, other = (operator.evaluate(run.node, values, interpretations) for values in (run.inputs, inputs))
    return {name: other[name] - array for name, array in right.items()}


def _inaccurate(attempt: Attempt, name: str, best: Attempt, signed: bool) -> Judgement:
    """Return the verdict that only a wider class holds the values.

    It names the class if the errors are its roundings.
    """
    judgement = _refuted(best, Verdict.INACCURATE)
    if not signed:
        note = f"{would_allow(name)}, but the values are not rounded like it"
        return replace(judgement, message=f"{judgement.message}; {note}")
    # A radius that exceeds the signal everywhere agrees with any value.
    note = "right by" if attempt.telling or not attempt.vague else "cannot be told from"
    return replace(judgement, accuracy=name, message=f"{judgement.message}; {note} the wider class {name}")


_FEWEST_TELLING = 0.1
"""Minimum share of elements with a bound that is small in comparison with the signal, for a pass.

An error in all outputs shows in any of them; an error in a direction, the last steps or a block of units concerns at
least about a tenth.
"""


def _accepted(attempt: Attempt, name: str, classes: Classes, best: Attempt | None) -> Judgement:
    verdict, reason, message = Verdict.PASS, None, ""
    if attempt.elements and not attempt.judged:
        verdict, reason, message = Verdict.INCONCLUSIVE, "inconclusive", "no element could be judged"
    elif attempt.telling < _FEWEST_TELLING * (attempt.telling + attempt.vague):
        share = attempt.telling / (attempt.telling + attempt.vague)
        verdict, reason = Verdict.INCONCLUSIVE, "wide"
        message = f"bounds of class {name} are within 1 % of the signal for {share:.0%} of the elements only"
    elif name != classes.right[0] and best is not None and attempt.judged < best.judged:
        # If only a second arithmetic holds, and only by a bound that proves nothing, the result is neither right nor
        # wrong.
        verdict, reason, message = Verdict.INCONCLUSIVE, "inconclusive", f"cannot be told from {name} arithmetic"
    judgement = Judgement(
        verdict,
        reason,
        attempt.measured or None,
        message=message,
        worst=attempt.worst.worst if attempt.worst is not None else 0.0,
        interpretations=attempt.interpretations,
        accuracy=name,
        judged=attempt.judged,
        elements=attempt.elements,
        error_sums=attempt.sums,
    )
    if attempt.unconventional is None:
        return judgement
    if verdict is Verdict.INCONCLUSIVE:  # the broken convention is not the reason that nothing is claimed
        return replace(judgement, flags=("unconventional",))
    first = attempt.unconventional.first
    judgement = replace(
        judgement,
        reason="padding",
        where=first.place.where,
        message=f"{first}: only a convention says so",
        clause=first.expectation.clause,
        flags=("unconventional",),
    )
    return of_node(judgement, attempt.unconventional.run.name)


def _refuted(attempt: Attempt, verdict: Verdict) -> Judgement:
    assert attempt.worst is not None
    assert attempt.outside is not None
    first = attempt.outside.first
    judgement = Judgement(
        verdict,
        "nonfinite" if attempt.worst.nonfinite else "value",
        {**first.place.where, **attempt.measured},
        str(first),
        attempt.worst.worst,
        first.expectation.clause,
        interpretations=attempt.interpretations,
        judged=attempt.judged,
        elements=attempt.elements,
        error_sums=attempt.sums,
    )
    return of_node(judgement, attempt.outside.run.name)
