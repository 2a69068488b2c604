"""Which cases a command is about: a profile, narrowed by operator, version, type and case."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TypeVar

from ..cases import PROFILES, CaseSpec, operator_versions, profile
from ..reference import EXTENDED, FORMATS, OPERATORS, operator_version, versions_of
from .extended_probe import extended_probes
from .probe import Probe, SpecProbe

__all__ = [
    "Selection",
    "UnknownName",
    "meant_for",
    "narrow",
    "operator_types",
    "probes_of_profile",
    "select",
    "version_numbers",
]
__all__ += ["select_probes"]

Subject = TypeVar("Subject", CaseSpec, Probe)

_LONGEST = 200
_FEW = 20  # of more names, some that are not like the one that was given say nothing


class UnknownName(ValueError):
    """Something that was asked for does not exist; the text names it and the nearest that do, in one line."""

    def __init__(self, kind: str, given: object, known: Sequence[object], among: str = "") -> None:
        """`among` says in words what it was looked for in, where that is not everything."""
        text = str(given) if len(str(given)) <= _LONGEST else f"{str(given)[:_LONGEST]}..."
        near = _nearest(str(given), known)
        lists = "; 'onnxspec list' shows all" if kind == "case" else ""
        help = f"nearest: {', '.join(near)}" if near else f"none is like it{lists}"
        super().__init__(f"unknown {kind} {text!r}{among}; {help}")


def _nearest(given: str, known: Sequence[object]) -> list[str]:
    if given.isdecimal() and len(given) < 10 and all(isinstance(k, int) for k in known):
        return [str(k) for k in sorted(known, key=lambda k: abs(int(str(k)) - int(given)))[:3]]
    folded = {str(k).lower(): str(k) for k in known}
    near = difflib.get_close_matches(given.lower(), folded, 3, 0.5)
    return [folded[n] for n in near] or ([str(k) for k in known[:6]] if len(known) <= _FEW else [])


@dataclass(frozen=True)
class Selection:
    """What was asked for; empty tuples mean all.

    cases
        Case ids, or patterns of them with ``*`` and ``?``. They may name cases of any profile.
    directories
        Folders of test-case directories, which are run in place of a profile.
    """

    profile: str = "core"
    ops: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()

    @property
    def narrowed(self) -> str:
        """What operators, versions and types leave, like ``LSTM-14:float16|float32``; empty where that is all."""
        if not (self.ops or self.versions or self.types):
            return ""
        versions, types = "|".join(map(str, self.versions)), "|".join(self.types)
        return f"{'|'.join(self.ops) or '*'}-{versions or '*'}:{types or '*'}"


def version_numbers(versions: Iterable[str]) -> tuple[int, ...]:
    """Operator versions as they were given. Raises UnknownName for one that is no number."""
    given = list(versions)
    for text in given:
        if not text.isdecimal() or len(text) > 9:
            raise UnknownName("operator version", text, sorted({v for _, v in operator_versions()}))
    return tuple(map(int, given))


def operator_types() -> list[str]:
    """Every operator version and type that there are cases for, like ``LSTM-14:float32``."""
    extended = [(op, v) for op in EXTENDED for v in versions_of(op)]
    known = [*operator_versions(), *extended]
    return [f"{op}-{v}:{t}" for op, v in known for t in FORMATS if t in operator_version(op, v).types]


def select_probes(selection: Selection, about: Sequence[str]) -> list[Probe]:
    """The cases of a profile as probes, in a fixed order.

    about
        The operators that are meant where the selection names none.

    Raises UnknownName for anything that does not exist or leaves nothing.
    """
    for op in selection.ops:
        if op not in (*OPERATORS, *EXTENDED):
            raise UnknownName("operator", op, [*OPERATORS, *EXTENDED])
    meant = set(selection.ops or about)
    kinds = [(set(OPERATORS), _plain), (set(EXTENDED), _extended)]
    due = [of for operators, of in kinds if operators & meant]
    # Cases that are named by themselves may also be those that no target is about.
    last = [of for _, of in kinds if of not in due] if selection.cases and not selection.ops else []
    found: list[Probe] = []
    errors: list[UnknownName] = []
    for of in (*due, *last):
        if found and of in last:
            break
        try:
            found += of(selection)
        except UnknownName as error:
            errors.append(error)
    if not found:
        raise errors[0]
    return found


def _plain(selection: Selection) -> list[Probe]:
    ops = tuple(op for op in selection.ops if op in OPERATORS)
    return [*map(SpecProbe, select(replace(selection, ops=ops)))]


def meant_for(operators: Sequence[str], selection: Selection, probes: Iterable[Probe]) -> Iterator[Probe]:
    """What of some probes is run on a target that is about these operators: everything, where it was asked for by name,
    else what is about them."""
    asked = selection.ops or selection.cases or selection.directories
    return (probe for probe in probes if asked or probe.op in operators)


def _extended(selection: Selection) -> list[Probe]:
    if selection.profile not in PROFILES:
        raise UnknownName("profile", selection.profile, PROFILES)
    ops = tuple(op for op in selection.ops if op in EXTENDED)
    given = replace(selection, ops=ops)
    among = f" in profile {selection.profile}"
    try:
        return narrow(given, extended_probes(selection.profile), among)
    except UnknownName:
        if not selection.cases:
            raise
        # Cases may be named of any profile.
        return narrow(given, extended_probes(PROFILES[-1]), " among those of ExtendedLSTM")


def probes_of_profile(name: str) -> list[Probe]:
    """All cases of a profile, of every operator. Raises UnknownName."""
    return [*map(SpecProbe, select(Selection(name))), *extended_probes(name)]


def select(selection: Selection) -> list[CaseSpec]:
    """The cases, in a fixed order. Raises UnknownName for anything that does not exist or leaves nothing."""
    known = list(operator_versions())
    if selection.profile not in PROFILES:
        raise UnknownName("profile", selection.profile, PROFILES)
    for op in selection.ops:
        if op not in {o for o, _ in known}:
            raise UnknownName("operator", op, sorted({o for o, _ in known}))
    versions = sorted({v for o, v in known if not selection.ops or o in selection.ops})
    for version in selection.versions:
        if version not in versions:
            raise UnknownName("operator version", version, versions)
    for kind in selection.types:
        if kind not in FORMATS:
            raise UnknownName("type", kind, list(FORMATS))
    specs = _narrowed(selection.profile, selection)
    if selection.cases:
        specs = _named(selection, specs)
    if not specs:
        of_types = Selection(types=selection.types)
        there = _narrowed(selection.profile, of_types) or _narrowed(selection.profile, Selection())
        combinations = list(dict.fromkeys(f"{s.op}-{s.version}:{s.type}" for s in there))
        raise UnknownName("combination", selection.narrowed, combinations, f" in profile {selection.profile}")
    # Forbidden models come last: a runtime that takes one may spoil its memory, and what comes after would suffer.
    return sorted(specs, key=lambda spec: bool(spec.illegal))


def narrow(selection: Selection, probes: Sequence[Probe], among: str = " among the directories") -> list[Probe]:
    """Those of some probes that operators, versions, types and case patterns leave. Raises UnknownName for a name that
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


def _narrowed(name: str, selection: Selection) -> list[CaseSpec]:
    """The cases of a profile that operators, versions and types leave."""
    return [
        spec
        for op, version in operator_versions()
        if (not selection.ops or op in selection.ops) and (not selection.versions or version in selection.versions)
        for spec in profile(name, op, version)
        if not selection.types or spec.type in selection.types
    ]


def _named(selection: Selection, specs: list[CaseSpec]) -> list[CaseSpec]:
    """The cases that patterns name, looked for in the profile first and then in all profiles."""
    found: dict[str, CaseSpec] = {}
    everything: list[CaseSpec] = []
    for pattern in selection.cases:
        hits = _matching(pattern, specs)
        if not hits:
            # Each profile contains those before it.
            everything = everything or _narrowed(PROFILES[-1], selection)
            if not everything:
                return []
            hits = _matching(pattern, everything)
        if not hits:
            among = f" among {selection.narrowed}" if selection.narrowed else ""
            raise UnknownName("case", pattern, [spec.id for spec in everything], among)
        found.update((spec.id, spec) for spec in hits)
    return list(found.values())


def _matching(pattern: str, specs: list[Subject]) -> list[Subject]:
    if not set("*?[") & set(pattern):
        return [spec for spec in specs if spec.id == pattern]
    return [spec for spec in specs if fnmatchcase(spec.id, pattern)]
