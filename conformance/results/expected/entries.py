"""Expected failures: what is known to be wrong with a target, each entry with its reason.

An entry that nothing needs any more is reported, but fails nothing: another version of a runtime may have mended it.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
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
from ....reference.faults.retired import retirement
from ...border.typed_toml import TomlDocument
from ...judging.judgement import FAILING, UNTRIED, WITHOUT_RUN, Judgement, Verdict
from ...probes.drawn import fresh_profile, split_nonce
from ...probes.probe import Probe
from ...probes.selection import UnknownName, probes_of_profile
from ...targets.target import Target
from ..result import Result
from .version_range import in_numbers, in_range, is_numbers, is_range

_PATTERNS = ("clauses", "faults")
_CPU = "CPUExecutionProvider"


class ExpectedFailureError(UserError):
    """A file of expected failures is wrong; the text names the file, the line, the entry and the key, in one line."""


UNWRITTEN = "not written yet"
"""The reason of an entry that a tool has made: a person is to say why the failure is accepted."""


@dataclass(frozen=True)
class Failure:
    """A failure that an entry may be about: the verdict on a case, the clause that is broken, what explains it, and
    what else was noted of it."""

    verdict: Verdict
    clause: str | None = None
    diagnosis: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()

    @staticmethod
    def of(of_case: Verdict | Judgement | Result | Failure) -> Failure:
        """The failure that a judgement or a result tells of."""
        if isinstance(of_case, Failure):
            return of_case
        if isinstance(of_case, Verdict):
            return Failure(of_case)
        return Failure(of_case.verdict, of_case.clause, tuple(getattr(of_case, "diagnosis", ())), of_case.flags)


Text = Annotated[str, Meta(min_length=1)]
Texts = Annotated[tuple[str, ...], Meta(min_length=1)]
Versions = Annotated[tuple[int | str, ...], Meta(min_length=1)]


class Entry(Struct, frozen=True):
    """One known failure. Empty tuples match everything; a case must match all that is given.

    versions
        Of the operator: numbers, or ranges like ``"7-14"``.
    features
        The case has all of them.
    clauses
        Patterns of ids, of which one must be that of the clause that is broken.
    faults
        Patterns of ids of faults. The entry is about failures that one of them explains, alone or beside others; the
        failure is known if entries name all its faults.
    flags
        The failure has all of them.
    cases
        Patterns of case ids, of which one must match.
    runtime
        Versions of the runtime that the entry is about, like ``">=1.20, <1.23"``; empty for all.
    program
        The runtime by the name that it gives itself, where many have one adapter; empty for any.
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
        """Tell whether the entry is about this case."""
        return (
            probe.op == self.op
            and (not self.versions or any(in_numbers(probe.version, given) for given in self.versions))
            and (not self.types or probe.type in self.types)
            and set(self.features) <= probe.features
            and (not self.cases or any(fnmatchcase(probe.id, pattern) for pattern in self.cases))
        )

    def expects(self, probe: Probe, of_case: Verdict | Judgement | Result | Failure) -> bool:
        """Return whether the entry is about this failure; :func:`matching` says whether the failure is known."""
        failure = Failure.of(of_case)
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
        """Tell whether the entry is about this version of the runtime."""
        return not self.runtime or in_range(version, self.runtime)


class _About(Struct, frozen=True):
    """The target that a file is about."""

    adapter: Text = ""
    provider: Text = ""
    program: Text = ""
    runtime: Text = ""
    options: dict[str, Any] = {}


def applying(entries: Iterable[Entry], description: Mapping[str, Any]) -> tuple[Entry, ...]:
    """The entries that are about the runtime which describes itself so."""
    version, name = str(description.get("version") or ""), description.get("runtime")
    return tuple(e for e in entries if e.applies(version) and (not e.program or e.program == name))


def parse_expected(text: str, place: str) -> tuple[Entry, ...]:
    """The entries of a TOML file. Raises ExpectedFailureError."""
    return _entries(TomlDocument(text, place, ExpectedFailureError))[1]


def read_expected(path: Path) -> tuple[Entry, ...]:
    """The entries of a file. Raises ExpectedFailureError."""
    return _entries(TomlDocument.read(path, ExpectedFailureError))[1]


def _entries(document: TomlDocument, *, own: bool = False) -> tuple[_About, tuple[Entry, ...]]:
    """The target that a file is about, and its entries. The names in a file of our `own` have been looked up by our
    tests: every run reads them, and what there is to look them up in takes longer to load than the files."""
    about = document.typed(document.content.pop("target", {}), _About, ("target",))
    if about.runtime and not is_range(about.runtime):
        raise document.wrong(("target", "runtime"), _no_range(about.runtime))
    entries = []
    for number, given in enumerate(document.tables("expected")):
        path = ("expected", number)
        entry = document.typed(given, Entry, path)
        try:
            _require_right(entry, own)
        except ValueError as error:
            key, complaint = error.args
            raise document.wrong((*path, key), complaint) from None
        entries.append(replace(entry, program=about.program, runtime=entry.runtime or about.runtime))
    return about, tuple(entries)


def _require_right(entry: Entry, own: bool) -> None:
    """Raise ValueError, with the key and the complaint, for what no entry can say."""
    for given in entry.versions:
        if isinstance(given, str) and not is_numbers(given):
            raise ValueError("versions", f"must be whole numbers, or ranges like '7-14', is {given!r}")
    if entry.runtime and not is_range(entry.runtime):
        raise ValueError("runtime", _no_range(entry.runtime))
    if not own:
        _require_names(entry)


def _no_range(text: str) -> str:
    return f"{text!r} is no range like '>=1.20, <1.23'"


def _require_names(entry: Entry) -> None:
    """Raise ValueError, with the key and the complaint, for a name that nothing has: the entry would never match."""
    op, kinds = entry.op, dict(_KINDS)
    if op not in operator_names():
        # Of a directory with a model that no document speaks of it is the graph's name, which can be anything.
        if not entry.cases or entry.features or entry.clauses or entry.faults:
            near = UnknownName("operator", op, operator_names())
            raise ValueError("op", f"{near}; the name of a directory's graph goes with cases, types and versions")
        del kinds["types"]
    for key, (kind, names) in kinds.items():
        for given in getattr(entry, key):
            if key == "faults" and (scoped := fault_named(given)) is not None and scoped.concerns(op):
                continue  # made in one place only, as a diagnosis names it
            if key == "faults" and (instead := retirement(given)) is not None:
                warnings.warn(f"fault {given!r} is gone: {instead}", stacklevel=2)
                continue
            if not any(fnmatchcase(name, given) if key in _PATTERNS else name == given for name in names(op)):
                raise ValueError(key, str(UnknownName(kind, given, names(op), f" of {op}")))


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


_PROVIDERS = re.compile(r'^provider = "(.*)"$', re.MULTILINE)


@cache
def _shipped(adapter: str, provider: str) -> tuple[tuple[_About, tuple[Entry, ...]], ...]:
    """Files that may be about an adapter with a provider. Only those that name both are parsed: to take all of them
    apart costs the shortest run a twentieth of a second."""
    folder = resources.files(__package__ or "onnxspec.conformance.results.expected")
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    texts = {file.name: file.read_text(encoding="utf-8") for file in files}
    return tuple(
        _entries(TomlDocument(text, name, ExpectedFailureError), own=True)
        for name, text in texts.items()
        if f'"{adapter}"' in text and provider in (_PROVIDERS.findall(text) or (provider,))
    )


def shipped_for(target: Target) -> tuple[Entry, ...]:
    """The entries that come with this release: from files whose [target] has the adapter, the provider and, where it
    names some, the options of this one."""
    provider = str(target.options.get("provider", _CPU))
    return tuple(
        entry
        for about, entries in _shipped(target.adapter, provider)
        if about.adapter == target.adapter and about.provider in ("", provider)
        if about.options.items() <= target.options.items()
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


def listed_faults(entries: Iterable[Entry], probe: Probe, of_case: Judgement | Result | Failure) -> list[Fault]:
    """Return the faults that the entries about a failure name, in the order of the table."""
    failure = Failure.of(of_case)
    about = [entry for entry in entries if entry.faults and replace(entry, faults=()).expects(probe, failure)]
    found: dict[str, Fault] = {}
    for pattern in suspects(about):
        named = fault_named(pattern)
        several = [named] if named is not None else [f for id, f in FAULTS.items() if fnmatchcase(id, pattern)]
        found |= {fault.id: fault for fault in several}
    places = {id: number for number, id in enumerate(FAULTS)}
    ordered = sorted(found.values(), key=lambda fault: places.get(fault.id.partition("@")[0], len(places)))
    return [fault for fault in ordered if fault.applies(probe.op, probe.version)]


def matching(entries: Iterable[Entry], probe: Probe, of_case: Judgement | Result | Failure) -> Entry | None:
    """Return the first entry by which this failure is known, or None.

    Entries that name faults must name all that explain the failure, together: beside a listed fault another one is new.
    """
    failure = Failure.of(of_case)
    expecting = [entry for entry in entries if entry.expects(probe, failure)]
    listed = suspects(expecting)
    if all(any(fnmatchcase(fault, pattern) for pattern in listed) for fault in failure.diagnosis):
        return next(iter(expecting), None)
    return next((entry for entry in expecting if not entry.faults), None)


def unlisted_faults(entries: Iterable[Entry], probe: Probe, result: Result) -> list[str]:
    """Return the faults that explain a known failure and that no entry about it names: one without ``faults`` covers
    any cause."""
    listed = suspects(entry for entry in entries if entry.expects(probe, result))
    return [fault for fault in result.diagnosis if not any(fnmatchcase(fault, pattern) for pattern in listed)]


def stale(entries: Iterable[Entry], outcomes: Iterable[tuple[Probe, Verdict | Result | Failure]]) -> list[Entry]:
    """Entries that cover cases that ran, none of which fails as expected any more. What was refused says nothing."""
    seen = ((probe, Failure.of(outcome)) for probe, outcome in outcomes)
    ran = [(probe, f) for probe, f in seen if f.verdict not in WITHOUT_RUN | UNTRIED]
    return [
        entry
        for entry in entries
        if any(entry.covers(probe) for probe, _ in ran) and not any(entry.expects(probe, f) for probe, f in ran)
    ]


_WHOLE, _BESIDE = "core", "quantized"
"""The profile in which every expected failure shows, but for what shows in the one beside it alone."""


def decidable_entries(entries: Sequence[Entry], done: Set[str], profile: str) -> list[Entry]:
    """The expected failures of which the cases that ran (their ids) tell whether they still happen: those of which no
    case is missing that could show them. A small profile may have one case that an entry is about, which happens to
    pass, where other cases still need the entry. Fresh cases tell of none."""
    if not entries or fresh_profile(profile) is not None:
        return []
    pinned, _ = split_nonce(profile)
    telling = probes_of_profile(pinned if pinned == PROFILES[2] else _WHOLE)
    decided = []
    for entry in entries:
        covered = [probe for probe in telling if entry.covers(probe)]
        covered = covered or [probe for probe in probes_of_profile(_BESIDE) if entry.covers(probe)]
        if all(probe.id in done for probe in covered):
            decided.append(entry)
    return decided
