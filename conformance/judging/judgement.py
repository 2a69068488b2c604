"""Verdicts with their reasons, and verdicts without numbers: on jobs that did not run, and on invalid models."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference.errors import format_internal_error
from ..workers.process import Outcome


class Verdict(str, enum.Enum):
    """Verdicts on a case, in order of precedence."""

    UNAVAILABLE = "unavailable"
    NOT_RUN = "not-run"
    NOT_JUDGED = "not-judged"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    FALLBACK = "fallback"
    UNSUPPORTED = "unsupported"
    NOT_TRIED = "not-tried"
    NOT_REJECTED = "not-rejected"
    MALFORMED = "malformed"
    INPUT_MODIFIED = "input-modified"
    UNSTABLE = "unstable"
    WRONG = "wrong"
    INACCURATE = "inaccurate"
    INCONCLUSIVE = "inconclusive"
    PASS = "pass"


FAILING = frozenset(
    {
        Verdict.CRASHED,
        Verdict.TIMED_OUT,
        Verdict.NOT_REJECTED,
        Verdict.MALFORMED,
        Verdict.INPUT_MODIFIED,
        Verdict.UNSTABLE,
        Verdict.WRONG,
        Verdict.INACCURATE,
    }
)

DECLINED = frozenset({Verdict.UNSUPPORTED, Verdict.FALLBACK})
"""Verdicts on valid models that a target does not run: neither a pass nor wrong arithmetic.

A provider that leaves a node to another provider does not support it.
"""

WITHOUT_RUN = DECLINED | {Verdict.NOT_TRIED}
"""Verdicts without information on a target's arithmetic.

A ``not-tried`` case needs abilities of sessions that the target's worker does not declare. So it is not a refusal by
the target, and no count includes it.
"""

UNTRIED = frozenset({Verdict.UNAVAILABLE, Verdict.NOT_RUN, Verdict.NOT_JUDGED})
"""Verdicts on cases without a result: the target did not run them, or the code of the suite or of the operator failed.

A resumed run tries them again.
"""


@dataclass(frozen=True)
class Judgement:
    """Verdict with its reasons; the fields are those of a result, see docs/results.md.

    worst
        Largest |error|/radius of judged elements; infinity if no radius allows the value.
    error_sums
        Sums for the run's bias, over defined elements: signed error, error towards larger magnitude, its square,
        u|value|.
    strict
        For an accuracy case: whether it passes by the class ``strict``, too; None for other cases.
    diagnosis
        Ids of the faults that explain it, if they are known.
    """

    verdict: Verdict
    reason: str | None = None
    where: dict[str, Any] | None = None
    message: str = ""
    worst: float = 0.0
    clause: str | None = None
    flags: tuple[str, ...] = ()
    interpretations: Mapping[str, str] | None = None
    accuracy: str | None = None
    judged: int = 0
    elements: int = 0
    error_sums: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    strict: bool | None = None
    diagnosis: tuple[str, ...] = ()


def wrong_count(came: int, asked: int) -> Judgement:
    """Return the verdict on another number of outputs than was asked for."""
    return Judgement(Verdict.MALFORMED, "count", message=f"{came} outputs came back, {asked} were asked for")


def wrong_form(name: str, got: NDArray[Any] | None, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Judgement | None:
    """Return the verdict on an output that is missing or has another shape or type; None if it is well formed."""
    if got is None:
        reason, message = "form", f"{name} is missing or no array of numbers"
    elif got.shape != shape:
        reason, message = "shape", f"{name} has shape {got.shape}, must be {shape}"
    elif got.dtype != dtype:
        reason, message = "type", f"{name} is {got.dtype.name}, must be {dtype.name}"
    else:
        return None
    return Judgement(Verdict.MALFORMED, reason, {"output": name, "index": None, "step": None}, message)


_STATUS = {
    "refused": Verdict.UNSUPPORTED,
    "crashed": Verdict.CRASHED,
    "timed-out": Verdict.TIMED_OUT,
    "fell-back": Verdict.FALLBACK,
    "unavailable": Verdict.UNAVAILABLE,
    "not-run": Verdict.NOT_RUN,
    "not-tried": Verdict.NOT_TRIED,
}


NO_CLEAN_REFUSAL = "no-clean-refusal"
"""Flag of refusals by an exception that suggests a bug, before the model was accepted.

Such an exception may not be a refusal.
"""

RANDOM_WEIGHTS = "random-weights"
"""Flag of a model's node that has random numbers in place of unknown weights."""

OF_FORBIDDEN = frozenset({"refused", "open"})
"""Reasons of a pass of a forbidden model: it was refused, or the document leaves open whether it must be."""

EXCEPTION = "exception"
"""Reason of a crash in which the process survived: an exception that indicates a bug."""


def not_run(outcome: Outcome) -> Judgement:
    """Return the verdict on a job that did not finish."""
    if outcome.broke:
        return Judgement(Verdict.CRASHED, EXCEPTION, message=outcome.reason)
    return _declined(outcome)


def would_allow(name: str) -> str:
    """Return the message on a wider class whose bounds hold the values, although they are not rounded like it."""
    return f"the error would fit class {name}"


def not_judged(error: Exception, doing: str) -> Judgement:
    """Return the verdict on a case in which the code of onnxspec or of the operator raised an exception.

    Such a case has no information on the target.

    doing
        The step that failed: ``building`` or ``judging``.
    """
    return Judgement(
        Verdict.NOT_JUDGED, doing, message=f"the suite's fault or the operator's: {format_internal_error(error)}"
    )


def _declined(outcome: Outcome) -> Judgement:
    flags = (NO_CLEAN_REFUSAL,) if outcome.broke_at else ()
    return Judgement(_STATUS[outcome.status], outcome.phase or None, message=outcome.reason, flags=flags)


# Statuses that show whether a forbidden model was accepted. A provider that leaves it to another one rejects it.
_TRIED = frozenset({"ran", "refused", "fell-back"})


def judge_forbidden(
    summary: str, due: str, clause: str, outcome: Outcome, legal: Outcome | None, *, open: bool = False
) -> Judgement:
    """Return the verdict on an invalid model.

    summary, due, clause
        Its violation, the last phase in which it must be refused, and the clause that it violates.
    legal
        Outcome of the same model without the violation. If that does not run either, a refusal proves nothing.
    open
        Whether accepting it is right, too.
    """
    if outcome.status not in _TRIED:
        return not_run(outcome)
    if open:
        return Judgement(Verdict.PASS, "open", message=outcome.message)
    if outcome.status == "ran":
        return Judgement(Verdict.NOT_REJECTED, due, message=f"accepted, but invalid: {summary}", clause=clause)
    if legal is not None and legal.status != "ran":
        if legal.status in ("unavailable", "not-run", outcome.status):
            return _declined(legal)
        message = f"without its violation the model does not run either: {legal.status} ({legal.message})"
        return Judgement(Verdict.UNSUPPORTED, outcome.phase, message=message)
    flags = ["refused-late"] if outcome.phase == "run" and due != "run" else []
    flags += [NO_CLEAN_REFUSAL] if outcome.broke_at else []
    return Judgement(Verdict.PASS, "refused", message=outcome.reason, flags=tuple(flags))
