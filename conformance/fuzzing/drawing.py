"""Random cases from the whole space of operator versions, reproducible by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from random import Random
from typing import Any

from ...cases import Spec, profile
from ...cases.portable import CaseTextError, check_case
from ...cases.specs.family import family_of
from ...reference import operator_version

_TRIES = 50
_DRAWS = 500  # most draws are legal cases: if so many are not, there is a bug
_CHANGED = 3  # maximum number of fields that a crossover changes
_CROSSED = 0.75  # share of draws that start from a case of the profile, with its rare values and few features


def drawn(random: Random, versions: Sequence[tuple[str, int]], types: Sequence[str]) -> Any:
    """Return a legal case of one of these operator versions, in one of these types.

    Raise the error of the last draw if no draw gives a legal case.
    """
    for remaining in reversed(range(_DRAWS)):
        op, version = random.choice(versions)
        usable = [type_name for type_name in operator_version(op, version).types if type_name in types]
        if not usable:
            continue
        spec = _of_version(random, op, version, random.choice(usable))
        if spec is None:
            continue
        try:
            check_case(spec)
        except (ValueError, TypeError):  # includes CaseTextError
            if not remaining:
                raise
        else:
            return spec
    raise CaseTextError(f"no case was drawn in {_DRAWS} attempts")


def _of_version(random: Random, op: str, version: int, kind: str) -> Any | None:
    """Return a random case, or a case of the profile with some fields of a random one; None where none can be made."""
    family = family_of(op)
    spec: Any = family.random_case(op, f"fuzz/{random.getrandbits(64)}", version, kind)
    if spec is None or random.random() >= _CROSSED:
        return spec
    cases = [case for case in profile("core", op, version) if not case.illegal and case.type == spec.type]
    if not cases:
        return spec
    return _crossed(random, random.choice(cases), spec)


def _crossed(random: Random, spec: Any, donor: Any) -> Any | None:
    """Return a case with up to three fields, and the seed, of another one; None where none can be made."""
    family = family_of(spec.op)
    names = sorted(field.name for field in fields(donor) if field.name not in ("op", "version"))
    crossed = family.crossed(spec, donor, random.sample(names, min(_CHANGED, len(names))))
    return family.crossed(crossed, donor, ["seed"]) if crossed is not None and hasattr(donor, "seed") else crossed


def _legal(spec: Spec) -> bool:
    try:
        check_case(spec)
    except (ValueError, TypeError):
        return False
    return True


def altered(random: Random, spec: Any, types: Sequence[str]) -> Any:
    """Return a case that differs from ``spec`` in a few fields. ``spec`` is one whose errors nearly reach the bound."""
    for _ in range(_TRIES):
        near = _crossed(random, spec, drawn(random, [(spec.op, spec.version)], types))
        if near is not None and _legal(near):
            return near
    return drawn(random, [(spec.op, spec.version)], types)
