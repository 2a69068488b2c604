"""The proof of ExtendedLSTM's profile: that it catches every deviation, and accuses no honest implementation."""

from __future__ import annotations

import contextlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ..cases.extended_spec import OP_TYPE, VERSION, ExtendedSpec
from ..cases.extended_violations import extended_violation
from ..reference import EXTENDED_DEVIATIONS, ExtendedDeviation, clauses_of
from ..reference.extended_lstm import ExtendedLSTM, evaluate_extended
from ..reference.extended_mistakes import run_extended, stages_with
from .extended_probe import runs_of
from .extended_verdict import ExtendedRun, judge_extended
from .judgement import FAILING, Judgement
from .process import Outcome
from .proof import ENOUGH, Accusation, Catch, Proof, Row, row_of, spread

__all__ = ["HONEST_STYLES", "prove_extended"]

_FINE = 1.15
"""Ratio of error to radius from which on a case is said to catch a mistake of one unit well: radii are a unit wide."""

_PIECE = 8
_LONGEST, _LARGEST = 16, 1200  # steps, and weights of a gate: larger cases show no mistake that smaller ones do not

Array = NDArray[np.float32]


def _float32(node: ExtendedLSTM) -> Array:
    """Dequantized numbers in float32, as QDQ nodes around an LSTM compute."""
    t = {name: operand.value.astype(np.float32) for name, operand in node.tensors.items()}
    Y, H, half = np.zeros((node.T, 2, node.N, node.H), np.float32), node.H, np.float32(0.5)
    for d in range(2):
        h = c = np.zeros((node.N, H), np.float32)
        bias = t["B"][d, : 4 * H] + t["B"][d, 4 * H :] if "B" in t else np.zeros(4 * H, np.float32)
        for step in range(node.T) if d == 0 else range(node.T - 1, -1, -1):
            a = t["X"][step] @ t["W"][d].T + h @ t["R"][d].T + bias
            i, o, f = (half * np.tanh(half * a[:, k * H : (k + 1) * H]) + half for k in range(3))
            c = f * c + i * np.tanh(a[:, 3 * H :])
            h = o * np.tanh(c)
            if node.y is not None:
                h = node.y.rounded(h).astype(np.float32)
            Y[step, d] = h
    return Y


HONEST_STYLES = {
    "exact": lambda node: evaluate_extended(node).astype(np.float32),
    "state-as-computed": lambda node: evaluate_extended(node, "as-computed").astype(np.float32),
    "float32": _float32,
}
"""Right implementations, none of which may be accused."""


def prove_extended(
    specs: Sequence[ExtendedSpec], deviations: Iterable[str] | None = None, *, processes: int = 1
) -> Iterator[int | Proof]:
    """As :func:`.proof.prove`, for cases of ExtendedLSTM."""
    chosen = tuple(EXTENDED_DEVIATIONS if deviations is None else deviations)
    pieces = [specs[k : k + _PIECE] for k in range(0, len(specs), _PIECE)]
    catches: list[Catch] = []
    accusations: list[Accusation] = []
    done = 0
    work = partial(_try, chosen=chosen)
    with contextlib.closing(spread(work, pieces, processes)) as found:
        for piece, (caught, accused) in zip(pieces, found, strict=True):
            catches, accusations, done = catches + caught, accusations + accused, done + len(piece)
            yield done
    by_row: dict[str, list[Catch]] = defaultdict(list)
    for catch in catches:
        by_row[catch.deviation].append(catch)
    rows: list[Row] = []
    for id in chosen:
        mistake = EXTENDED_DEVIATIONS[id]
        rows.append(row_of(id, mistake.clause(OP_TYPE), OP_TYPE, "float32", by_row[id]))
    broken = {EXTENDED_DEVIATIONS[id].clause(OP_TYPE) for id in chosen}
    exercised = {clause.id for spec in specs for clause in spec.clauses}
    clauses = clauses_of(OP_TYPE, VERSION)
    yield Proof(
        tuple(rows),
        tuple(accusations),
        tuple(c for c in clauses if (c.may_fail or c.status == "convention") and c.id not in broken),
        tuple(c for c in clauses if c.id not in exercised),
    )


def _try(specs: Sequence[ExtendedSpec], chosen: Sequence[str]) -> tuple[list[Catch], list[Accusation]]:
    catches: list[Catch] = []
    accusations: list[Accusation] = []
    for spec in specs:
        mistakes = [EXTENDED_DEVIATIONS[id] for id in chosen]
        if spec.illegal:
            clause = extended_violation(spec.illegal).clause
            catches += [_catch(d, spec, float("inf")) for d in mistakes if d.accepts and d.clause(spec.op) == clause]
            continue
        runs = runs_of(spec)
        for style, implementation in HONEST_STYLES.items():
            found = _judged(spec, runs, [implementation(run.node) for run in runs], style)
            if found.verdict in FAILING:
                accusations.append(Accusation(style, spec.id, f"{found.verdict.value}: {found.message}"))
        if spec.T > _LONGEST or spec.I * spec.H > _LARGEST or spec.H * spec.H > _LARGEST:
            continue
        right = [run_extended((), run.node) for run in runs]
        for d in mistakes:
            if d.accepts or (d.feature and d.feature not in spec.features):
                continue
            answers = _answers(d, runs)
            if all(a.shape == r.shape and np.array_equal(a, r) for a, r in zip(answers, right, strict=True)):
                continue
            found = _judged(spec, runs, answers, "")
            if found.verdict in FAILING:
                ratio = found.worst if found.judged else float("inf")
                catches.append(_catch(d, spec, ENOUGH * ratio / _FINE if d.fine else ratio / 2))
    return catches, accusations


def _answers(mistake: ExtendedDeviation, runs: Sequence[ExtendedRun]) -> list[Array]:
    """What a session of an implementation with this mistake returns, run by run."""
    answer = stages_with([mistake]).answer
    computed = [run_extended((mistake,), run.node) for run in runs]
    return [answer(computed[: k + 1]) for k in range(len(computed))]


def _catch(mistake: ExtendedDeviation, spec: ExtendedSpec, strength: float) -> Catch:
    return Catch(mistake.id, spec.id, spec.op, spec.version, spec.type, strength)


def _judged(spec: ExtendedSpec, runs: Sequence[ExtendedRun], answers: Sequence[Array], style: str) -> Judgement:
    outcome = Outcome(spec.id, "ran", "run", tuple(((Y,),) for Y in answers))
    return judge_extended(spec, runs, outcome, "float32" if style == "float32" else "standard")
