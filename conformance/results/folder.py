"""Reader of run folders, for resumed runs, merge, reports and certificates.

Unreadable parts are reported with file and line, and the rest is used; nothing is written here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, structs

from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, decode, parse, typed
from ..judging.judgement import UNTRIED
from .lines import CasesAdded, Line, Recorded, ResultUpdate, RunFinished, RunStarted, TargetStarted, updated
from .records import SCHEMA, RunRecord, TargetRecord
from .result import Result

RESULTS, RUN = "results.jsonl", "run.json"

NODE_CASES = "cases"
"""The folder of the cases of a model's nodes, which are written before the run starts."""

LONGEST_LINE = 16 << 20
LARGEST_RUN = 256 << 20
_RECORDED = b'{"record":"recorded"'
_SHOWN = 20  # problems that are listed one by one


class LoadedRun(Struct):
    """The content of results.jsonl.

    headers
        One for each time that the run was started or resumed.
    results
        The one result of each target and case with its updates, in the order of the lines.
    filled
        By target the random cases that followed, each as the line that rebuilds it.
    whole
        Bytes up to the end of the last complete line; a kill cut off the rest, if any.
    damaged, invalid, problems
        Number of unreadable lines; number of these and of contradictions; messages on the first of them.
    """

    headers: list[RunStarted] = []
    filled: dict[str, list[str]] = {}
    results: dict[tuple[str, str], Result] = {}
    descriptions: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    all_seconds: float = 0.0
    whole: int = 0
    size: int = 0
    damaged: int = 0
    invalid: int = 0
    problems: list[str] = []
    _names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def take(self, line: Line, place: str = "") -> None:
        """Add a line; `place` locates it in messages on contradictions."""
        if isinstance(line, Result):
            self._take_result(line, place)
        elif isinstance(line, ResultUpdate):
            key = line.target, line.case
            if key in self.results:
                self.results[key] = updated(self.results[key], line)
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
        before = self.results.get(key)
        if before is None or before.verdict in UNTRIED:
            # The later result moves to the end of the order, because the case was run later.
            if before is not None:
                del self.results[key]
            self.results[key] = self._shared(result)
        elif result.verdict not in UNTRIED and gist(before) != gist(result):
            self.complain(
                f"{place}: a second result of case {result.case} on {result.target} ({result.verdict.value}), which "
                f"contradicts the first ({before.verdict.value}); the first counts"
            )

    def _shared(self, result: Result) -> Result:
        """Return the result with shared tuples of names: few differ, and they take most memory of a result."""
        share = self._names.setdefault
        clauses, features = (share(names, names) for names in (result.clauses, result.features))
        return structs.replace(result, clauses=clauses, features=features)

    def damage(self, place: str, why: str) -> None:
        """Note that a line cannot be read."""
        self.damaged += 1
        self.complain(f"{place}: {why}")

    def complain(self, text: str) -> None:
        """Note an error; only the first messages are kept, so that a garbage file does not fill memory."""
        self.invalid += 1
        if self.invalid <= _SHOWN:
            self.problems.append(text)

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages on invalid lines, a line each."""
        more = self.invalid - len(self.problems)
        return (*self.problems, *([f"and {more} more like these"] if more else []))


def gist(result: Result) -> tuple[object, ...]:
    """Return the fields in which two results of the same case must agree."""
    return result.verdict, result.reason, result.clause, result.accuracy


class RunFolder(Struct, frozen=True):
    """A run folder that was read.

    info
        run.json, None where it is missing or unreadable.
    problems
        Errors, a line each; paths are relative to the folder.
    filled
        By target the random cases that followed, each as the line that rebuilds it.
    """

    path: Path
    info: RunRecord | None
    results: tuple[Result, ...]
    problems: tuple[str, ...]
    damaged: int
    filled: Mapping[str, tuple[str, ...]]


class DescribedRun(RunFolder, frozen=True, dict=True):
    """A run folder with a readable run.json."""

    info: RunRecord

    @cached_property
    def targets(self) -> dict[str, TargetRecord]:
        """The entries of targets, by name."""
        return {target["name"]: target for target in self.info["targets"]}


def read_described(path: Path) -> DescribedRun:
    """Read a run folder. Raise RecordError as :func:`read_folder` does, and if run.json cannot be read."""
    read = read_folder(path)
    if read.info is None:
        raise RecordError(f"{path}: {read.problems[0]}")
    return DescribedRun(**structs.asdict(read))


def read_folder(path: Path) -> RunFolder:
    """Read a run folder. Raise RecordError for another folder, or one in another version's format."""
    if not path.is_dir():
        raise RecordError(f"{path}: {'not a directory' if path.exists() else 'no such directory'}")
    if not any((path / name).is_file() for name in (RESULTS, RUN)):
        raise RecordError(f"{path}: holds neither {RESULTS} nor {RUN}, so it is no run")
    problems: list[str] = []
    info = _described(path, problems)
    loaded = LoadedRun()
    try:
        loaded = load_run(path / RESULTS)
        if loaded.size > loaded.whole:
            cut = f"ends in an incomplete line of {loaded.size - loaded.whole} bytes, which is left out"
            loaded.complain(f"{RESULTS}: {cut}")
    except FileNotFoundError:
        problems.append(f"{RESULTS} is missing, so there are no results")
    except OSError as error:
        problems.append(f"{RESULTS}: cannot be read: {error.strerror or error}")
    filled = {target: tuple(cases) for target, cases in loaded.filled.items()}
    return RunFolder(path, info, tuple(loaded.results.values()), (*problems, *loaded.messages), loaded.damaged, filled)


def other_schema(path: Path, schema: object, by: object) -> str:
    """Return the message on a folder that a version with another format wrote."""
    writer = f" of onnxspec {by[:40]!a}" if isinstance(by, str) and by else ""
    form = schema if isinstance(schema, int) else "unknown"
    return f"{path}: holds a run{writer} in form {form}, this version reads and writes form {SCHEMA}"


def _described(path: Path, problems: list[str]) -> RunRecord | None:
    try:
        if (path / RUN).stat().st_size > LARGEST_RUN:
            raise MalformedJson(f"more than {LARGEST_RUN >> 20} MiB")
        plain = parse((path / RUN).read_bytes())
        if isinstance(plain, dict) and plain.get("schema") != SCHEMA:
            raise RecordError(other_schema(path, plain.get("schema"), plain.get("onnxspec")))
        info = typed(plain, RunRecord)
        datetime.fromisoformat(info["started"])
        return info
    except FileNotFoundError:
        problems.append(f"{RUN} is missing, so findings and environment are unknown")
    except RecordError:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        problems.append(f"{RUN} cannot be read ({why}), so findings and environment are unknown")
    return None


def recorded_in(folder: Path) -> Iterator[Recorded]:
    """Yield the records of targets' outcomes, in order; unreadable lines are skipped. Raise OSError."""
    for line in _lines(folder / RESULTS, LoadedRun()):
        if line is not None and line.startswith(_RECORDED):
            with contextlib.suppress(MalformedJson):
                yield decode(line, Recorded)


def load_run(path: Path) -> LoadedRun:
    """Return the content of a results.jsonl. Raise OSError, and RecordError where another version wrote it."""
    loaded = LoadedRun()
    line_type: Any = Line
    for number, line in enumerate(_lines(path, loaded), 1):
        location = f"{path.name}:{number}"
        if line is None:
            loaded.damage(location, f"longer than {LONGEST_LINE >> 20} MiB")
            continue
        try:
            record = decode(line, line_type) if loaded.headers else _before_header(line, number, path.parent)
            loaded.take(record, location)
        except MalformedJson as error:
            loaded.damage(location, str(error))
    return loaded


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


def _lines(path: Path, loaded: LoadedRun) -> Iterator[bytes | None]:
    """Yield the complete lines of a file without their ends; None for one that is too long."""
    with path.open("rb", buffering=1 << 18) as file:
        while True:
            line = file.readline(LONGEST_LINE)
            if not line:
                return
            loaded.size += len(line)
            long = not line.endswith(b"\n") and len(line) == LONGEST_LINE
            end = line
            while end and not end.endswith(b"\n"):
                end = file.readline(LONGEST_LINE) if long else b""
                loaded.size += len(end)
            if not end:  # a kill cut the last line
                return
            loaded.whole = loaded.size
            yield None if long else line[:-1]
