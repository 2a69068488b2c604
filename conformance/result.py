"""A result: one case on one target, as a line of results.jsonl."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .judgement import FAILING, Judgement, Verdict
from .probe import Probe

__all__ = ["Result", "result_of"]

_PRINTED = 2000  # characters of what a target printed: a thousand chatty cases stay a journal that can be looked at


@dataclass(frozen=True)
class Result:
    """One line of results.jsonl; the keys are documented in docs/results.md.

    ``expected`` holds for a failing result that the target's expected-failure file names; ``why`` is the reason there.
    ``printed`` is what the target printed meanwhile.
    """

    case: str
    op: str
    domain: str
    version: int
    type: str
    target: str
    verdict: Verdict
    expected: bool
    clauses: tuple[str, ...]
    features: tuple[str, ...]
    worst: float | None
    reason: str | None
    where: Mapping[str, Any] | None
    message: str
    flags: tuple[str, ...]
    diagnosis: tuple[str, ...]
    seconds: float
    clause: str | None
    accuracy: str | None
    readings: Mapping[str, str]
    judged: int
    elements: int
    repeat: str
    why: str = ""
    error_sums: tuple[float, ...] = ()
    strict: bool | None = None
    printed: str = ""

    @property
    def failing(self) -> bool:
        return self.verdict in FAILING

    def to_line(self) -> str:
        """The line, without its end."""
        plain = {**self.__dict__, "verdict": self.verdict.value}
        return json.dumps(plain, allow_nan=False, separators=(",", ":"))

    @staticmethod
    def from_line(line: str) -> Result:
        """The result of a line. Raises ValueError for a line that holds none."""
        try:
            plain = json.loads(line)
            for name in ("clauses", "features", "flags", "diagnosis", "error_sums"):
                plain[name] = tuple(plain[name])
            return Result(**{**plain, "verdict": Verdict(plain["verdict"])})
        except (TypeError, KeyError) as error:
            raise ValueError(f"no result: {error}") from None


def result_of(
    probe: Probe,
    target: str,
    judgement: Judgement,
    seconds: float,
    why: str | None,
    repeat: str = "",
    printed: str = "",
) -> Result:
    """The result of a judgement.

    why
        The reason of an expected-failure entry, None where none applies.
    repeat
        The command that shows this case on this target.
    printed
        What the target printed meanwhile; its end is kept.
    """
    failing = judgement.verdict in FAILING
    # What is so wrong that its squares overflow has no part in a mean error.
    telling = probe.graded and all(map(math.isfinite, judgement.error_sums))
    return Result(
        case=probe.id,
        op=probe.op,
        domain=probe.domain,
        version=probe.version,
        type=probe.type,
        target=target,
        verdict=judgement.verdict,
        expected=failing and why is not None,
        clauses=probe.clauses,
        features=probe.groups,
        worst=judgement.worst if judgement.judged and math.isfinite(judgement.worst) else None,
        reason=judgement.reason,
        where=judgement.where,
        message=judgement.message,
        flags=judgement.flags,
        diagnosis=(),
        seconds=round(seconds, 6),
        clause=judgement.clause,
        accuracy=judgement.accuracy,
        readings=dict(judgement.readings or {}),
        judged=judgement.judged,
        elements=judgement.elements,
        repeat=repeat,
        why=(why or "") if failing else "",
        error_sums=judgement.error_sums if telling else (),
        strict=judgement.strict,
        printed=printed[-_PRINTED:],
    )
