"""Reader of run folders, for resumed runs, merge, reports and certificates.

Unreadable parts are reported with file and line, and the rest is used; nothing is written here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from msgspec import DecodeError, Struct
from msgspec.json import Decoder

from ...reference import clause_named
from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, decode, parse, typed
from ..judging.judgement import UNTRIED
from .lines import CasesAdded, Line, Recorded, ResultUpdate, RunFinished, RunStarted, TargetStarted, updated
from .records import SCHEMA, RunRecord, TargetRecord
from .result import Result

RESULTS, RUN = "results.jsonl", "run.json"

NODE_CASES = "cases"
"""The folder of the cases of a model's nodes, which are written before the run starts."""

_RECORDED = b'{"record":"recorded"'
_SHOWN = 20  # problems that are listed one by one


class RunFolder(Struct, dict=True):
    """A run folder that was read.

    info
        run.json, None where it is missing or unreadable.
    headers
        One for each time that the run was started or resumed.
    filled
        By target the random cases that followed, each as the line that rebuilds it.
    by_case
        The one result of each target and case with its updates, in the order of the lines.
    whole
        Bytes up to the end of the last complete line; a kill cut off the rest, if any.
    invalid
        Number of errors, unreadable lines among them.
    """

    path: Path
    info: RunRecord | None = None
    headers: list[RunStarted] = []
    filled: dict[str, list[str]] = {}
    by_case: dict[tuple[str, str], Result] = {}
    descriptions: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    all_seconds: float = 0.0
    whole: int = 0
    size: int = 0
    invalid: int = 0
    _problems: list[str] = []

    @property
    def results(self) -> tuple[Result, ...]:
        """The results, in the order of the lines."""
        return tuple(self.by_case.values())

    @property
    def problems(self) -> tuple[str, ...]:
        """Errors, a line each; paths are relative to the folder."""
        more = self.invalid - len(self._problems)
        return (*self._problems, *([f"and {more} more like these"] if more else []))

    @property
    def described(self) -> RunRecord:
        """The content of run.json. Raise RecordError where it cannot be read."""
        if self.info is None:
            raise RecordError(f"{self.path}: {self.problems[0]}")
        return self.info

    @cached_property
    def targets(self) -> dict[str, TargetRecord]:
        """The entries of targets in run.json, by name. Raise RecordError where it cannot be read."""
        return {target["name"]: target for target in self.described["targets"]}

    def take(self, line: Line, place: str = "") -> None:
        """Add a line; `place` locates it in messages on contradictions."""
        if isinstance(line, Result):
            self._take_result(line, place)
        elif isinstance(line, ResultUpdate):
            key = line.target, line.case
            if key in self.by_case:
                self.by_case[key] = updated(self.by_case[key], line)
            else:
                self.complain(f"{place}: updates case {line.case} on {line.target}, which has no result")
        elif isinstance(line, RunStarted):
            self.headers.append(line)
        elif isinstance(line, CasesAdded):
            self.filled.setdefault(line.target, []).extend(line.cases)
        elif isinstance(line, TargetStarted):
            self.descriptions[line.target] = line.description
        elif isinstance(line, RunFinished):
            self.all_seconds += line.seconds
            for target, seconds in line.target_seconds.items():
                self.seconds[target] = self.seconds.get(target, 0.0) + seconds

    def _take_result(self, result: Result, place: str) -> None:
        key = result.target, result.case
        before = self.by_case.get(key)
        if before is None or before.verdict in UNTRIED:
            # The later result moves to the end of the order, because the case was run later.
            if before is not None:
                del self.by_case[key]
            self.by_case[key] = result
        elif result.verdict not in UNTRIED and gist(before) != gist(result):
            self.complain(
                f"{place}: a second result of case {result.case} on {result.target} ({result.verdict.value}), which "
                f"contradicts the first ({before.verdict.value}); the first counts"
            )

    def complain(self, text: str) -> None:
        """Note an error; only the first messages are kept, so that a garbage file does not fill memory."""
        self.invalid += 1
        if self.invalid <= _SHOWN:
            self._problems.append(text)


def require_known_clauses(folder: RunFolder) -> None:
    """Raise RecordError for a result that names a clause which does not exist."""
    for result in folder.results:
        for id in (*result.clauses, *filter(None, (result.clause,))):
            try:
                clause_named(id)
            except KeyError:
                message = f"{folder.path}: the result of {result.case} names an unknown clause, {id}"
                raise RecordError(f"{message}; was the folder edited?") from None


def gist(result: Result) -> tuple[object, ...]:
    """Return the fields in which two results of the same case must agree."""
    return result.verdict, result.reason, result.clause, result.accuracy


def read_folder(path: Path) -> RunFolder:
    """Read a run folder. Raise RecordError for another folder, or one in another version's format."""
    if not path.is_dir():
        raise RecordError(f"{path}: {'not a directory' if path.exists() else 'no such directory'}")
    if not any((path / name).is_file() for name in (RESULTS, RUN)):
        raise RecordError(f"{path}: holds neither {RESULTS} nor {RUN}, so it is no run")
    run = RunFolder(path)
    run.info = _described(run)
    try:
        load_results(run)
    except FileNotFoundError:
        run.complain(f"{RESULTS} is missing, so there are no results")
    except OSError as error:
        run.complain(f"{RESULTS}: cannot be read: {error.strerror or error}")
    return run


def other_schema(path: Path, schema: object, by: object) -> str:
    """Return the message on a folder that a version with another format wrote."""
    writer = f" of onnxspec {by[:40]!a}" if isinstance(by, str) and by else ""
    form = schema if isinstance(schema, int) else "unknown"
    return f"{path}: holds a run{writer} in form {form}, this version reads and writes form {SCHEMA}"


def _described(run: RunFolder) -> RunRecord | None:
    path = run.path
    try:
        plain = parse((path / RUN).read_bytes())
        if isinstance(plain, dict) and plain.get("schema") != SCHEMA:
            raise RecordError(other_schema(path, plain.get("schema"), plain.get("onnxspec")))
        info = typed(plain, RunRecord)
        datetime.fromisoformat(info["started"])
        return info
    except FileNotFoundError:
        run.complain(f"{RUN} is missing, so findings and environment are unknown")
    except RecordError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        run.complain(f"{RUN} cannot be read ({why}), so findings and environment are unknown")
    return None


def recorded_in(folder: Path) -> Iterator[Recorded]:
    """Yield the records of targets' outcomes, in order; unreadable lines are skipped. Raise OSError."""
    for line in _lines(RunFolder(folder)):
        if line.startswith(_RECORDED):
            with contextlib.suppress(MalformedJson):
                record = _record_of(line)
                if isinstance(record, Recorded):
                    yield record


def load_results(run: RunFolder) -> None:
    """Read results.jsonl into a run. Raise OSError, and RecordError where another version wrote it."""
    for number, line in enumerate(_lines(run), 1):
        location = f"{RESULTS}:{number}"
        try:
            run.take(_record_of(line) if run.headers else _before_header(line, number, run.path), location)
        except MalformedJson as error:
            run.complain(f"{location}: {error}")


def _record_of(line: bytes) -> Line:
    """Return the record of a line. Raise MalformedJson."""
    try:
        return _TYPED.decode(line)
    # Another type, half of a surrogate pair, or a fault, which decode names.
    except (DecodeError, ValueError, RecursionError):
        return cast(Line, decode(line, cast(Any, Line)))


_TYPED: Decoder[Result | Recorded | ResultUpdate] = Decoder(Result | Recorded | ResultUpdate)
"""Decoder of nearly all lines, whose fields need no check of depth: it takes a 17th of the time of all checks."""


def _before_header(line: bytes, number: int, folder: Path) -> Line:
    """Return the record of a line that no header precedes.

    Raise RecordError if another version wrote it: results of 0.4 have no header and no ``record``.
    """
    plain = parse(line)
    if isinstance(plain, dict):
        former = number == 1 and "case" in plain and "record" not in plain
        if former or (plain.get("record") in ("header", "begun") and plain.get("schema") != SCHEMA):
            raise RecordError(other_schema(folder, plain.get("schema"), plain.get("onnxspec")))
    return cast(Line, typed(plain, cast(Any, Line)))


def _lines(run: RunFolder) -> Iterator[bytes]:
    """Yield the complete lines of results.jsonl without their ends."""
    with (run.path / RESULTS).open("rb", buffering=1 << 18) as file:
        for line in file:
            run.size += len(line)
            if not line.endswith(b"\n"):  # a kill cut the last line
                run.complain(f"{RESULTS}: ends in an incomplete line of {len(line)} bytes, which is left out")
                return
            run.whole = run.size
            yield line[:-1]
