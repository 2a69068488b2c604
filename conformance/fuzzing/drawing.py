"""Cases drawn at random from the whole space of an operator version, the same ones from the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from ...cases import CaseSpec
from ...cases.portable import CaseTextError, check_case
from ...cases.specs.family import family_of
from ...cases.specs.space import functions_of, output_subsets, settle, space_of
from ...reference import CELLS, operator_version

__all__ = ["altered", "drawn", "drawn_illegal"]

# Mostly small, since many small cases find more than few large ones; sometimes beside and past the blocks of kernels.
_STEPS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 17, 33)
_ROWS = (1, 1, 2, 2, 3, 4, 5, 8, 17)
_INPUTS = (1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 33)
_UNITS = (1, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64)
_NOTHING = 0.02  # the share of cases without steps, and of those without rows
_SEEDS = 1_000_000
_TRIES = 50


def drawn(random: Random, versions: Sequence[tuple[str, int]], types: Sequence[str]) -> CaseSpec:
    """A legal case of one of these operator versions, in one of these types."""
    while True:
        op, version = random.choice(versions)
        space = space_of(operator_version(op, version))
        row = {name: _value(random, axis) for name, axis in space.items() if name not in ("size", "activations")}
        row["type"] = random.choice([t for t in space["type"].values if t in types])
        row["T"] = 0 if random.random() < _NOTHING else random.choice(_STEPS)
        row["N"] = 0 if random.random() < _NOTHING else random.choice(_ROWS)
        row["I"], row["H"] = random.choice(_INPUTS), random.choice(_UNITS)
        row["outputs"] = random.choice(output_subsets(operator_version(op, version)))
        row |= {"activations": None, "alpha": None, "beta": None}
        if random.random() < 0.5:
            row |= _functions(random, op, version, row["direction"] == "bidirectional")
        row["seed"] = row["weights_seed"] = random.randrange(_SEEDS)
        spec = _legal(op, version, row)
        if spec is not None:
            return spec


def _value(random: Random, axis: Any) -> Any:
    if axis.between is not None and random.random() < 0.25:
        low, high = axis.between
        return round(random.uniform(low, high) * 64) / 64 or None
    # What is rare in profiles is rare here too.
    if axis.rare and random.random() < 0.15:
        return random.choice(axis.rare)
    return random.choice(axis.values)


def _functions(random: Random, op: str, version: int, both: bool) -> dict[str, Any]:
    count = len(CELLS[op].activations) * (2 if both else 1)
    known = functions_of(operator_version(op, version))
    row: dict[str, Any] = {"activations": tuple(random.choice(known) for _ in range(count))}
    for name in ("alpha", "beta"):
        if random.random() < 0.4:
            row[name] = tuple(random.randrange(-16, 17) / 8 for _ in range(random.randint(1, count)))
    return row


def _legal(op: str, version: int, row: dict[str, Any]) -> CaseSpec | None:
    settled: dict[str, Any] = settle(row, search=True)
    try:
        spec = CaseSpec(op, version, **settled)
        check_case(spec)
    except (ValueError, TypeError):  # a CaseTextError too
        return None
    return spec


def altered(random: Random, spec: CaseSpec, types: Sequence[str]) -> CaseSpec:
    """A case that differs from one in few things: from where numbers were nearly too far off."""
    for _ in range(_TRIES):
        other = drawn(random, [(spec.op, spec.version)], types)
        row = {name: getattr(spec, name) for name in spec.__dataclass_fields__ if name not in ("op", "version")}
        fields = random.sample(sorted(row), 3)
        if "direction" not in fields and "activations" in fields and other.directions != spec.directions:
            continue
        changed = {name: getattr(other, name) for name in fields}
        if "activations" in changed:
            changed |= {"alpha": other.alpha, "beta": other.beta}
        near = _legal(spec.op, spec.version, {**row, **changed, "seed": random.randrange(_SEEDS)})
        if near is not None:
            return near
    return drawn(random, [(spec.op, spec.version)], types)


def drawn_illegal(random: Random, versions: Sequence[tuple[str, int]], types: Sequence[str]) -> CaseSpec:
    """A case that breaks its document in one named way."""
    while True:
        spec = drawn(random, versions, types)
        ways = [violation.id for violation in family_of(spec.op).violations(spec.op, spec.version)]
        for way in random.sample(ways, min(len(ways), 5)):
            row = {name: getattr(spec, name) for name in spec.__dataclass_fields__ if name not in ("op", "version")}
            try:
                broken = CaseSpec(spec.op, spec.version, **{**row, "illegal": way})
                check_case(broken)
            except (CaseTextError, ValueError, KeyError, IndexError):
                continue
            return broken
