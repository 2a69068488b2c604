"""Expected failures: what is known to be wrong with a target, each entry with its reason.

An entry that nothing needs any more is reported, but fails nothing: another version of a runtime may have mended it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from ....cases import family_of
from ....cases.specs.wrapping import WRAPS
from ....reference import FAULTS, FORMATS, clauses_of, fault_named, operator_names, versions_of
from ...judging.judgement import FAILING, UNTRIED, WITHOUT_RUN, Judgement, Verdict
from ...probes.probe import Probe
from ...probes.selection import UnknownName
from ...targets.target import Target
from ...targets.toml_lines import line_of, parse_toml
from ..result import Result
from .former import FormerWords, in_words_of_today
from .version_range import in_numbers, in_range, is_numbers, is_range

__all__ = [
    "Entry",
    "ExpectedFailureError",
    "Failure",
    "applying",
    "expectations_of",
    "matching",
    "parse_expected",
    "read_expected",
    "shipped_for",
    "stale",
    "suspects",
]

_LISTS = ("versions", "types", "features", "clauses", "faults", "cases", "verdicts")
_PATTERNS = ("clauses", "faults")
_TEXTS = ("reason", "op", "link", "runtime")
_CPU = "CPUExecutionProvider"


class ExpectedFailureError(ValueError):
    """A file of expected failures is wrong; the text names the file, the line, the entry and the key, in one line."""


@dataclass(frozen=True)
class Failure:
    """A failure that an entry may be about: the verdict on a case, the clause that is broken, and what explains it."""

    verdict: Verdict
    clause: str | None = None
    diagnosis: tuple[str, ...] = ()

    @staticmethod
    def of(said: Verdict | Judgement | Result | Failure) -> Failure:
        """The failure that a judgement or a result tells of."""
        if isinstance(said, Failure):
            return said
        if isinstance(said, Verdict):
            return Failure(said)
        return Failure(said.verdict, said.clause, tuple(getattr(said, "diagnosis", ())))


@dataclass(frozen=True)
class Entry:
    """One known failure. Empty tuples match everything; a case must match all that is given.

    versions
        Of the operator: numbers, or ranges like ``"7-14"``.
    features
        The case has all of them.
    clauses
        Patterns of ids, of which one must be that of the clause that is broken.
    faults
        Patterns of ids, of which one must be among those that explain the failure.
    cases
        Patterns of case ids, of which one must match.
    runtime
        Versions of the runtime that the entry is about, like ``">=1.20, <1.23"``; empty for all.
    program
        The runtime by the name that it gives itself, where many have one adapter; empty for any.
    """

    reason: str
    op: str
    versions: tuple[int | str, ...] = ()
    types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    clauses: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    link: str = ""
    runtime: str = ""
    program: str = ""

    def covers(self, probe: Probe) -> bool:
        """Whether the entry is about this case."""
        return (
            probe.op == self.op
            and (not self.versions or any(in_numbers(probe.version, given) for given in self.versions))
            and (not self.types or probe.type in self.types)
            and set(self.features) <= probe.features
            and (not self.cases or any(fnmatchcase(probe.id, pattern) for pattern in self.cases))
        )

    def expects(self, probe: Probe, said: Verdict | Judgement | Result | Failure) -> bool:
        """Whether the entry expects this of this case."""
        failure = Failure.of(said)
        return (
            failure.verdict in FAILING
            and (not self.verdicts or failure.verdict.value in self.verdicts)
            and (not self.clauses or any(fnmatchcase(failure.clause or "", pattern) for pattern in self.clauses))
            and (
                not self.faults
                or any(fnmatchcase(fault, pattern) for fault in failure.diagnosis for pattern in self.faults)
            )
            and self.covers(probe)
        )

    def applies(self, version: str) -> bool:
        """Whether the entry is about this version of the runtime."""
        return not self.runtime or in_range(version, self.runtime)


def applying(entries: Iterable[Entry], description: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The entries that are about the runtime which describes itself so."""
    version, name = str(description.get("version") or ""), description.get("runtime")
    return tuple(e for e in entries if e.applies(version) and (not e.program or e.program == name))


def parse_expected(text: str, place: str) -> tuple[Entry, ...]:
    """The entries of a TOML file. Raises ExpectedFailureError."""
    return _parse(text, place)[1]


def read_expected(path: Path) -> tuple[Entry, ...]:
    """The entries of a file. Raises ExpectedFailureError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExpectedFailureError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    return parse_expected(text, str(path))


def _parse(text: str, place: str, *, own: bool = False) -> tuple[dict[str, Any], tuple[Entry, ...]]:
    """The target that a file is about, and its entries. The names in a file of our `own` have been looked up by our
    tests: every run reads them, and what there is to look them up in takes longer to load than the files."""
    try:
        content = parse_toml(text)
    except ValueError as error:
        raise ExpectedFailureError(f"{place}: {error}") from None
    rows, header = content.pop("expected", []), content.pop("target", {})
    if content or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ExpectedFailureError(f"{place}: holds tables [[expected]], perhaps one [target], and nothing else")
    known = ("adapter", "provider", "program", "runtime")
    options = header.pop("options", {}) if isinstance(header, dict) else {}
    if not isinstance(options, dict):
        raise ExpectedFailureError(f"{place}: [target] options is a table, as in targets.toml")
    if not isinstance(header, dict) or not all(key in known and isinstance(v, str) for key, v in header.items()):
        raise ExpectedFailureError(f"{place}: [target] holds texts: {', '.join(known)}")
    if "runtime" in header and not is_range(header["runtime"]):
        raise ExpectedFailureError(f"{place}: [target] runtime: {header['runtime']!r} is no range like '>=1.20, <1.23'")
    entries = []
    former: dict[str, None] = {}
    for number, given in enumerate(rows):
        row, changes = in_words_of_today(given)
        former.update(dict.fromkeys(changes))
        if row is None:
            continue
        try:
            entry = _entry(row, own)
        except ValueError as error:
            key, complaint = error.args
            line = line_of(text, ("expected", number, key)) or line_of(text, ("expected", number))
            where = place if line is None else f"{place}:{line}"
            raise ExpectedFailureError(f"{where}: entry {number + 1}: {complaint}") from None
        software = {"program": header.get("program", ""), "runtime": entry.runtime or header.get("runtime", "")}
        entries.append(replace(entry, **software))
    if former:
        warnings.warn(f"{place} has words of onnxspec 0.2, read: {'; '.join(former)}", FormerWords, stacklevel=2)
    return {**header, "options": options}, tuple(entries)


def _entry(row: Mapping[str, Any], own: bool) -> Entry:
    """The entry of a table. Raises ValueError with the key and the complaint."""
    for key, value in row.items():
        if key in _LISTS:
            if not isinstance(value, list) or not value or not all(_fits(key, v) for v in value):
                form = "whole numbers, or ranges like '7-14'" if key == "versions" else "texts"
                raise ValueError(key, f"{key} is a list of {form}, not {value!r}")
        elif key not in _TEXTS:
            raise ValueError(key, f"unknown key {key!r}")
        elif not isinstance(value, str) or not value:
            raise ValueError(key, f"{key} is a text, not {value!r}")
    for key in ("reason", "op"):
        if key not in row:
            raise ValueError(key, f"{key} is missing")
    if not own:
        _require_names(row)
    if "runtime" in row and not is_range(row["runtime"]):
        raise ValueError("runtime", f"runtime: {row['runtime']!r} is no range like '>=1.20, <1.23'")
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Entry(**fields)


def _require_names(row: Mapping[str, Any]) -> None:
    """Raise ValueError, with the key and the complaint, for a name that nothing has: the entry would never match."""
    op, kinds = row["op"], dict(_KINDS)
    if op not in operator_names():
        # Of a directory with a model that no document speaks of it is the graph's name, which can be anything.
        if "cases" not in row or {"features", "clauses", "faults"} & set(row):
            near = UnknownName("operator", op, operator_names())
            raise ValueError("op", f"op: {near}; the name of a directory's graph goes with cases, types and versions")
        del kinds["types"]
    for key, (kind, names) in kinds.items():
        for given in row.get(key, ()):
            if key == "faults" and (scoped := fault_named(given)) is not None and scoped.concerns(op):
                continue  # made in one place only, as a diagnosis names it
            if not any(fnmatchcase(name, given) if key in _PATTERNS else name == given for name in names(op)):
                raise ValueError(key, f"{key}: {UnknownName(kind, given, names(op), f' of {op}')}")


@cache
def _features(op: str) -> tuple[str, ...]:
    """All that a case of an operator can have: of a profile, wrapped, or a directory."""
    wrapped = {"wrapped", *(f"wrapped-{name}" for name in WRAPS)}
    features = frozenset(wrapped).union(*(family_of(op).all_features(op, version) for version in versions_of(op)))
    return tuple(sorted(features))


@cache
def _clauses(op: str) -> tuple[str, ...]:
    return tuple(clause.id for clause in clauses_of(op))


@cache
def _faults(op: str) -> tuple[str, ...]:
    return tuple(id for id, fault in FAULTS.items() if fault.concerns(op))


_KINDS: dict[str, tuple[str, Callable[[str], Sequence[str]]]] = {
    "verdicts": ("failing verdict", lambda op: [verdict.value for verdict in Verdict if verdict in FAILING]),
    "types": ("type", lambda op: list(FORMATS)),
    "features": ("feature", _features),
    "clauses": ("clause", _clauses),
    "faults": ("fault", _faults),
}
"""Keys that hold names to what those are called, and to all that there are for an operator."""


def _fits(key: str, value: object) -> bool:
    if key == "versions":
        return type(value) is int or (isinstance(value, str) and is_numbers(value))
    return isinstance(value, str)


@cache
def _shipped() -> tuple[tuple[dict[str, Any], tuple[Entry, ...]], ...]:
    folder = resources.files(__package__ or "onnxspec.conformance.results.expected")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return tuple(_parse(file.read_text(encoding="utf-8"), file.name, own=True) for file in files)


def shipped_for(target: Target) -> tuple[Entry, ...]:
    """The entries that come with this release: from files whose [target] has the adapter, the provider and, where it
    names some, the options of this one."""
    provider = str(target.options.get("provider", _CPU))
    return tuple(
        entry
        for header, entries in _shipped()
        if header.get("adapter") == target.adapter and header.get("provider", provider) == provider
        if header["options"].items() <= target.options.items()
        for entry in entries
    )


def expectations_of(target: Target) -> tuple[Entry, ...]:
    """The entries for a target: those of its own file where it names one, else the shipped ones.

    Raises ExpectedFailureError.
    """
    return read_expected(Path(target.expected)) if target.expected else shipped_for(target)


def suspects(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Patterns of ids of the faults that entries name: what a target is known for."""
    return tuple(pattern for entry in entries for pattern in entry.faults)


def matching(entries: Iterable[Entry], probe: Probe, said: Judgement | Result | Failure) -> Entry | None:
    """The first entry that expects this of this case."""
    failure = Failure.of(said)
    return next((entry for entry in entries if entry.expects(probe, failure)), None)


def stale(entries: Iterable[Entry], outcomes: Iterable[tuple[Probe, Verdict | Result | Failure]]) -> list[Entry]:
    """Entries that cover cases that ran, none of which fails as expected any more. What was refused says nothing."""
    seen = ((probe, Failure.of(outcome)) for probe, outcome in outcomes)
    ran = [(probe, f) for probe, f in seen if f.verdict not in WITHOUT_RUN | UNTRIED]
    return [
        entry
        for entry in entries
        if any(entry.covers(probe) for probe, _ in ran) and not any(entry.expects(probe, f) for probe, f in ran)
    ]
