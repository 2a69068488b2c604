"""Fresh cases: dense ones that no pinned list holds, the same for everyone from a seed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from typing import Any

from ...reference import operator_names, operator_version, versions_of
from ..specs.family import context_space, family_of, pooled_operators
from ..specs.space import space_of
from ..specs.spec import CaseSpec
from .dense import Supported, dense_specs
from .pool import pool_of

_MOST_IN_VAIN = 5000
"""Draws after which no more is expected of what is left of an operator."""


def fresh_specs(
    count: int,
    seed: int | str,
    ops: Collection[str] = (),
    versions: Collection[int] = (),
    types: Collection[str] = (),
    lacks: Collection[str] = (),
) -> tuple[Any, ...]:
    """The first cases of :func:`fresh_stream`, which says what is drawn and what is raised."""
    return tuple(itertools.islice(fresh_stream(seed, ops, versions, types, lacks), count))


def fresh_stream(
    seed: int | str,
    ops: Collection[str] = (),
    versions: Collection[int] = (),
    types: Collection[str] = (),
    lacks: Collection[str] = (),
) -> Iterator[Any]:
    """Legal cases without end, dense with features, of each operator in turn; empty collections mean all, and of
    operators ONNX's own. It ends only where nothing more is left.

    lacks
        Contexts (:mod:`..specs.contexts`) that no case has, by their ids: what the targets in question do not support.

    Other pinned cases have other seeds, and dense ones that are pinned are left out: what is here is in no profile.
    Raises ValueError where nothing is left to draw from.
    """
    chosen = [op for op in pooled_operators() if op in (ops or operator_names(""))]
    drawn = [cases for op in chosen if (cases := family_of(op).fresh(op, seed, versions, types, lacks)) is not None]
    if not drawn:
        raise ValueError("no operator has a version and a type of those that were asked for")
    turns = itertools.chain.from_iterable(itertools.zip_longest(*drawn))
    return (spec for spec in turns if spec is not None)


def recurrent_fresh(
    op: str, seed: int | str, versions: Collection[int], types: Collection[str], lacks: Collection[str]
) -> Iterator[CaseSpec] | None:
    """Fresh cases of LSTM, GRU or RNN. Raises ValueError where nothing is left of the operator."""
    return _of(op, seed, versions, types, lacks) if _there(op, versions, types) else None


def _there(op: str, versions: Collection[int], types: Collection[str]) -> bool:
    """Tell whether an operator has one of the versions with one of the types."""
    return any(
        not types or set(types) & set(operator_version(op, version).types)
        for version in versions_of(op)
        if not versions or version in versions
    )


def _of(
    op: str, seed: int | str, versions: Collection[int], types: Collection[str], lacks: Collection[str]
) -> Iterator[CaseSpec]:
    pool, space = pool_of(op), context_space(op)
    assert space is not None, "what is pooled has contexts"
    pinned = {case.spec for case in pool.dense}
    out = [place for id, place in space.position.items() if id in lacks]
    supported = _left(op, lacks, types)
    in_vain = 0
    for spec in dense_specs(op, None, None, supported, f"fresh/{seed}", later=True, wide=True):
        if in_vain > _MOST_IN_VAIN:
            return
        in_vain += 1
        if spec in pinned or (versions and spec.version not in versions):
            continue
        if not (out and space.held(spec)[:, out].any()):
            in_vain = 0
            yield spec


def _left(op: str, lacks: Collection[str], types: Collection[str]) -> Supported:
    """The values that are left of the axes of which some are lacking. What is no value of an axis is left out of what
    is drawn."""
    axes: dict[str, dict[Any, None]] = {}
    for version in versions_of(op):
        for name, axis in space_of(operator_version(op, version)).items():
            axes.setdefault(name, {}).update(dict.fromkeys((*axis.values, *axis.rare)))
    left: dict[str, Collection[Any]] = {"type": tuple(types)} if types else {}
    for name, values in axes.items():
        kept = tuple(value for value in values if f"{name}={value}" not in lacks)
        if len(kept) < len(values):
            left[name] = tuple(value for value in kept if name not in left or value in left[name])
    for name, simplest in (("clip", (None,)), ("activations", ())):
        if name in lacks:
            left[name] = simplest
    if any(not values for name, values in left.items() if name != "activations"):
        raise ValueError(f"nothing is left of {op} without {', '.join(sorted(lacks))}")
    return left
