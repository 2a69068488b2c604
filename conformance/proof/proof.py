"""Mutation test of the suite: a profile must catch every fault, and pass every conforming implementation.

Faults and conforming variants run like targets and are judged by the same comparison.
"""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from numpy.typing import NDArray

from ...cases import Case, Spec, Trial, build_case, clauses_exercised, features_of
from ...reference import FAULTS, LOSES_NAN, Clause, Fault, clauses_of, faults_of, operator_for, operator_names
from ...reference.errors import format_internal_error
from ..judging.judgement import FAILING, Judgement
from ..judging.verdict import judge_each
from ..probes.probe import SpecProbe
from ..results.grades import BIAS_ERRORS, BIAS_UNITS, biases
from ..results.result import result_of
from ..workers.pool import spread
from ..workers.process import Outcome
from .staged import Stage, staged_outcome

ENOUGH = 4.0
"""Kill margin at which a case catches a fault well: eight radii. Two conforming numbers differ by at most two radii."""

FINE = 1.15
"""Ratio of error to radius at which a case catches a fault of about one radius well."""

FEWEST = 2
"""Minimum number of cases that must catch each fault, so that none depends on a single case."""

_TOGETHER = 24  # implementations: the expectations for so many cost hardly more than for one

_PIECE = 12  # cases that a process takes at a time


@dataclass(frozen=True)
class Kill:
    """One case that catches one fault.

    margin
        max |fault - reference| / (2 radius); infinity where no number can be compared.
    """

    fault: str
    case: str
    op: str
    type: str
    margin: float


@dataclass(frozen=True)
class Drift:
    """The verdict on one accuracy case, of a fault that only the mean over many cases shows."""

    fault: str
    spec: Spec
    judgement: Judgement


@dataclass(frozen=True)
class FalsePositive:
    """A conforming implementation that fails a case: a bug of the suite."""

    style: str
    case: str
    message: str


@dataclass(frozen=True)
class Row:
    """The kills of a fault in one operator and type.

    ``cases`` is their number; ``well`` of them have a margin of at least ENOUGH. ``best`` is the largest margin, ``by``
    its case.
    """

    fault: str
    clause: str
    op: str
    type: str
    cases: int
    well: int
    best: float
    by: str

    @property
    def proved(self) -> bool:
        """Whether enough cases catch the fault well."""
        return self.well >= FEWEST


@dataclass(frozen=True)
class Proof:
    """Results of the mutation test of a profile.

    without_fault
        Clauses that an implementation may violate and no fault violates.
    without_case
        Clauses that no case exercises.
    internal_errors
        Exceptions in the code of onnxspec or of an operator, a line each.
    """

    rows: tuple[Row, ...]
    false_positives: tuple[FalsePositive, ...]
    without_fault: tuple[Clause, ...]
    without_case: tuple[Clause, ...]
    internal_errors: tuple[str, ...] = ()

    @property
    def surviving(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if not row.proved)


def prove(
    specs: Sequence[Spec],
    faults: Iterable[str] | None = None,
    styles: Iterable[str] | None = None,
    *,
    processes: int = 1,
) -> Generator[int | Proof, None, None]:
    """Run cases against faults and conforming variants. Yield the number of cases done so far, and finally the proof.

    faults, styles
        Ids and names. Default: all styles, and the faults that suit the cases: faults of levels in quantized cases, all
        other faults in other cases.
    """
    named = None if faults is None else tuple(faults)
    conforming_styles = None if styles is None else tuple(styles)
    pieces = [specs[k : k + _PIECE] for k in range(0, len(specs), _PIECE)]
    shown: list[_Shown] = []
    done = 0
    with contextlib.closing(
        spread(partial(_try, faults=named, styles=conforming_styles), pieces, processes)
    ) as results:
        for piece, of_piece in zip(pieces, results, strict=True):
            shown += of_piece
            done += len(piece)
            yield done
    kills = [one for one in shown if isinstance(one, Kill)]
    kills += _biased(one for one in shown if isinstance(one, Drift))
    proof = _proof(list(filter(_tells, specs)), named, kills)
    yield replace(
        proof,
        false_positives=tuple(one for one in shown if isinstance(one, FalsePositive)),
        internal_errors=tuple(dict.fromkeys(one for one in shown if isinstance(one, str))),
    )


def _tells(spec: Spec) -> bool:
    """Return whether the features of a case can be found; if not, `_try` has recorded the exception."""
    try:
        features_of(spec)
    except Exception:  # any exception is a bug of the operator
        return False
    return True


_Shown = Kill | Drift | FalsePositive | str
"""Result of a case against a fault or a conforming variant; a text is an internal error."""


def _try(specs: Sequence[Spec], faults: Sequence[str] | None, styles: Sequence[str] | None) -> list[_Shown]:
    shown: list[_Shown] = []
    for spec in specs:
        try:
            shown += list(_try_one(spec, faults, styles))
        except Exception as error:  # any exception is a bug of onnxspec or the operator, and fails only this case
            shown.append(f"case {spec.id}: {format_internal_error(error)}")
    return shown


def _try_one(spec: Spec, faults: Sequence[str] | None, styles: Sequence[str] | None) -> Iterator[_Shown]:
    case = build_case(spec)
    trials = case.trials
    stages = [Stage(trial) for trial in trials]
    right = [_content(stage.outcome()) for stage in stages]
    tried = []
    for fault in faults_of(spec.op, spec.version):
        # Rounding to levels may hide a fault of numbers.
        selected = (fault.layer == "levels") == _quantized(spec) if faults is None else fault.id in faults
        if not selected or not _can_show(fault, spec, case.trial):
            continue
        try:
            outcomes = [stage.outcome(fault) for stage in stages]
        except Exception as error:  # it fails only this fault in this case
            yield f"fault {fault.id} in {spec.id}: {format_internal_error(error)}"
            continue
        # Judge only outputs that differ from those of a right implementation; most faults do not show in most cases.
        if [_content(outcome) for outcome in outcomes] != right:
            tried.append((fault, outcomes))
    judgements = _judged(trials, [outcomes for _, outcomes in tried], "standard")
    for (fault, _), judgement in zip(tried, judgements, strict=True):
        if fault.kind == "bias":
            yield Drift(fault.id, spec, judgement)
        elif judgement.verdict in FAILING or "unconventional" in judgement.flags:
            yield Kill(fault.id, spec.id, spec.op, spec.type, _margin(judgement, fault))
    yield from _accused(case, spec.id, styles)


def _accused(case: Case, id: str, styles: Sequence[str] | None) -> Iterator[FalsePositive]:
    """Yield conforming variants that fail a case."""
    conforming = operator_for(case.trial.node).conforming
    by_class: dict[str, list[str]] = defaultdict(list)
    for style in conforming if styles is None else styles:
        by_class[conforming[style].accuracy].append(style)
    for accuracy, styles_of_class in by_class.items():
        returned = [
            [staged_outcome(trial, conforming[style].run) for trial in case.trials] for style in styles_of_class
        ]
        judgements = _judged(case.trials, returned, accuracy)
        for style, judgement in zip(styles_of_class, judgements, strict=True):
            if judgement.verdict in FAILING or LOSES_NAN in judgement.flags:
                yield FalsePositive(style, id, f"{judgement.verdict.value}: {judgement.message}")


def _judged(trials: Sequence[Trial], several: Sequence[Sequence[Outcome]], accuracy: str) -> list[Judgement]:
    """Return the verdicts on several implementations of a case. Implementations with equal outputs are judged once."""
    by_content: dict[Hashable, list[int]] = {}
    for number, outcomes in enumerate(several):
        by_content.setdefault(tuple(map(_content, outcomes)), []).append(number)
    distinct = [several[numbers[0]] for numbers in by_content.values()]
    judgements: list[Judgement] = []
    for start in range(0, len(distinct), _TOGETHER):
        judgements += judge_each(trials, distinct[start : start + _TOGETHER], accuracy, wider=False, answers=False)
    shared = {k: judgement for numbers, judgement in zip(by_content.values(), judgements, strict=True) for k in numbers}
    return [shared[number] for number in range(len(several))]


def _can_show(fault: Fault, spec: Spec, trial: Trial) -> bool:
    """Return whether a fault may show in a case, as far as is known without running it."""
    if not fault.applies(spec.op, spec.version, spec.type) or (fault.kind == "bias" and not trial.graded):
        return False
    if trial.violation is not None or fault.accepts:  # such a fault computes legal models correctly
        return trial.violation is not None
    if fault.needs and fault.needs not in features_of(spec):
        return False
    return operator_for(trial.node).in_mutation_test(fault, trial.first.node, trial.first.feeds[-1].inputs)


def _quantized(spec: Spec) -> bool:
    return "quantized" in features_of(spec)


def _content(outcome: Outcome) -> Hashable:
    """Return all outputs of an outcome, bit for bit."""
    outputs = tuple(tuple(tuple(map(_bits, arrays)) for arrays in lists) for lists in outcome.outputs)
    return outcome.status, outcome.changed, outcome.malformed, outcome.altered, outputs


def _bits(array: NDArray[Any] | None) -> Hashable:
    return None if array is None else (array.dtype, array.shape, array.tobytes())


def _biased(drifts: Iterable[Drift]) -> Iterator[Kill]:
    """Yield a kill for every case of a biased mean; its margin is the ratio of the mean to the effect of rounding."""
    by_row: dict[tuple[str, str, str], list[Drift]] = defaultdict(list)
    for drift in drifts:
        by_row[drift.fault, drift.spec.op, drift.spec.type].append(drift)
    for (id, op, type_name), members in by_row.items():
        results = [result_of(SpecProbe(d.spec), "", d.judgement, 0.0, None) for d in members]
        bias = biases(results).get(type_name)
        if bias is not None and bias["biased"]:
            limit = max(BIAS_UNITS, BIAS_ERRORS * bias["error"])
            margin = max(abs(bias["shift"]), abs(bias["scale"])) / limit
            for d in members:
                # The limit is the threshold of a finding, so a mean at the limit counts as ENOUGH.
                yield Kill(id, d.spec.id, op, type_name, ENOUGH * margin)


def _margin(judgement: Judgement, fault: Fault) -> float:
    """Return the kill margin: half of the largest |error| / radius; infinity if size does not matter.

    For a fault no larger than a radius, return the ratio to the threshold of a finding.
    """
    if judgement.reason != "value" or judgement.verdict not in FAILING:
        return float("inf")
    return ENOUGH * judgement.worst / FINE if fault.kind == "small" else judgement.worst / 2


def _proof(specs: Sequence[Spec], faults: Sequence[str] | None, kills: list[Kill]) -> Proof:
    chosen = tuple(FAULTS) if faults is None else faults
    by_row: dict[tuple[str, str, str], list[Kill]] = defaultdict(list)
    for kill in kills:
        by_row[kill.fault, kill.op, kill.type].append(kill)
    order = operator_names()
    present, of_levels = (_present(specs, order, quantized=quantized) for quantized in (False, True))
    illegal = {(s.op, s.version, s.type) for s in specs if s.illegal}
    forbidden = [p for p in present if p in illegal]
    rows = []
    for id in chosen:
        fault = FAULTS[id]
        # Wrongly accepted models are not computed: all forbidden models have one type.
        of_all = of_levels if fault.layer == "levels" else present
        if faults is not None:
            of_all = [*present, *of_levels]
        op_types = forbidden if fault.accepts else of_all
        for op, type_name in dict.fromkeys((op, t) for op, version, t in op_types if fault.applies(op, version, t)):
            rows.append(_row_of(id, fault.clause(op), op, type_name, by_row[id, op, type_name]))
    ops = {op for op, *_ in present}
    broken = {FAULTS[id].clause(op) for id in chosen for op in ops if FAULTS[id].concerns(op)}
    exercised = {clause.id for spec in specs for clause in clauses_exercised(spec)}
    clauses = [c for op in order if op in ops for c in clauses_of(op)]
    breakable = [c for c in clauses if c.may_fail or c.status == "convention"]
    without_fault = tuple(c for c in breakable if c.id not in broken)
    return Proof(tuple(rows), (), without_fault, tuple(c for c in clauses if c.id not in exercised))


def _present(specs: Sequence[Spec], order: Sequence[str], *, quantized: bool) -> list[tuple[str, int, str]]:
    """Return the operator versions and types of unquantized cases, or of quantized ones."""
    combinations = {(s.op, s.version, s.type) for s in specs if _quantized(s) == quantized}
    return sorted(combinations, key=lambda p: (order.index(p[0]), p[1:]))


def _row_of(id: str, clause: str, op: str, kind: str, caught: list[Kill]) -> Row:
    """Return the row of a fault in one operator and type, from the cases that catch it there."""
    best = max(caught, key=lambda kill: kill.margin, default=None)
    well = sum(kill.margin >= ENOUGH for kill in caught)
    margin, by = (best.margin, best.case) if best is not None else (0.0, "")
    return Row(id, clause, op, kind, len(caught), well, margin, by)
