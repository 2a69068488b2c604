"""Fresh cases: dense ones that no pinned list holds, the same for everyone from a seed."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator

from ...reference import CELLS, operator_version, versions_of
from ..specs.spec import CaseSpec
from .dense import Supported, dense_specs
from .pool import pool_of

__all__ = ["fresh_specs"]


def fresh_specs(
    count: int,
    seed: int | str,
    ops: Collection[str] = (),
    versions: Collection[int] = (),
    types: Collection[str] = (),
    supported: Supported | None = None,
) -> tuple[CaseSpec, ...]:
    """So many legal cases, dense with features, of each operator in turn; empty collections mean all.

    Other pinned cases have other seeds, and dense ones that are pinned are left out: what is here is in no profile.
    Raises ValueError where nothing is left to draw from.
    """
    chosen = [op for op in CELLS if not ops or op in ops]
    drawn = [_of(op, seed, versions, types, supported) for op in chosen if _there(op, versions, types)]
    if not drawn:
        raise ValueError("no operator has a version and a type of those that were asked for")
    turns = itertools.chain.from_iterable(itertools.zip_longest(*drawn))
    return tuple(itertools.islice((spec for spec in turns if spec is not None), count))


def _there(op: str, versions: Collection[int], types: Collection[str]) -> bool:
    """Whether an operator has one of the versions with one of the types."""
    return any(
        not types or set(types) & set(operator_version(op, version).types)
        for version in versions_of(op)
        if not versions or version in versions
    )


def _of(
    op: str, seed: int | str, versions: Collection[int], types: Collection[str], supported: Supported | None
) -> Iterator[CaseSpec]:
    pool = pool_of(op)
    pinned = {case.spec for case in pool.cases[: pool.pinned]}
    within = {**(supported or {}), **({"type": tuple(types)} if types else {})}
    for spec in dense_specs(op, None, None, within, f"fresh/{seed}"):
        if spec not in pinned and (not versions or spec.version in versions):
            yield spec
