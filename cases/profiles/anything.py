"""Any configuration of operators that have a cell, for searches beyond the profiles: drawn at random, the same ones
from the same source of chance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from typing import Any

from ...reference import cell_named, operator_version
from ..axes.node.functions import functions_of
from ..axes.node.outputs import output_subsets
from ..axes.tensors.size import BEYOND, coinciding
from ..specs.space import settle, space_of
from ..specs.spec import CaseSpec

# Mostly small, since many small cases find more than few large ones; sometimes beside and past the blocks of kernels.
_STEPS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 9, 17, 33)
_ROWS = (1, 1, 2, 2, 3, 4, 5, 8, 17)
_INPUTS = (1, 2, 2, 3, 4, 5, 7, 8, 9, 16, 33)
_UNITS = (1, 2, 3, 3, 4, 5, 7, 8, 9, 16, 17, 33, 64)
_NOTHING = 0.02  # the share of cases without steps, and of those without rows
_BEYOND = 0.03  # that of sizes past the usual
_COINCIDING = 0.06  # that of sizes that are others as well
_SEEDS = 1_000_000


def any_recurrent(
    op: str, version: int, types: Sequence[str], random: Random, kind: type[CaseSpec] = CaseSpec
) -> CaseSpec | None:
    """A case of an operator version, in one of these types; `kind` is the class of its cases. None where what was drawn
    cannot be together."""
    space = space_of(operator_version(op, version), kind.axes)
    row = {name: _value(random, axis) for name, axis in space.items() if name not in ("size", "activations")}
    row["type"] = random.choice([t for t in space["type"].values if t in types])
    row["T"] = 0 if random.random() < _NOTHING else random.choice(_STEPS)
    row["N"] = 0 if random.random() < _NOTHING else random.choice(_ROWS)
    row["I"], row["H"] = random.choice(_INPUTS), random.choice(_UNITS)
    if random.random() < _BEYOND:
        row |= random.choice(BEYOND)
    elif random.random() < _COINCIDING:
        both = 2 if row["direction"] == "bidirectional" else 1
        row |= random.choice(coinciding(both, operator_version(op, version).gates, row))
    row["outputs"] = random.choice(output_subsets(operator_version(op, version)))
    row |= {"activations": None, "alpha": None, "beta": None}
    if random.random() < 0.5:
        row |= _functions(random, op, version, row["direction"] == "bidirectional")
    row["seed"] = row["weights_seed"] = random.randrange(_SEEDS)
    return _settled(op, version, row, kind)


def crossed_recurrent(spec: CaseSpec, other: CaseSpec, names: Collection[str]) -> CaseSpec | None:
    """A case with some fields of another one, and the coefficients with their functions; None where that cannot be."""
    if "direction" not in names and "activations" in names and other.directions != spec.directions:
        return None
    row = {name: getattr(spec, name) for name in spec.__dataclass_fields__ if name not in ("op", "version")}
    row |= {name: getattr(other, name) for name in names}
    if "activations" in names:
        row |= {"alpha": other.alpha, "beta": other.beta}
    return _settled(spec.op, spec.version, row, type(spec))


def _settled(op: str, version: int, row: dict[str, Any], kind: type[CaseSpec]) -> CaseSpec | None:
    settled: dict[str, Any] = settle(row, search=True, axes=kind.axes)
    try:
        return kind(op, version, **settled)
    except (ValueError, TypeError):
        return None


def _value(random: Random, axis: Any) -> Any:
    if axis.between is not None and random.random() < 0.25:
        low, high = axis.between
        return round(random.uniform(low, high) * 64) / 64 or None
    # Values that are rare in profiles are rare here too.
    if axis.rare and random.random() < (0.15 if axis.share is None else axis.share):
        return random.choice(axis.rare)
    return random.choice(axis.values)


def _functions(random: Random, op: str, version: int, both: bool) -> dict[str, Any]:
    count = len(cell_named(op).activations) * (2 if both else 1)
    known = functions_of(operator_version(op, version))
    row: dict[str, Any] = {"activations": tuple(random.choice(known) for _ in range(count))}
    for name in ("alpha", "beta"):
        if random.random() < 0.4:
            row[name] = tuple(random.randrange(-16, 17) / 8 for _ in range(random.randint(1, count)))
    return row
