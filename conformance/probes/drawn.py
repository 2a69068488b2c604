"""Fresh cases as probes: drawn from a seed within a selection, or from an auditor's nonce."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from ...cases import family_of
from ...cases.portable import check_case
from ...cases.profiles import NotListed
from ...cases.profiles.random_cases import random_stream
from ...cases.specs.wrapping import can_wrap
from ...reference import operator_version
from ...reference.errors import UserError
from ..workers.process import BATCH_JOBS
from .probe import Probe, SpecProbe

MOST = 100_000
"""Greatest number of fresh cases in one run."""

_NAME = re.compile(r"random-([1-9][0-9]{0,5})-seed-([A-Za-z0-9_.-]{1,64})")

_WITH_NONCE = re.compile(r"(.+)-nonce-([A-Za-z0-9_.-]{1,64})")


def nonce_profile_name(profile: str, nonce: str) -> str:
    """Return the profile name of a run with a nonce's fresh cases.

    Raise UserError for a nonce that is invalid in file names or commands.
    """
    name = f"{profile}-nonce-{nonce}"
    if split_nonce(name) != (profile, nonce):
        raise UserError(f"no nonce: {nonce!r}; a nonce is up to 64 letters, digits, dots, hyphens and underscores")
    return name


def split_nonce(name: str) -> tuple[str, str]:
    """Return a profile's name and its nonce; the nonce is empty if the name has none."""
    match = _WITH_NONCE.fullmatch(name)
    return (match[1], match[2]) if match is not None else (name, "")


def challenge_probes(nonce: str, op: str, version: int, types: Sequence[str] = ()) -> list[Probe]:
    """Return the fresh cases of a nonce for an operator version, in the given types (default: all).

    They depend on the nonce only, and are in no profile. Raise NotListed where the operator's own code raises an error.
    """
    family, existing = family_of(op), operator_version(op, version).types
    asked = [type for type in existing if not types or type in types]
    try:
        return [SpecProbe(spec, True) for type in asked for spec in family.challenge(op, version, type, nonce)]
    except Exception as error:  # an operator's own code may raise any exception
        raise NotListed(op, version, error) from error


def fresh_profile_name(count: int, seed: str) -> str:
    """Return the profile name of a run of fresh cases, which contains count and seed.

    Raise UserError for a seed that is invalid in file names or commands.
    """
    name = f"random-{count}-seed-{seed}"
    if fresh_profile(name) is None:
        raise UserError(f"no seed: {seed!r}; a seed is up to 64 letters, digits, dots, hyphens and underscores")
    return name


def fresh_profile(name: str) -> tuple[int, str] | None:
    """Return the count and the seed of such a name; None for any other name."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), match[2]) if match is not None and int(match[1]) <= MOST else None


def random_batches(
    versions: Sequence[tuple[str, int]],
    types: Sequence[str],
    seed: int,
    seconds: float = float("inf"),
    count: float = float("inf"),
    wrap: str = "",
) -> Iterator[list[Probe]]:
    """Yield random cases of operator versions and types in batches, for `seconds` or until `count` of them are drawn.

    wrap
        The surrounding graph of all cases; draws that do not fit into it count as cases.
    """
    ops, numbers = {op for op, _ in versions}, {version for _, version in versions}
    stream = random_stream(seed, ops, numbers, types)
    specs = (spec for spec in stream if (spec.op, spec.version) in versions)
    deadline, drawn = time.monotonic() + seconds, 0
    while drawn < count and time.monotonic() < deadline:
        batch = list(islice(specs, int(min(BATCH_JOBS, count - drawn))))
        if not batch:  # the operators have no more cases
            return
        drawn += len(batch)
        if probes := [SpecProbe(spec, fresh=True) for spec in batch if _is_case(spec, wrap)]:
            yield list(probes)


def _is_case(spec: Any, wrap: str) -> bool:
    """Return whether a draw is a legal case, in the surrounding graph; operators of others may draw another."""
    try:
        check_case(spec)
    except (ValueError, TypeError):
        return False
    return not wrap or can_wrap(spec, wrap)
