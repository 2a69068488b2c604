"""Cases drawn at random from the whole space of operator versions, the same ones from the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from random import Random
from typing import Any

from ...cases import Spec
from ...cases.portable import CaseTextError, check_case
from ...cases.specs.family import family_of

_TRIES = 50
_DRAWS = 500  # most draws are cases: where so many are none, something is broken
_CHANGED = 3  # fields that a case near another has from elsewhere


def drawn(random: Random, versions: Sequence[tuple[str, int]], types: Sequence[str]) -> Any:
    """A legal case of one of these operator versions, in one of these types. Raises what keeps all that is drawn from
    being one."""
    for left in reversed(range(_DRAWS)):
        op, version = random.choice(versions)
        spec = family_of(op).anything(op, version, types, random)
        if spec is None:
            continue
        try:
            check_case(spec)
        except (ValueError, TypeError):  # a CaseTextError too
            if not left:
                raise
        else:
            return spec
    raise CaseTextError(f"no case was drawn in {_DRAWS} attempts")


def _legal(spec: Spec) -> bool:
    try:
        check_case(spec)
    except (ValueError, TypeError):
        return False
    return True


def altered(random: Random, spec: Any, types: Sequence[str]) -> Any:
    """A case that differs from one in few things: from where numbers were nearly too far off."""
    family = family_of(spec.op)
    for _ in range(_TRIES):
        other = drawn(random, [(spec.op, spec.version)], types)
        names = sorted(field.name for field in fields(spec) if field.name not in ("op", "version"))
        near = family.crossed(spec, other, random.sample(names, min(_CHANGED, len(names))))
        if near is not None:
            near = family.crossed(near, other, [name for name in ("seed",) if name in names])
        if near is not None and _legal(near):
            return near
    return drawn(random, [(spec.op, spec.version)], types)


def drawn_illegal(random: Random, versions: Sequence[tuple[str, int]], types: Sequence[str]) -> Any:
    """A case that breaks its document in one named way. Raises what :func:`drawn` does, and CaseTextError where there
    is no way."""
    for _ in range(_DRAWS):
        spec = drawn(random, versions, types)
        ways = [violation.id for violation in family_of(spec.op).violations(spec.op, spec.version)]
        for way in random.sample(ways, min(len(ways), 5)):
            try:
                broken = replace(spec, illegal=way)
                check_case(broken)
            except (CaseTextError, ValueError, KeyError, IndexError):
                continue
            return broken
    raise CaseTextError(f"no forbidden case was drawn in {_DRAWS} attempts")
