"""Verdicts reached again from a record: the case is rebuilt from its name, the outputs are those that were kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..judging.judgement import Judgement, Verdict
from ..probes.probe import Probe
from ..results.recorded import JobRecord, MissingBits, outcome_of
from ..results.result import Result, place_of

__all__ = ["BY_NUMBERS", "Difference", "differences", "rejudged"]

BY_NUMBERS = frozenset(
    {
        Verdict.PASS,
        Verdict.WRONG,
        Verdict.INACCURATE,
        Verdict.UNSTABLE,
        Verdict.INCONCLUSIVE,
        Verdict.MALFORMED,
    }
)
"""Verdicts that rest on what the target returned. The others rest on what happened, which a record can only retell."""

RATIO_TOLERANCE = 1e-6
"""Relative difference of `worst` between builds of NumPy. Values and radii are sums of at most some thousand float64
products, in an order that the build of BLAS chooses: 10^4 * 2^-53 = 1.1e-12 of their size, and an error that is a
millionth of a radius wide is the smallest that a result shows. A verdict may differ only where `worst` is that near 1.
"""


@dataclass(frozen=True)
class Difference:
    """A key of a result in which the record does not bear out what is claimed; both as text."""

    case: str
    target: str
    key: str
    claimed: str
    recomputed: str


def rejudged(probe: Probe, jobs: Sequence[JobRecord], bits: memoryview | bytes, accuracy: str) -> Judgement:
    """The verdict on a case, from the record of its jobs.

    Raises MissingBits where the jobs are not those of the case, or the bits are not there.
    """
    prepared = probe.prepare()
    keys = [job.key for job in prepared.jobs]
    if [job.key for job in jobs] != keys:
        raise MissingBits(f"the jobs of case {probe.id} are {', '.join(keys)}, not those that were recorded")
    return prepared.judge([outcome_of(job, bits) for job in jobs], accuracy)


def differences(result: Result, judgement: Judgement) -> list[Difference]:
    """In what a result differs from the verdict that was reached again; nothing where it is borne out."""
    pairs: dict[str, tuple[object, object]] = {
        "verdict": (result.verdict.value, judgement.verdict.value),
        "reason": (result.reason, judgement.reason),
        "clause": (result.clause, judgement.clause),
        "where": (result.where, place_of(judgement.where)),
        "interpretations": (dict(result.interpretations), dict(judgement.interpretations or {})),
        "accuracy": (result.accuracy, judgement.accuracy),
        "elements": (result.elements, judgement.elements),
        "judged": (result.judged, judgement.judged),
    }
    found = [key for key, (claimed, again) in pairs.items() if claimed != again and not _near(key, claimed, again)]
    worst = judgement.worst if judgement.judged and math.isfinite(judgement.worst) else None
    if not _same_ratio(result.worst, worst):
        pairs["worst"] = result.worst, worst
        found.append("worst")
    return [Difference(result.case, result.target, key, str(pairs[key][0]), str(pairs[key][1])) for key in found]


def _near(key: str, claimed: object, again: object) -> bool:
    """Whether two places are one, but for the errors that stand there, which are numbers like `worst`."""
    if key != "where" or not isinstance(claimed, dict) or not isinstance(again, dict) or claimed.keys() != again.keys():
        return False
    numbers = {name for name, value in claimed.items() if isinstance(value, float)}
    return all(claimed[name] == again[name] for name in claimed.keys() - numbers) and all(
        _same_ratio(claimed[name], again[name]) for name in numbers
    )


def _same_ratio(claimed: float | None, again: float | None) -> bool:
    if claimed is None or again is None:
        return claimed is again
    # Below a millionth of the bound a ratio is rounding noise of the reference itself.
    return math.isclose(claimed, again, rel_tol=RATIO_TOLERANCE, abs_tol=RATIO_TOLERANCE)
