"""Fresh cases as probes: drawn from a seed, of what a selection leaves; and those that an auditor's nonce asks for."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence

from ...cases import family_of, operator_versions
from ...cases.profiles.random_cases import random_specs
from ...cases.specs.family import drawn_operators
from ...reference import FORMATS, operator_version, versions_of
from .naming import CaseError, UnknownName, require_known
from .probe import Probe, SpecProbe

MOST = 100_000
"""Fresh cases of one run."""

_NAME = re.compile(r"random-([1-9][0-9]{0,5})-seed-([A-Za-z0-9_.-]{1,64})")

_WITH_NONCE = re.compile(r"(.+)-nonce-([A-Za-z0-9_.-]{1,64})")


def nonce_profile_name(profile: str, nonce: str) -> str:
    """Return the name that a run of a profile and of a nonce's fresh cases has in place of the profile's. Raise
    UnknownName for a nonce that no file or command can bear."""
    name = f"{profile}-nonce-{nonce}"
    if split_nonce(name) != (profile, nonce):
        raise CaseError(f"no nonce: {nonce!r}; a nonce is up to 64 letters, digits, dots, hyphens and underscores")
    return name


def split_nonce(name: str) -> tuple[str, str]:
    """Return a profile's name, and the nonce that stands behind it; the latter empty where there is none."""
    match = _WITH_NONCE.fullmatch(name)
    return (match[1], match[2]) if match is not None else (name, "")


def challenge_probes(nonce: str, op: str, version: int, types: Sequence[str] = ()) -> list[Probe]:
    """Return the fresh cases of a nonce, of an operator version; without types of all. They are the same for everyone,
    and in no profile."""
    return [
        SpecProbe(spec, True)
        for kind in operator_version(op, version).types
        if not types or kind in types
        for spec in family_of(op).challenge(op, version, kind, nonce)
    ]


def fresh_profile_name(count: int, seed: str) -> str:
    """Return the name that a run of fresh cases has in place of a profile's: it says how to draw them again. Raises
    UnknownName for a seed that no file or command can bear."""
    name = f"random-{count}-seed-{seed}"
    if fresh_profile(name) is None:
        raise CaseError(f"no seed: {seed!r}; a seed is up to 64 letters, digits, dots, hyphens and underscores")
    return name


def fresh_profile(name: str) -> tuple[int, str] | None:
    """Return the count and the seed that such a name stands for; None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), match[2]) if match is not None and int(match[1]) <= MOST else None


def some_seed() -> str:
    """Return a seed that nobody has thought of before."""
    return secrets.token_hex(4)


def drawn_probes(
    count: int,
    seed: str,
    ops: tuple[str, ...] = (),
    versions: tuple[int, ...] = (),
    types: tuple[str, ...] = (),
) -> list[Probe]:
    """Fresh cases of some operators, versions and types; empty tuples mean all, and of operators ONNX's own.

    Raises UnknownName for an operator, a version or a type that fresh cases cannot have, or not together.
    """
    drawable = tuple(dict.fromkeys(op for op, _ in operator_versions(None))) if ops else drawn_operators()
    known = sorted({version for op in drawable for version in versions_of(op)})
    for kind, given, there in (("operator", ops, drawable), ("type", types, [*FORMATS])):
        require_known(kind, given, there, " of fresh cases")
    require_known("operator version", versions, known, " of fresh cases")
    try:
        specs = random_specs(count, seed, ops, versions, types)
    except ValueError:
        combination = f"{'|'.join(ops) or '*'}-{'|'.join(map(str, versions)) or '*'}:{'|'.join(types) or '*'}"
        raise UnknownName("combination", combination, (), " of fresh cases") from None
    return [SpecProbe(spec, True) for spec in specs]
