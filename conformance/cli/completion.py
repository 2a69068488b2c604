"""Words that a shell offers behind TAB, for the options of several commands."""

from __future__ import annotations

from pathlib import Path

from ...cases import PROFILES
from ...reference import FORMATS, operator_names, versions_of
from ..probes.selection import Selection, UnknownName, select_probes
from ..targets.target import TargetError, table_names, target_names


def profiles(incomplete: str) -> list[str]:
    """Profiles that begin so."""
    return [name for name in PROFILES if name.startswith(incomplete)]


def operators(incomplete: str) -> list[str]:
    """Operators that begin so, in whatever case; after a hyphen their versions."""
    names = operator_names()
    if "-" in incomplete:
        names = tuple(f"{op}-{version}" for op in names for version in versions_of(op))
    return [name for name in names if name.lower().startswith(incomplete.lower())]


def types(incomplete: str) -> list[str]:
    """Element types that begin so."""
    return [name for name in FORMATS if name.startswith(incomplete)]


def targets(incomplete: str) -> list[str]:
    """Targets that begin so: those that need no file, and those of ./targets.toml."""
    file = Path("targets.toml")
    try:
        own = table_names(file) if file.is_file() else []
    except TargetError:
        own = []
    return [name for name in dict.fromkeys([*own, *target_names()]) if name.startswith(incomplete)]


def cases(incomplete: str) -> list[str]:
    """Ids of core that begin so, as far as the next dot: nobody can choose from a thousand."""
    try:
        ids = [probe.id for probe in select_probes(Selection(cases=(f"{incomplete}*",)), operator_names())]
    except UnknownName:
        return []
    ends = (id.find(".", len(incomplete) + 1) for id in ids)
    return list(dict.fromkeys(id[: end + 1] if end >= 0 else id for id, end in zip(ids, ends, strict=True)))
