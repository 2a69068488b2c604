"""Result of one case on one target, as a line of results.jsonl."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict, cast

from msgspec import Meta, Struct

from ..border.strict_json import MOST_INTEGER
from ..judging.judgement import FAILING, Judgement, Verdict
from ..probes.probe import Probe

_PRINTED = 2000  # maximum characters of a target's printed text, so that a thousand chatty cases stay a small file

Count = Annotated[int, Meta(ge=0, le=MOST_INTEGER)]
Whole = Annotated[int, Meta(ge=-MOST_INTEGER - 1, le=MOST_INTEGER)]
Quantity = Annotated[float, Meta(ge=0)]


class Place(TypedDict, total=False):
    """The worst element of a case: the output's name, its index, and the step in processing order.

    For ExtendedLSTM also the largest error of the case, as a number and in units of y_scale.
    """

    output: str
    index: list[Whole] | None
    step: Whole | None
    error: float | None
    units: float | None


class Result(Struct, frozen=True, gc=False, tag_field="record", tag="result"):
    """One case on one target, from judging to disk and page; docs/results.md documents the keys.

    ``expected`` holds for a failing result that the target's expected-failure file names; ``why`` is the reason there.
    ``printed`` is what the target printed meanwhile.
    """

    case: str
    op: str
    domain: str
    version: Count
    type: str
    target: str
    verdict: Verdict
    expected: bool
    clauses: tuple[str, ...]
    features: tuple[str, ...]
    worst: Quantity | None
    reason: str | None
    where: Place | None
    message: str
    flags: tuple[str, ...]
    diagnosis: tuple[str, ...]
    seconds: Quantity
    clause: str | None
    accuracy: str | None
    interpretations: Mapping[str, str]
    judged: Count
    elements: Count
    repeat: str
    why: str = ""
    error_sums: tuple[float, ...] = ()
    strict: bool | None = None
    printed: str = ""

    def __str__(self) -> str:
        """Return the result in one line, without details."""
        return f"{self.case} on {self.target}: {self.verdict.value}{f': {self.message}' if self.message else ''}"

    @property
    def failing(self) -> bool:
        return self.verdict in FAILING


def place_of(where: Mapping[str, Any] | None) -> Place | None:
    """Return a place as JSON data; non-finite numbers become null."""
    if where is None:
        return None
    finite = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in where.items()}
    return cast(Place, finite)


def result_of(
    probe: Probe,
    target: str,
    judgement: Judgement,
    seconds: float,
    why: str | None,
    repeat: str = "",
    printed: str = "",
) -> Result:
    """Return the result of a judgement.

    why
        The reason of an expected-failure entry, None where none applies.
    repeat
        The command that shows this case on this target.
    printed
        The target's printed text; its end is kept.
    """
    failing = judgement.verdict in FAILING
    # An error whose square overflows cannot be part of a mean error.
    has_errors = probe.graded and all(map(math.isfinite, judgement.error_sums))
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
        where=place_of(judgement.where),
        message=judgement.message,
        flags=judgement.flags,
        diagnosis=(),
        seconds=round(float(seconds), 6),
        clause=judgement.clause,
        accuracy=judgement.accuracy,
        interpretations=dict(judgement.interpretations or {}),
        judged=judgement.judged,
        elements=judgement.elements,
        repeat=repeat,
        why=(why or "") if failing else "",
        error_sums=judgement.error_sums if has_errors else (),
        strict=judgement.strict,
        printed=printed[-_PRINTED:],
    )
