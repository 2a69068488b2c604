"""Expected failures: known failures of a target, each entry with its reason.

An entry without a failure any more is reported, and does not fail the run: another version of a runtime may have fixed
it.
"""

from __future__ import annotations

import operator
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from fnmatch import fnmatchcase
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ....cases import PROFILES, family_of
from ....cases.specs.wrapping import WRAPS
from ....reference import FAULTS, FORMATS, Fault, clauses_of, fault_named, operator_names, versions_of
from ....reference.errors import UserError
from ....reference.faults.scope import retirement
from ...border.typed_toml import TomlDocument
from ...judging.judgement import FAILING, UNTRIED, WITHOUT_RUN, Judgement, Verdict
from ...probes.drawn import fresh_profile, split_nonce
from ...probes.probe import Probe
from ...probes.selection import UnknownName, probes_of_profile
from ...targets.target import Target
from ..result import Result

_PATTERNS = ("clauses", "faults")
_CPU = "CPUExecutionProvider"


UNWRITTEN = "not written yet"
"""The reason of a generated entry: a person must replace it with the reason why the failure is accepted."""


Failure = Judgement | Result
"""A failure, of which entries compare the verdict, the violated clause, the diagnosis and the flags."""

Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[tuple[str, ...], Meta(min_length=1)]
Versions = Annotated[tuple[int | str, ...], Meta(min_length=1)]


class Entry(Struct, frozen=True):
    """One known failure. Empty tuples match everything; a case must match all non-empty fields.

    versions
        Of the operator: numbers, or ranges like ``"7-14"``.
    features
        The case has all of them.
    clauses
        Patterns of ids, of which one must match the violated clause.
    faults
        Patterns of ids of faults. The entry covers failures that one of them explains, alone or together with others;
        the failure is known if entries name all its faults.
    flags
        The failure has all of them.
    cases
        Patterns of case ids, of which one must match.
    runtime
        Versions of the runtime that the entry covers, like ``">=1.20, <1.23"``; empty for all.
    program
        The runtime's own name, where several runtimes share one adapter; empty for any.
    """

    reason: Text
    op: Text
    versions: Versions = ()
    types: Texts = ()
    features: Texts = ()
    clauses: Texts = ()
    faults: Texts = ()
    flags: Texts = ()
    cases: Texts = ()
    verdicts: Texts = ()
    link: Text = ""
    runtime: Text = ""
    program: Text = ""

    def covers(self, probe: Probe) -> bool:
        """Return whether the entry covers this case."""
        return (
            probe.op == self.op
            and (not self.versions or any(in_numbers(probe.version, version) for version in self.versions))
            and (not self.types or probe.type in self.types)
            and set(self.features) <= probe.features
            and (not self.cases or any(fnmatchcase(probe.id, pattern) for pattern in self.cases))
        )

    def expects(self, probe: Probe, failure: Failure) -> bool:
        """Return whether the entry covers this failure; :func:`matching` returns whether the failure is known."""
        return (
            failure.verdict in FAILING
            and (not self.verdicts or failure.verdict.value in self.verdicts)
            and set(self.flags) <= {*failure.flags}
            and (not self.clauses or any(fnmatchcase(failure.clause or "", pattern) for pattern in self.clauses))
            and (
                not self.faults
                or any(fnmatchcase(fault, pattern) for fault in failure.diagnosis for pattern in self.faults)
            )
            and self.covers(probe)
        )

    def applies(self, version: str) -> bool:
        """Return whether the entry covers this version of the runtime."""
        return not self.runtime or in_range(version, self.runtime)


class _About(Struct, frozen=True):
    """The target of a file."""

    adapter: Text = ""
    provider: Text = ""
    program: Text = ""
    runtime: Text = ""
    options: dict[str, Any] = {}


def applying(entries: Iterable[Entry], description: Mapping[str, Any]) -> tuple[Entry, ...]:
    """Return the entries for the runtime with this description."""
    version, name = str(description.get("version") or ""), description.get("runtime")
    return tuple(e for e in entries if e.applies(version) and (not e.program or e.program == name))


def parse_expected(text: str, place: str) -> tuple[Entry, ...]:
    """Return the entries of a TOML file. Raise UserError."""
    return _entries(TomlDocument(text, place, UserError))[1]


def read_expected(path: Path) -> tuple[Entry, ...]:
    """Return the entries of a file. Raise UserError."""
    return _entries(TomlDocument.read(path, UserError))[1]


def _entries(document: TomlDocument, *, own: bool = False) -> tuple[_About, tuple[Entry, ...]]:
    """Return the target of a file, and its entries.

    Names in a file of onnxspec's `own` are not checked here: tests have checked them. Every run reads these files, and
    loading the tables of names takes longer than loading the files.
    """
    target = document.typed(document.content.pop("target", {}), _About, ("target",))
    if target.runtime and not is_range(target.runtime):
        raise document.wrong(("target", "runtime"), _no_range(target.runtime))
    entries = []
    for number, table in enumerate(document.tables("expected")):
        path = ("expected", number)
        entry = document.typed(table, Entry, path)
        try:
            _require_right(entry, own)
        except ValueError as error:
            key, complaint = error.args
            raise document.wrong((*path, key), complaint) from None
        entries.append(replace(entry, program=target.program, runtime=entry.runtime or target.runtime))
    return target, tuple(entries)


def _require_right(entry: Entry, own: bool) -> None:
    """Raise ValueError, with the key and the message, for an invalid entry."""
    for version_range in entry.versions:
        if isinstance(version_range, str) and not is_numbers(version_range):
            raise ValueError("versions", f"must be whole numbers, or ranges like '7-14', is {version_range!r}")
    if entry.runtime and not is_range(entry.runtime):
        raise ValueError("runtime", _no_range(entry.runtime))
    if not own:
        _require_names(entry)


def _no_range(text: str) -> str:
    return f"{text!r} is no range like '>=1.20, <1.23'"


def _require_names(entry: Entry) -> None:
    """Raise ValueError, with the key and the message, for an unknown name, with which the entry would never match."""
    op, kinds = entry.op, dict(_KINDS)
    if op not in operator_names():
        # For a directory whose model no document describes, `op` is the graph's name, which is arbitrary.
        if not entry.cases or entry.features or entry.clauses or entry.faults:
            message = UnknownName("operator", op, operator_names())
            raise ValueError("op", f"{message}; the name of a directory's graph goes with cases, types and versions")
        del kinds["types"]
    for key, (kind, names) in kinds.items():
        for given in getattr(entry, key):
            if key == "faults" and (scoped := fault_named(given)) is not None and scoped.concerns(op):
                continue  # a fault in a single scope, as in a diagnosis
            if key == "faults" and (replacement := retirement(given)) is not None:
                warnings.warn(f"fault {given!r} is gone: {replacement}", stacklevel=2)
                continue
            if not any(fnmatchcase(name, given) if key in _PATTERNS else name == given for name in names(op)):
                raise ValueError(key, str(UnknownName(kind, given, names(op), f" of {op}")))


@cache
def _features(op: str) -> tuple[str, ...]:
    """Return all features of cases of an operator: of profiles, wrapped, or directories."""
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
"""Keys with names: the noun for one name, and the function that lists all names of an operator."""


_PROVIDERS = re.compile(r'^provider = "(.*)"$', re.MULTILINE)


@cache
def _shipped(adapter: str, provider: str) -> tuple[tuple[_About, tuple[Entry, ...]], ...]:
    """Return the files that may be for an adapter with a provider.

    Only files that name both are parsed: parsing all of them takes a twentieth of a second in the shortest run.
    """
    folder = resources.files(__package__ or "onnxspec.conformance.results.expected")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    return tuple(
        _entries(TomlDocument(text, name, UserError), own=True)
        for name, text in texts.items()
        if f'"{adapter}"' in text and provider in (_PROVIDERS.findall(text) or (provider,))
    )


def shipped_for(target: Target) -> tuple[Entry, ...]:
    """Return the entries of this release for a target.

    They are those of files whose [target] has the adapter, the provider and, if it names any, the options of
    ``target``.
    """
    provider = str(target.options.get("provider", _CPU))
    return tuple(
        entry
        for file_target, entries in _shipped(target.adapter, provider)
        if file_target.adapter == target.adapter and file_target.provider in ("", provider)
        if file_target.options.items() <= target.options.items()
        for entry in entries
    )


def expectations_of(target: Target) -> tuple[Entry, ...]:
    """Return the entries for a target: those of its own file if it names one, else the shipped ones.

    Raise UserError.
    """
    return read_expected(Path(target.expected)) if target.expected else shipped_for(target)


def suspects(entries: Iterable[Entry]) -> tuple[str, ...]:
    """Return the patterns of ids of the faults that entries name, which a target is known for."""
    return tuple(pattern for entry in entries for pattern in entry.faults)


def listed_faults(entries: Iterable[Entry], probe: Probe, failure: Failure) -> list[Fault]:
    """Return the faults that the entries for a failure name, in the order of the table."""
    covering = [entry for entry in entries if entry.faults and replace(entry, faults=()).expects(probe, failure)]
    by_id: dict[str, Fault] = {}
    for pattern in suspects(covering):
        named = fault_named(pattern)
        matching_faults = [named] if named is not None else [f for id, f in FAULTS.items() if fnmatchcase(id, pattern)]
        by_id |= {fault.id: fault for fault in matching_faults}
    ranks = {id: number for number, id in enumerate(FAULTS)}
    ordered = sorted(by_id.values(), key=lambda fault: ranks.get(fault.id.partition("@")[0], len(ranks)))
    return [fault for fault in ordered if fault.applies(probe.op, probe.version)]


def matching(entries: Iterable[Entry], probe: Probe, failure: Failure) -> Entry | None:
    """Return the first entry by which this failure is known, or None.

    Entries that name faults must together name all faults of the diagnosis: an unlisted fault beside a listed one is
    new.
    """
    expecting = [entry for entry in entries if entry.expects(probe, failure)]
    listed = suspects(expecting)
    if all(any(fnmatchcase(fault, pattern) for pattern in listed) for fault in failure.diagnosis):
        return next(iter(expecting), None)
    return next((entry for entry in expecting if not entry.faults), None)


def unlisted_faults(entries: Iterable[Entry], probe: Probe, result: Result) -> list[str]:
    """Return the faults of a known failure that no entry for it names; an entry without ``faults`` covers any cause."""
    listed = suspects(entry for entry in entries if entry.expects(probe, result))
    return [fault for fault in result.diagnosis if not any(fnmatchcase(fault, pattern) for pattern in listed)]


def stale(entries: Iterable[Entry], outcomes: Iterable[tuple[Probe, Failure]]) -> list[Entry]:
    """Return the entries that cover cases that ran, none of which fails as expected. Refused cases do not count."""
    ran = [(probe, f) for probe, f in outcomes if f.verdict not in WITHOUT_RUN | UNTRIED]
    return [
        entry
        for entry in entries
        if any(entry.covers(probe) for probe, _ in ran) and not any(entry.expects(probe, f) for probe, f in ran)
    ]


_WHOLE, _BESIDE = "core", "quantized"
"""The profile that shows every expected failure, and the one for failures that show only there."""


def decidable_entries(entries: Sequence[Entry], done: Set[str], profile: str) -> list[Entry]:
    """Return the expected failures that a run decides: it includes every case that could show them.

    `done` has the ids of the cases that ran. A small profile may have only one case of an entry, which passes, while
    other cases still need the entry. Fresh cases decide no entry.
    """
    if not entries or fresh_profile(profile) is not None:
        return []
    pinned, _ = split_nonce(profile)
    deciding = probes_of_profile(pinned if pinned == PROFILES[2] else _WHOLE)
    decided = []
    for entry in entries:
        covered = [probe for probe in deciding if entry.covers(probe)]
        covered = covered or [probe for probe in probes_of_profile(_BESIDE) if entry.covers(probe)]
        if all(probe.id in done for probe in covered):
            decided.append(entry)
    return decided


# Ranges of versions: of runtimes, like ``>=1.20, <1.23``, and of operators, like ``7-14``

_COMPARISONS: dict[str, Callable[[tuple[int, ...], tuple[int, ...]], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    "<": operator.lt,
}
# No version has more digits in a number, and Python refuses to read thousands of digits.
_BOUND = re.compile(r"\s*(>=|<=|==|!=|>|<)\s*(\d{1,18}(?:\.\d{1,18})*)\s*")
_NUMBERS = re.compile(r"(\d{0,18})-(\d{0,18})")
_VERSION = re.compile(r"v?(\d{1,18}(?:\.\d{1,18})*)(?!\.?\d)")


def is_range(text: str) -> bool:
    """Return whether a text is a range of versions: bounds separated by commas, all of which must hold."""
    return bool(text.strip()) and all(_BOUND.fullmatch(part) for part in text.split(","))


def in_range(version: str, text: str) -> bool:
    """Return whether a version is in a range; a version that does not begin with numbers is in none.

    Only the numbers count: ``1.23.2+gpu`` and ``1.23.2.dev1`` are 1.23.2, and 1.23 is 1.23.0.
    """
    given = _VERSION.match(version)
    if given is None:
        return False
    bounds = [m for part in text.split(",") if (m := _BOUND.fullmatch(part))]
    return all(_COMPARISONS[m[1]](_numbers(given[1]), _numbers(m[2])) for m in bounds)


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version without zeros at the end, so that 1.23 equals 1.23.0."""
    return tuple(map(int, re.sub(r"(\.0+)+$", "", version).split(".")))


def is_numbers(text: str) -> bool:
    """Return whether a text is a range of whole numbers: ``7-14``, ``7-`` or ``-14``."""
    return _NUMBERS.fullmatch(text) is not None and text != "-"


def in_numbers(number: int, given: int | str) -> bool:
    """Return whether a number equals the given one, or is in the range given as a text."""
    if isinstance(given, int):
        return number == given
    low, _, high = given.partition("-")
    return (not low or int(low) <= number) and (not high or number <= int(high))
