"""Messages of a worker: each header becomes a typed message here, or fails the current job.

A worker belongs to a target, so its messages are untrusted input. Messages of other types are refused; texts are
shortened and made printable, so that later code need not check them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import ml_dtypes
from msgspec import Meta, Struct

from ...cases import ABILITIES
from ..border.strict_json import MalformedJson, parse, typed
from . import worker
from .job import Array, Job, Outcome

HEADER_LIMIT = 4 << 20
"""Maximum bytes of a header.

A report of a thousand feeds with three outputs, run twice, takes 300 KB; its texts take 30 KB.
"""

_DESCRIPTION_LIMIT = 1 << 16  # bytes of JSON; onnxruntime's has 3 KB
_CAPTURED_LIMIT = 8000  # characters: twice as many as the worker sends, because some become escapes
_TEXT_LIMIT = 500
_PROOF_LIMIT = 2000
_NAME_LIMIT = 200

_Index = Annotated[int, Meta(ge=0)]
_Seconds = Annotated[float, Meta(ge=0, le=1e9)]
_Arrays = list[tuple[str, Annotated[list[_Index], Meta(max_length=64)]]]  # NumPy's maximum number of dimensions


class _Frame(Struct, kw_only=True, tag_field="type"):
    arrays: _Arrays = []


class Hello(_Frame, tag="hello"):
    protocol: Any
    sessions: Any = None  # version 1 allows anything beside the protocol


class Ready(_Frame, tag="ready"):
    description: dict[str, Any]
    environment: dict[str, Any] = {}
    sessions: Any = None
    captured: str = ""


class Unavailable(_Frame, tag="unavailable"):
    message: str
    captured: str = ""


class Began(_Frame, tag="began"):
    jobs: list[int]


class Report(_Frame, tag="report"):
    number: int
    status: Literal["ran", "refused", "crashed", "fell-back", "unavailable"]
    phase: Literal["load", "run"]
    outputs: list[list[Annotated[list[_Index | None], Meta(max_length=worker.OUTPUTS_LIMIT)]]]
    seconds: _Seconds
    message: str = ""
    changed: list[str] = []
    altered: list[_Index] = []
    malformed: str = ""
    captured: str = ""
    proof: str = ""
    returned: list[list[_Index]] = []
    broke_at: str = ""


class Died(_Frame, tag="died"):
    signal: str | None = None
    code: int | None = None
    captured: str | None = None


Message = Hello | Ready | Unavailable | Began | Report | Died
_MESSAGE: Any = Message


def message_of(header: bytes) -> Message:
    """Return the message of a header. Raise worker.ProtocolError with the defect."""
    try:
        message: Message = typed(parse(header), _MESSAGE)
    except MalformedJson as error:
        raise worker.ProtocolError(f"a frame that makes no sense: {worker.one_line(str(error), 300)}") from None
    if isinstance(message, Ready):
        _require_description(message.description, len(header))
    return message


def _require_description(description: Mapping[str, Any], size: int) -> None:
    if size > _DESCRIPTION_LIMIT:
        raise worker.ProtocolError(
            f"a description of {size} bytes, more than the {_DESCRIPTION_LIMIT} that it may have"
        )
    for key in ("runtime", "version"):
        if not isinstance(description.get(key, ""), str):
            raise worker.ProtocolError(f"a description whose {key} is no text")


def legible(value: Any) -> Any:
    """Return a JSON value with its texts printable and shortened."""
    if isinstance(value, str):
        return worker.one_line(value, _PROOF_LIMIT)
    if isinstance(value, list):
        return [legible(item) for item in value]
    if isinstance(value, dict):
        return {worker.one_line(key, _NAME_LIMIT): legible(item) for key, item in value.items()}
    return value


def outcome_of(job: Job, repeats: int, report: Report, body: bytes) -> Outcome:
    """Return the outcome of a job from its report. Raise worker.ProtocolError if the report does not fit the job."""
    names = {name for feed in job.feeds for name in feed}
    if not names.issuperset(report.changed):
        raise worker.ProtocolError("a report of a change of inputs that there are none of")
    if len(report.outputs) != len(job.feeds):
        raise worker.ProtocolError(f"a report of outputs for {len(report.outputs)} of {len(job.feeds)} feeds")
    fewest = 1 if report.status == "ran" else 0
    for feed, distinct in enumerate(report.outputs):
        times = repeats * job.runs(feed)
        if not fewest <= len(distinct) <= times:
            raise worker.ProtocolError(
                f"a report of {len(distinct)} distinct results of a feed that runs {times} times"
            )
    _require_returned(job, report, repeats)
    if any(feed >= len(job.feeds) for feed in report.altered):
        raise worker.ProtocolError("a report of a change of outputs of a feed that there is none of")
    unpacked = worker.unpack_arrays({"arrays": report.arrays}, body)
    arrays = [array.view(ml_dtypes.bfloat16) if element == "bfloat16" else array for element, array in unpacked]
    return Outcome(
        job.key,
        report.status,
        report.phase,
        tuple(tuple(_outputs(outputs, arrays) for outputs in distinct) for distinct in report.outputs),
        tuple(sorted(set(report.changed))),
        worker.one_line(report.malformed, _TEXT_LIMIT),
        worker.one_line(report.message, _TEXT_LIMIT),
        printed_lines(report.captured),
        None,
        report.seconds,
        worker.one_line(report.proof, _PROOF_LIMIT),
        returned=tuple(map(tuple, report.returned)),
        broke_at=worker.one_line(report.broke_at, _NAME_LIMIT),
        altered=tuple(sorted(set(report.altered))),
    )


def _require_returned(job: Job, report: Report, repeats: int) -> None:
    """Raise worker.ProtocolError unless `returned`, if there is one, has an existing result for every repeat."""
    if report.status != "ran" or not report.returned:
        return
    times = [repeats * job.runs(feed) for feed in range(len(job.feeds))]
    if [len(indices) for indices in report.returned] != times:
        raise worker.ProtocolError(f"a report of what was returned that is not one of {repeats} repeats of each feed")
    pairs = zip(report.returned, report.outputs, strict=True)
    if any(set(indices) != set(range(len(distinct))) for indices, distinct in pairs):
        raise worker.ProtocolError("a report of what was returned that names other results than there are")


def abilities_of(hello: Any, ready: Any) -> frozenset[str]:
    """Return the abilities of a target's sessions: those of its worker that its adapter has, too, if it declares any.

    Ignore unknown words and values that are not lists.
    """
    declared = [hello] if ready is None else [hello, ready]
    sets = [{word for word in value if word in ABILITIES} if isinstance(value, list) else set() for value in declared]
    return frozenset(set.intersection(*sets))


def _outputs(indices: Sequence[int | None], arrays: Sequence[Array]) -> tuple[Array | None, ...]:
    if any(index is not None and index >= len(arrays) for index in indices):
        raise worker.ProtocolError(
            f"a report that names array {max(i for i in indices if i is not None)} of {len(arrays)}"
        )
    return tuple(None if index is None else arrays[index] for index in indices)


def printed_lines(text: str) -> str:
    """Return a target's printed text, shortened to its beginning and end, with unprintable characters escaped."""
    if len(text) > _CAPTURED_LIMIT:
        half = _CAPTURED_LIMIT // 2
        text = f"{text[:half]}\n... {len(text) - 2 * half} characters left out ...\n{text[-half:]}"
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else ascii(c)[1:-1] for c in text)
