"""A run folder as it is read: by a run that goes on, by merge, by reports, by everyone.

journal.jsonl holds what is known; results.jsonl is made from it, and is read only where it stands alone. What cannot be
read is named, with file and line, and the rest is used; nothing is ever written here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from msgspec import Struct, field, structs

from ..border.strict_json import MalformedJson, decode, parse, typed
from ..judging.judgement import UNTRIED
from .lines import Amended, Begun, Ended, Filled, Line, Observed, Recorded, TargetFinished, TargetStarted, amended
from .records import SCHEMA, RunRecord, TargetRecord
from .result import Result

JOURNAL, RESULTS, RUN = "journal.jsonl", "results.jsonl", "run.json"

NODE_CASES = "cases"
"""The folder of the cases of a model's nodes, which are written before the run begins."""

LONGEST_LINE = 16 << 20
LARGEST_RUN = 256 << 20
_RECORDED = b'{"record":"recorded"'
_SHOWN = 20  # problems that are told one by one


class NoRun(ValueError):
    """A folder holds no run that this version reads; the text says why, in one line, and names the folder."""


class Held(Struct):
    """The content of a journal.

    begun
        Its first lines, one for each time that the run began or went on.
    results
        The one result of each target and case, with all that became known of it, in the order of the lines.
    filled
        By target the cases that the run filled up with, each as the line that rebuilds it.
    recorded
        Purpose, target and case of jobs whose outcomes are kept.
    whole
        Bytes up to the end of the last whole line; what follows, if anything, was cut off by a kill.
    damaged, amiss, problems
        How many lines say nothing; how many things are amiss, contradictions among them; the first of them in words.
    """

    begun: list[Begun] = []
    filled: dict[str, list[str]] = {}
    results: dict[tuple[str, str], Result] = {}
    recorded: set[tuple[str, str, str]] = field(default_factory=set)
    descriptions: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    all_seconds: float = 0.0
    whole: int = 0
    size: int = 0
    damaged: int = 0
    amiss: int = 0
    problems: list[str] = []
    _names: dict[tuple[str, ...], tuple[str, ...]] = {}

    def take(self, line: Line, place: str = "") -> None:
        """Add what a line says; `place` names it where it contradicts another."""
        if isinstance(line, Observed):
            self.observe(line.result, place)
        elif isinstance(line, Amended):
            key = line.target, line.case
            if key in self.results:
                self.results[key] = amended(self.results[key], line)
            else:
                self.complain(f"{place}: amends case {line.case} on {line.target}, which has no result")
        elif isinstance(line, Begun):
            self.begun.append(line)
        elif isinstance(line, Recorded):
            self.recorded.add((line.purpose, line.target, line.case))
        elif isinstance(line, Filled):
            self.filled.setdefault(line.target, []).extend(line.cases)
        elif isinstance(line, TargetStarted):
            self.descriptions[line.target] = line.description
        elif isinstance(line, TargetFinished):
            self.seconds[line.target] = self.seconds.get(line.target, 0.0) + line.seconds
        elif isinstance(line, Ended):
            self.all_seconds += line.seconds

    def observe(self, result: Result, place: str) -> None:
        """Add a result; as `take` otherwise."""
        key = result.target, result.case
        before = self.results.get(key)
        if before is None or before.verdict in UNTRIED:
            # In the order in which they count: what a target was not tried with was run later.
            if before is not None:
                del self.results[key]
            self.results[key] = self._shared(result)
        elif result.verdict not in UNTRIED and gist(before) != gist(result):
            self.complain(
                f"{place}: a second result of case {result.case} on {result.target} ({result.verdict.value}), which "
                f"contradicts the first ({before.verdict.value}); the first counts"
            )

    def _shared(self, result: Result) -> Result:
        """The result with the names of others that have the same: nearly all of its memory, and few differ in them."""
        share = self._names.setdefault
        clauses, features = (share(names, names) for names in (result.clauses, result.features))
        return structs.replace(result, clauses=clauses, features=features)

    def damage(self, place: str, why: str) -> None:
        """Note that a line cannot be read."""
        self.damaged += 1
        self.complain(f"{place}: {why}")

    def complain(self, text: str) -> None:
        """Note what is amiss; a file of garbage is not copied into memory."""
        self.amiss += 1
        if self.amiss <= _SHOWN:
            self.problems.append(text)

    @property
    def told(self) -> tuple[str, ...]:
        """Complaints, a line each."""
        more = self.amiss - len(self.problems)
        return (*self.problems, *([f"and {more} more like these"] if more else []))


def gist(result: Result) -> tuple[object, ...]:
    """The fields in which two results of the same case must agree."""
    return result.verdict, result.reason, result.clause, result.accuracy


class RunFolder(Struct, frozen=True):
    """A run folder that was read.

    info
        run.json, None where there is none that can be read.
    problems
        What is amiss, a line each; paths are relative to the folder.
    filled
        By target the cases that the run filled up with, each as the line that rebuilds it.
    """

    path: Path
    info: RunRecord | None
    results: tuple[Result, ...]
    problems: tuple[str, ...]
    damaged: int
    filled: Mapping[str, tuple[str, ...]]


class DescribedRun(RunFolder, frozen=True, dict=True):
    """A run folder with a run.json that could be read."""

    info: RunRecord

    @cached_property
    def targets(self) -> dict[str, TargetRecord]:
        """The entries of targets, by name."""
        return {target["name"]: target for target in self.info["targets"]}


def read_described(path: Path) -> DescribedRun:
    """Read a run folder. Raises NoRun as :func:`read_folder` does, and where there is no run.json that can be read."""
    read = read_folder(path)
    if read.info is None:
        raise NoRun(f"{path}: {read.problems[0]}")
    return DescribedRun(**structs.asdict(read))


def read_folder(path: Path) -> RunFolder:
    """Read a run folder. Raises NoRun where it is none, or one of another version's form."""
    if not path.is_dir():
        raise NoRun(f"{path}: {'not a directory' if path.exists() else 'no such directory'}")
    there = [name for name in (JOURNAL, RESULTS, RUN) if (path / name).is_file()]
    if not there:
        raise NoRun(f"{path}: holds none of {JOURNAL}, {RESULTS} and {RUN}, so it is no run")
    problems: list[str] = []
    info = _described(path, problems)
    held = Held()
    source = next((name for name in (JOURNAL, RESULTS) if name in there), "")
    try:
        if source:
            held = held_in(path / source)
            if held.size > held.whole:
                cut = f"ends in an incomplete line of {held.size - held.whole} bytes, which is left out"
                held.complain(f"{source}: {cut}")
        else:
            problems.append(f"{RESULTS} is missing, so there are no results")
    except OSError as error:
        problems.append(f"{source}: cannot be read: {error.strerror or error}")
    filled = {target: tuple(cases) for target, cases in held.filled.items()}
    return RunFolder(path, info, tuple(held.results.values()), (*problems, *held.told), held.damaged, filled)


def other_schema(path: Path, schema: object, by: object) -> str:
    """Words for a folder that a version with another form has written."""
    writer = f" of onnxspec {by[:40]!a}" if isinstance(by, str) and by else ""
    form = schema if isinstance(schema, int) else "unknown"
    return f"{path}: holds a run{writer} in form {form}, this version reads and writes form {SCHEMA}"


def _described(path: Path, problems: list[str]) -> RunRecord | None:
    try:
        if (path / RUN).stat().st_size > LARGEST_RUN:
            raise MalformedJson(f"more than {LARGEST_RUN >> 20} MiB")
        plain = parse((path / RUN).read_bytes())
        if isinstance(plain, dict) and plain.get("schema") != SCHEMA:
            raise NoRun(other_schema(path, plain.get("schema"), plain.get("onnxspec")))
        info = typed(plain, RunRecord)
        datetime.fromisoformat(info["started"])
        return info
    except FileNotFoundError:
        problems.append(f"{RUN} is missing, so findings and environment are unknown")
    except NoRun:
        raise
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        problems.append(f"{RUN} cannot be read ({why}), so findings and environment are unknown")
    return None


def recorded_in(folder: Path) -> Iterator[Recorded]:
    """The records of what targets did, in the order in which they were kept; lines that cannot be read are passed over.
    Raises OSError."""
    for line in _lines(folder / JOURNAL, Held(), last=False):
        if line is not None and line.startswith(_RECORDED):
            with contextlib.suppress(MalformedJson):
                yield decode(line, Recorded)


def held_in(path: Path) -> Held:
    """The content of a journal or a results.jsonl. Raises OSError, and NoRun where it is of another version's form."""
    held = Held()
    name = path.name
    kind: Any = Result if name == RESULTS else Line
    for number, line in enumerate(_lines(path, held, last=kind is Result), 1):
        place = f"{name}:{number}"
        if line is None:
            held.damage(place, f"longer than {LONGEST_LINE >> 20} MiB")
            continue
        try:
            if kind is Result:
                held.observe(decode(line, Result), place)
            else:
                held.take(decode(line, kind) if held.begun else _first(line, path.parent), place)
        except MalformedJson as error:
            held.damage(place, str(error))
    return held


def _first(line: bytes, folder: Path) -> Line:
    """A line before which none says of which form the journal is. Raises NoRun where it is of another."""
    plain = parse(line)
    if isinstance(plain, dict) and plain.get("record") == "begun" and plain.get("schema") != SCHEMA:
        raise NoRun(other_schema(folder, plain.get("schema"), plain.get("onnxspec")))
    return cast(Line, typed(plain, cast(Any, Line)))


def _lines(path: Path, held: Held, last: bool) -> Iterator[bytes | None]:
    """The whole lines of a file without their ends, None for one that is too long to be one.

    last
        Whether a last line without an end counts: an editor may have left it out, where a kill cannot have cut it off.
    """
    with path.open("rb", buffering=1 << 18) as file:
        while True:
            line = file.readline(LONGEST_LINE)
            if not line:
                return
            held.size += len(line)
            long = not line.endswith(b"\n") and len(line) == LONGEST_LINE
            end = line
            while end and not end.endswith(b"\n"):
                end = file.readline(LONGEST_LINE) if long else b""
                held.size += len(end)
            if not end:  # the file ends before the line does
                if last and not long:
                    held.whole = held.size
                    yield line
                return
            held.whole = held.size
            yield None if long else line[:-1]
