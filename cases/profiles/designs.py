"""Designs: what an operator version is tried with in one type.

Models are few, since compilers of devices take seconds for each: a model carries many features at once, and many data.
What can be told apart by inputs alone (lengths, magnitudes, spoilt rows, seeds) shares a model. That a case fails for
one reason alone is not needed: a diagnosis tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...reference import cell_named, operator_version
from ..specs.space import axes_of, spec_from
from ..specs.spec import CaseSpec

Row = dict[str, Any]


def plain_row(op: str, version: int) -> Row:
    """Values of every case unless it says otherwise."""
    row: Row = {"weights": "initializer", "outputs": "all"}
    if "output_sequence" in operator_version(op, version).attributes:
        row["output_sequence"] = 1
    return row


def fits(row: Mapping[str, Any], axes: Mapping[str, Any]) -> bool:
    """Tell whether a version has what a row asks for."""
    return all(name in axes or name in ("data", "T", "N", "H", "I", "seed", "type") for name in row)


def accuracy(op: str, version: int, kind: str, seeds: int) -> Iterator[CaseSpec]:
    """One step from given states, every state exact: here drift that hides inside a radius shows as a bias. The weights
    are inputs, so all seeds share a model."""
    row = {**plain_row(op, version), "type": kind, "weights": "input", "bias": True, "initial": "all"}
    for seed in range(seeds):
        yield spec_from(op, version, row, T=1, N=8, I=3, H=8, seed=seed, weights_seed=seed, data="numerics")


# One feature at a time, on a plain node: a finding's smallest case is then as plain as it can be.
_ALONE: tuple[Row, ...] = (
    {},
    {"direction": "reverse"},
    {"bias": True},
    {"lengths": "ragged"},
    {"peepholes": True, "initial": "all"},
    {"input_forget": 1, "initial": "all"},
    {"linear_before_reset": 1},
    {"clip": 0.5, "initial": "all"},
    {"layout": 1},
    {"T": 0, "initial": "all"},
    {"clip": 0.0},
    {"hidden_size": False},
)


def alone(op: str, version: int) -> Iterator[CaseSpec]:
    """Single features, in the version's first type."""
    axes = axes_of(operator_version(op, version))
    plain = plain_row(op, version)
    for row in _ALONE:
        if fits(row, axes):
            yield spec_from(op, version, {**plain, **row})
    # One output alone that is not Y, with a companion that has all.
    yield spec_from(op, version, {**plain, "outputs": "last"})


def together(op: str, version: int, kind: str, *, first: bool) -> Iterator[CaseSpec]:
    """All features in few models: for versions and types that repeat what another one has been tried with.

    first
        Whether it is the first type of the version, in which everything is tried.
    """
    operator = operator_version(op, version)
    axes = axes_of(operator)
    base = {**plain_row(op, version), "type": kind}
    rich = {**base, "bias": True, "initial": "all", "lengths": "ragged", "direction": "bidirectional"}
    if "peepholes" in axes:
        rich["peepholes"] = True
    rows: list[Row] = [rich]
    if first:
        rows += [
            {**rich, "activations": "mixed", "clip": 0.25},
            {**base, "outputs": "states", "lengths": "ragged", "initial": "all"},
        ]
        if version in cell_named(op).without_defaults:
            rows.append({**base, "activations": "usual"})
        more: Row = {n: 1 for n in ("input_forget", "linear_before_reset", "layout") if n in axes}
        rows.append({**rich, **more, "direction": "reverse", "dimensions": "symbolic", "reruns": "sizes"})
        if "output_sequence" in operator.attributes:
            rows += [
                {"outputs": "all", "weights": "initializer"},
                {"outputs": "states", "weights": "initializer", "output_sequence": 0},
            ]
    for row in rows:
        for seed in (0, 1):
            yield spec_from(op, version, row, seed=seed)
    if first and len(operator.types) > 3:
        yield from accuracy(op, version, kind, 2)
