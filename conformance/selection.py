"""Which cases a command is about: a profile, narrowed by operator, version, type and case."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..cases import PROFILES, CaseSpec, operator_versions, profile
from ..reference import FORMATS

__all__ = ["Selection", "UnknownName", "select"]


class UnknownName(ValueError):  # noqa: N818 - it reads as what it says
    """Something that was asked for does not exist; the text names it and the nearest that do, in one line."""

    def __init__(self, kind: str, given: object, known: Sequence[object]) -> None:
        texts = [str(k) for k in known]
        near = difflib.get_close_matches(str(given), texts, 3, 0.5) or texts[:6]
        super().__init__(f"unknown {kind} {str(given)!r}; nearest: {', '.join(near)}")


@dataclass(frozen=True)
class Selection:
    """What was asked for; empty tuples mean all.

    cases
        Case ids, or patterns of them with ``*`` and ``?``. They may name cases of any profile.
    """

    profile: str = "core"
    ops: tuple[str, ...] = ()
    versions: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()


def select(selection: Selection) -> list[CaseSpec]:
    """The cases, in a fixed order. Raises UnknownName for anything that does not exist or leaves nothing."""
    known = list(operator_versions())
    if selection.profile not in PROFILES:
        raise UnknownName("profile", selection.profile, PROFILES)
    for op in selection.ops:
        if op not in {o for o, _ in known}:
            raise UnknownName("operator", op, sorted({o for o, _ in known}))
    for version in selection.versions:
        if version not in {v for o, v in known if not selection.ops or o in selection.ops}:
            raise UnknownName("operator version", version, sorted({v for _, v in known}))
    for kind in selection.types:
        if kind not in FORMATS:
            raise UnknownName("type", kind, list(FORMATS))
    wanted = [
        (op, version)
        for op, version in known
        if (not selection.ops or op in selection.ops) and (not selection.versions or version in selection.versions)
    ]

    def from_profile(name: str) -> list[CaseSpec]:
        specs = [spec for op, version in wanted for spec in profile(name, op, version)]
        return [spec for spec in specs if not selection.types or spec.type in selection.types]

    specs = from_profile(selection.profile)
    if selection.cases:
        specs = _named(selection.cases, specs, from_profile)
    if not specs:
        raise UnknownName("combination", f"{selection}", [f"{op}-{version}" for op, version in known])
    return specs


def _named(patterns: tuple[str, ...], specs: list[CaseSpec], from_profile: object) -> list[CaseSpec]:
    """The cases that patterns name, looked for in the profile first and then in all profiles."""
    found: dict[str, CaseSpec] = {}
    for pattern in patterns:
        hits = [spec for spec in specs if fnmatchcase(spec.id, pattern)]
        if not hits:
            everything = [spec for name in PROFILES for spec in from_profile(name)]  # type: ignore[operator]
            hits = [spec for spec in everything if fnmatchcase(spec.id, pattern)]
            if not hits:
                raise UnknownName("case", pattern, [spec.id for spec in everything])
        found.update((spec.id, spec) for spec in hits)
    return list(found.values())
