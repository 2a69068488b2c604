"""Waivers: accepted failures with an owner, read from a TOML file.

::

    [[waiver]]
    op = "LSTM"
    clause = "lstm.activations.*"       # or verdict = "crashed", for failures that violate no clause
    types = ["float32"]
    reason = "ThresholdedRelu without an alpha; fixed in 2.4"
    owner = "Jo Doe, runtime team"
    expires = 2027-03-31
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from ...reference import FORMATS, clauses_of, operator_names
from ...reference.errors import RecordError
from ..border.typed_toml import TomlDocument
from ..judging.judgement import FAILING
from ..probes.probe import Probe
from ..results.result import Result
from .records import WaiverRecord

MOST = 100
"""Maximum number of waivers in a file."""

LONGEST = 1 << 18
"""Maximum bytes of a file of waivers."""

_TEXT = 500  # maximum characters of a reason or an owner


def read_waivers(content: bytes, place: str) -> tuple[WaiverRecord, ...]:
    """Return the waivers of a file. Raise RecordError."""
    if len(content) > LONGEST:
        raise RecordError(f"{place}: more than {LONGEST >> 10} KiB")
    try:
        text = content.decode("utf-8").replace("\r\n", "\n")
    except ValueError as error:
        raise RecordError(f"{place}: {error}") from None
    document = TomlDocument(text, place, RecordError)
    rows = document.tables("waiver")
    if len(rows) > MOST:
        raise RecordError(f"{place}: holds {MOST} waivers at most")
    return tuple(_waiver(document, number, row) for number, row in enumerate(rows))


def _waiver(document: TomlDocument, number: int, row: Mapping[str, object]) -> WaiverRecord:
    """Return the waiver of a table. Raise RecordError."""
    if isinstance(day := row.get("expires"), datetime.date) and not isinstance(day, datetime.datetime):
        row = {**row, "expires": day.isoformat()}
    waiver = document.typed(row, WaiverRecord, ("waiver", number))
    try:
        _require_right(waiver)
    except ValueError as error:
        raise document.wrong(("waiver", number), str(error)) from None
    return waiver


def _require_right(waiver: WaiverRecord) -> None:
    """Raise ValueError for an invalid waiver."""
    for key in ("reason", "owner"):
        if not 0 < len(getattr(waiver, key).strip()) <= _TEXT:
            raise ValueError(f"{key} is a text of up to {_TEXT} characters")
    _day(waiver)
    if bool(waiver.clause) == bool(waiver.verdict):
        raise ValueError("names a clause or, for what breaks none, a verdict: one of them")
    if waiver.verdict and waiver.verdict not in FAILING:
        raise ValueError(f"{waiver.verdict!r} is no failing verdict")
    if waiver.op and waiver.op not in operator_names():
        raise ValueError(f"there is no operator {waiver.op!r}")
    ops = (waiver.op,) if waiver.op else operator_names()
    clause_ids = [clause.id for op in ops for clause in clauses_of(op)]
    if waiver.clause and not any(fnmatchcase(id, waiver.clause) for id in clause_ids):
        raise ValueError(f"no clause is {waiver.clause!r}; 'onnxspec clauses' lists them")
    if unknown_types := [type_name for type_name in waiver.types if type_name not in FORMATS]:
        raise ValueError(f"there is no type {unknown_types[0]!r}")


def _day(waiver: WaiverRecord) -> datetime.date:
    try:
        return datetime.date.fromisoformat(waiver.expires)
    except ValueError:
        raise ValueError(f"expires: {waiver.expires!r} is no day like 2027-03-31") from None


def expired(waiver: WaiverRecord, day: datetime.date) -> bool:
    """Return whether a waiver has expired on a day."""
    return _day(waiver) < day


def covering(waivers: Sequence[WaiverRecord], probe: Probe, result: Result, day: datetime.date) -> int | None:
    """Return the number, from 1, of the first waiver that covers a failing result on a day; None if none does."""
    for number, waiver in enumerate(waivers, 1):
        if (
            (not waiver.op or probe.op == waiver.op)
            and (not waiver.clause or fnmatchcase(result.clause or "", waiver.clause))
            and (not waiver.verdict or result.verdict.value == waiver.verdict)
            and (not waiver.versions or probe.version in waiver.versions)
            and (not waiver.types or probe.type in waiver.types)
            and set(waiver.features) <= probe.features
            and not expired(waiver, day)
        ):
            return number
    return None
