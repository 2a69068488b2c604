"""Selections of cases: a profile, narrowed by operator, version, type and case."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TypeVar

from ...cases import PROFILES, Spec, operator_versions, profile
from ...cases.profiles.profiles import NotListed, case_named
from ...cases.specs.family import drawn_operators
from ...reference import FORMATS, document_of, operator_names, operator_version, versions_of
from ...reference.documents.operators import operator_called
from .drawn import challenge_probes, drawn_probes, fresh_profile, split_nonce
from .naming import CaseError, UnknownName, expanded, is_folder, is_portable, portable_probes
from .probe import Probe, SpecProbe
from .unlisted import UnlistedProbe

__all__ = [
    "Selection",
    "UnknownName",
    "all_listed",
    "meant_for",
    "narrow",
    "operator_types",
    "probes_of_profile",
    "select",
    "select_probes",
    "selection_of",
]

Subject = TypeVar("Subject", Spec, Probe)


@dataclass(frozen=True)
class Selection:
    """A selection as it was asked for; empty tuples mean all.

    cases
        Case ids, or patterns of them with ``*`` and ``?``. They may name cases of any profile. Or cases themselves: the
        JSON of their specs, or paths of test-case directories.
    origins
        Where a name stands that came from a file, in front of what is said of it.
    directories
        Folders of test-case directories, which are run in place of a profile.
    """

    profile: str = "core"
    ops: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def chosen(self) -> bool:
        """Tell whether the cases are some that somebody chose, or a model's nodes, and stand for no others."""
        return bool(self.cases or self.directories)

    @property
    def narrowed(self) -> str:
        """The operators, versions and types asked for, like ``LSTM-14:float16|float32``; empty where that is all."""
        if not (self.ops or self.versions or self.types):
            return ""
        versions, types = "|".join(map(str, self.versions)), "|".join(self.types)
        return f"{'|'.join(self.ops) or '*'}-{versions or '*'}:{types or '*'}"


def selection_of(
    profile: str = "core",
    ops: Iterable[str] | None = None,
    versions: Iterable[str] | None = None,
    types: Iterable[str] | None = None,
    cases: Iterable[str] | None = None,
    base: Path | None = None,
) -> Selection:
    """Return the selection that texts ask for, given by a command, Python or pytest.

    ops
        Operators, or versions of them, like ``GRU-22``.
    cases
        As in Selection. Where all of them are folders, these are run in place of the profile.
    base
        The folder that paths of cases, and of files of cases, count from.

    Raises UnknownName for a version that is no number, and for a file of cases that cannot be read.
    """
    names, origins = expanded(cases or (), base)
    chosen, numbers = _operators_and_versions(list(ops or ()), _version_numbers(versions or ()))
    selection = Selection(profile, chosen, numbers, tuple(types or ()))
    if names and not origins and all(map(is_folder, names)):
        return replace(selection, profile="directories", directories=names)
    return replace(selection, cases=names, origins=origins)


def operator_version_called(text: str) -> tuple[str, str]:
    """Return the operator and the version, empty for all, that a text like ``GRU`` or ``GRU-22`` names."""
    name, dash, number = text.rpartition("-")
    return (operator_called(name), number) if dash and number.isdecimal() else (operator_called(text), "")


def _operators_and_versions(texts: Sequence[str], versions: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the operators and their versions. Raises CaseError for texts like LSTM-7 and GRU-14 together: a selection
    has each version of each operator."""
    pairs = [operator_version_called(text) for text in texts]
    ops = tuple(dict.fromkeys(op for op, _ in pairs))
    numbers = _version_numbers(dict.fromkeys(number for _, number in pairs if number))
    if not numbers:
        return ops, versions
    existing = list(operator_versions(None))
    asked = {(op, v) for op, v in existing for name, number in pairs if op == name and number in ("", str(v))}
    if asked != {(op, v) for op, v in existing if op in ops and v in numbers}:
        raise CaseError(f"{', '.join(texts)}: different versions of different operators: run them one after another")
    return ops, (*versions, *(number for number in numbers if number not in versions))


def _version_numbers(versions: Iterable[str]) -> tuple[int, ...]:
    """Operator versions as they were given. Raises UnknownName for one that is no number."""
    given = list(versions)
    for text in given:
        if not text.isdecimal() or len(text) > 9:
            raise UnknownName("operator version", text, sorted({v for _, v in operator_versions(None)}))
    return tuple(map(int, given))


def operator_types() -> list[str]:
    """Every operator version and type that there are cases for, like ``LSTM-14:float32``."""
    known = operator_versions(None)
    return [f"{op}-{v}:{t}" for op, v in known for t in FORMATS if t in operator_version(op, v).types]


def select_probes(selection: Selection, about: Sequence[str]) -> list[Probe]:
    """The cases of a profile as probes, in a fixed order.

    about
        The operators that are meant where the selection names none.

    Raises UnknownName for anything that does not exist or leaves nothing.
    """
    if selection.directories:
        return narrow(selection, portable_probes(selection.directories))
    profile_name, nonce = split_nonce(selection.profile)
    if nonce:
        pinned = select_probes(replace(selection, profile=profile_name), about)
        if selection.cases:
            return pinned
        return _each_once([*pinned, *_challenged(replace(selection, ops=tuple(selection.ops or about)), nonce)])
    fresh_cases = fresh_profile(selection.profile)
    with _told_where(selection):
        if fresh_cases is not None and not selection.cases:
            count, seed = fresh_cases
            ops = selection.ops or tuple(op for op in about if op in drawn_operators()) or tuple(about)
            return drawn_probes(count, seed, ops, selection.versions, selection.types)
        named = tuple(word for word in selection.cases if not is_portable(word))
        given = portable_probes(word for word in selection.cases if is_portable(word))
        given = narrow(replace(selection, cases=()), given, " among the cases given") if given else []
        listed: list[Probe] = []
        if named or not given:
            unlisted: list[tuple[str, int]] = []
            specs = select(replace(selection, cases=named), about, unlisted)
            listed = [*map(SpecProbe, specs)]
            if not named or not listed:
                listed += [UnlistedProbe(selection.profile, *each) for each in dict.fromkeys(unlisted)]
        return _each_once([*listed, *given]) if given else listed


def _challenged(selection: Selection, nonce: str) -> Iterator[Probe]:
    """The fresh cases of a nonce, and what stands for those that cannot be drawn."""
    for op, version in operator_versions(None):
        if op in selection.ops and (not selection.versions or version in selection.versions):
            try:
                yield from challenge_probes(nonce, op, version, selection.types)
            except Exception:  # whatever it is, it is the operator's: its probe tells it
                yield UnlistedProbe(selection.profile, op, version)


def all_listed(probes: Sequence[Probe]) -> Sequence[Probe]:
    """The probes. Raises CaseError where cases among them cannot be listed."""
    for probe in probes:
        if isinstance(probe, UnlistedProbe):
            raise CaseError(probe.complaint)
    return probes


def _each_once(probes: Sequence[Probe]) -> list[Probe]:
    """Every probe once. Raises CaseError where two that differ have one id: results would be taken for the other's."""
    kept: dict[str, Probe] = {}
    for probe in probes:
        if kept.setdefault(probe.id, probe) != probe:
            raise CaseError(f"two cases that differ have the id {probe.id}: run them apart")
    # Forbidden models come last, as in a profile.
    return sorted(kept.values(), key=lambda probe: "illegal" in probe.features)


@contextmanager
def _told_where(selection: Selection) -> Iterator[None]:
    """Complaints about a name that came from a file begin with its line."""
    try:
        yield
    except UnknownName as error:
        where = selection.origins.get(error.given, "")
        raise CaseError(f"{where}{error}", error.given) from None if where else error


def meant_for(operators: Sequence[str], selection: Selection, probes: Iterable[Probe]) -> Iterator[Probe]:
    """The probes that are run on a target that is about these operators: all, where they were asked for by name,
    else what is about them."""
    asked = selection.ops or selection.cases or selection.directories
    return (probe for probe in probes if asked or probe.op in operators)


def probes_of_profile(name: str) -> list[Probe]:
    """All cases of a profile, of every operator. Raises UnknownName."""
    return select_probes(Selection(name), operator_names())


def select(
    selection: Selection, about: Sequence[str] | None = None, unlisted: list[tuple[str, int]] | None = None
) -> list[Spec]:
    """The cases, in a fixed order.

    about
        The operators that are meant where the selection names none: ONNX's own without it. A case that is named by
        itself may also be one of another operator.
    unlisted
        Gets the operator versions whose cases cannot be listed.

    Raises UnknownName for anything that does not exist or leaves nothing; CaseError for cases that cannot be listed,
    where `unlisted` is not given.
    """
    own = tuple(operator_names("") if about is None else about)
    if not selection.cases:
        return _selected(selection, own, unlisted)
    others = () if selection.ops else tuple(op for op in operator_names() if op not in own)
    by_id: dict[str, Spec] = {}
    left = selection.cases
    for op in selection.ops or (*own, *others):
        # A name that begins with an operator's is looked for among that operator's cases alone.
        named = tuple(word for word in left if word.startswith(f"{document_of(op).prefix}-"))
        if named:
            by_id.update((spec.id, spec) for spec in _selected(replace(selection, cases=named), (op,), unlisted))
            left = tuple(word for word in left if word not in named)
    if left:
        rest = _of_any(replace(selection, cases=left), own, others, unlisted)
        by_id.update((spec.id, spec) for spec in rest)
    return sorted(by_id.values(), key=lambda spec: spec.spoils)


def _of_any(
    selection: Selection, own: Sequence[str], others: Sequence[str], unlisted: list[tuple[str, int]] | None
) -> list[Spec]:
    """Cases that are named by themselves: of operators that are meant or, where there are none, of others."""
    try:
        return _selected(selection, own, unlisted)
    except UnknownName:
        if others:
            with suppress(UnknownName):
                return _selected(selection, others, unlisted)
        raise


def _selected(selection: Selection, about: Sequence[str], unlisted: list[tuple[str, int]] | None) -> list[Spec]:
    """The cases of operators that are meant. Raises UnknownName."""
    known = list(operator_versions(None))
    if selection.profile not in PROFILES:
        raise UnknownName("profile", selection.profile, PROFILES)
    for op in selection.ops:
        if op not in {o for o, _ in known}:
            raise UnknownName("operator", op, sorted({o for o, _ in known}))
    ops = selection.ops or about
    versions = sorted({v for o, v in known if o in ops})
    for version in selection.versions:
        if version not in versions:
            raise UnknownName("operator version", version, versions, hint=_of_opset(version, selection.ops))
    for kind in selection.types:
        if kind not in FORMATS:
            raise UnknownName("type", kind, list(FORMATS))
    chosen = _named if selection.cases else _narrowed
    specs = chosen(selection, ops, unlisted)
    if not specs and not unlisted:
        of_types = Selection(selection.profile, types=selection.types)
        there = _narrowed(of_types, ops) or _narrowed(Selection(selection.profile), ops)
        combinations = list(dict.fromkeys(f"{s.op}-{s.version}:{s.type}" for s in there))
        raise UnknownName("combination", selection.narrowed, combinations, f" in profile {selection.profile}")
    # Cases that may spoil a runtime's memory come last: those after them would suffer.
    return sorted(specs, key=lambda spec: spec.spoils)


def _of_opset(opset: int, ops: Sequence[str]) -> str:
    """The versions that nodes have in a model of that opset."""
    of = {op: max((v for v in versions_of(op) if v <= opset), default=0) for op in (ops or operator_names(""))}
    named = ", ".join(f"{op}-{version}" for op, version in of.items() if version)
    return f"a model of opset {opset} holds {named}" if named else ""


def narrow(selection: Selection, probes: Sequence[Probe], among: str = " among the directories") -> list[Probe]:
    """The probes that operators, versions, types and case patterns leave. Raises UnknownName for a name that
    none of them has; `among` says in words what they are."""
    axes: tuple[tuple[str, Sequence[object], Callable[[Probe], object]], ...] = (
        ("operator", selection.ops, lambda p: p.op),
        ("operator version", selection.versions, lambda p: p.version),
        ("type", selection.types, lambda p: p.type),
    )
    left = list(probes)
    for kind, asked, of in axes:
        for name in asked:
            if name not in {of(probe) for probe in left}:
                raise UnknownName(kind, name, list(dict.fromkeys(of(probe) for probe in left)), among)
        left = [probe for probe in left if not asked or of(probe) in asked]
    for pattern in selection.cases:
        if not _matching(pattern, left):
            raise UnknownName("case", pattern, [probe.id for probe in left], among)
    if not selection.cases:
        return left
    named = {probe.id for pattern in selection.cases for probe in _matching(pattern, left)}
    return [probe for probe in left if probe.id in named]


def _narrowed(selection: Selection, ops: Sequence[str], unlisted: list[tuple[str, int]] | None = None) -> list[Spec]:
    """The cases of a profile that operators, versions and types leave."""
    return [
        spec
        for op, version in operator_versions(None)
        if op in ops and (not selection.versions or version in selection.versions)
        for spec in _listed(selection.profile, op, version, unlisted)
        if not selection.types or spec.type in selection.types
    ]


def _listed(name: str, op: str, version: int, unlisted: list[tuple[str, int]] | None) -> Sequence[Spec]:
    try:
        return profile(name, op, version)
    except NotListed as error:
        if unlisted is None:
            raise CaseError(str(error)) from None
        unlisted.append((op, version))
        return ()


def _named(selection: Selection, ops: Sequence[str], unlisted: list[tuple[str, int]] | None = None) -> list[Spec]:
    """The cases that patterns name, looked for in the profile first and then in all profiles; and among those of the
    operator version that an id begins with, since making all of them takes seconds."""
    by_id: dict[str, Spec] = {}
    for pattern in selection.cases:
        own = _version_named(pattern, selection, ops)
        chosen, of = (replace(selection, versions=(own[1],)), own[:1]) if own else (selection, ops)
        if own and len(selection.cases) == 1 and (only := _only(pattern, chosen, own)) is not None:
            return [only]
        specs = _narrowed(chosen, of, unlisted)
        hits = _matching(pattern, specs)
        if not hits and (own or _WILD & set(pattern)):
            wider = [replace(chosen, profile=name) for name in PROFILES[-2:]]
            specs = list(dict.fromkeys(spec for each in wider for spec in _narrowed(each, of, unlisted)))
            hits = _matching(pattern, specs)
        if not specs:
            return []
        if not hits:
            among = f" among {selection.narrowed}" if selection.narrowed else ""
            raise UnknownName("case", pattern, [spec.id for spec in specs], among)
        by_id.update((spec.id, spec) for spec in hits)
    return list(by_id.values())


_WILD = frozenset("*?[")


def _only(id: str, selection: Selection, own: tuple[str, int]) -> Spec | None:
    """The case of the profile that has this id, before all others are made; None too where they cannot be."""
    with suppress(NotListed):  # who lists them all tells it
        spec: Spec | None = case_named(id, selection.profile, *own)
        return spec if spec is not None and spec.type in (selection.types or (spec.type,)) else None
    return None


def _version_named(pattern: str, selection: Selection, ops: Sequence[str]) -> tuple[str, int] | None:
    """The operator version that an id or a pattern of ids begins with, if it is one of those that are meant."""
    return next(
        (
            (op, version)
            for op, version in operator_versions(None)
            if op in ops
            and (not selection.versions or version in selection.versions)
            and pattern.startswith(f"{document_of(op).prefix}-{version}.")
        ),
        None,
    )


def _matching(pattern: str, specs: list[Subject]) -> list[Subject]:
    if not _WILD & set(pattern):
        return [spec for spec in specs if spec.id == pattern]
    return [spec for spec in specs if fnmatchcase(spec.id, pattern)]
