"""The pinned pool of dense cases, with what each of them shows.

Dense cases are drawn (:mod:`.dense`), measured (``conformance/proof/exposure.py``) and chosen greedily by what they add
(``python -m onnxspec.conformance.proof.choose`` writes pool.json beside this module). The first ones are the dense
block of ``core``, level by level; the others are there to fill up on a target that lacks something. What each case
shows is pinned too, so that no choice waits for a measurement, or depends on the machine that it is made on.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

from ..specs.spec import CaseSpec
from .dense import LEVELS, dense_spec, dense_version, sibling

__all__ = ["TYPES", "Pooled", "pinned_dense", "pool_of", "pooled_spec", "quick_dense"]

TYPES: Mapping[str, str | None] = {"basic": "float32", "sequence": "float32", "complete": None}
"""The type in which each level is drawn: the one that most targets have first; None for every type."""


@dataclass(frozen=True)
class Pooled:
    """One case of the pool.

    op, level, index, sibling
        How it is drawn: dense case `index` of the level, or a sibling of that one (0 for itself).
    whole, halves
        Which parts it shows (bit k for part k of ``parts``): when it goes wrong as a whole, and in one direction alone.
    """

    op: str
    level: str
    index: int
    sibling: int
    whole: int
    halves: tuple[int, ...]

    @cached_property
    def spec(self) -> CaseSpec:
        """The case itself. Most of the pool is never built."""
        spec = pooled_spec(self.op, self.level, self.index, self.sibling)
        assert spec is not None, "pool.json names cases that are drawn"
        return spec

    @cached_property
    def version(self) -> int:
        """That of its operator, which can be known without drawing the case."""
        return dense_version(self.op, self.index, None, TYPES[self.level], LEVELS[self.level], seed=self.level)

    @property
    def model(self) -> tuple[str, int]:
        """Cases with the same one share a model."""
        return self.level, self.index


@dataclass(frozen=True)
class Pool:
    """The pool of an operator: ``pinned`` cases of it are in ``core``, those of ``quick`` (places) in ``smoke``."""

    parts: tuple[str, ...]
    pinned: int
    quick: tuple[int, ...]
    cases: tuple[Pooled, ...]


def pooled_spec(op: str, level: str, index: int, number: int) -> CaseSpec | None:
    """The case that stands at a place of the pool; None where nothing is drawn there."""
    spec = dense_spec(op, index, None, TYPES[level], LEVELS[level], seed=level)
    return sibling(spec, number) if spec is not None and number else spec


@cache
def pool_of(op: str) -> Pool:
    """The pool of an operator. Raises KeyError where it has none."""
    text = resources.files(__package__ or "onnxspec.cases.profiles").joinpath("pool.json").read_text(encoding="utf-8")
    held: dict[str, Any] = json.loads(text)[op]
    cases = []
    for level, index, number, whole, *halves in held["cases"]:
        bits = tuple(int(half, 16) for half in halves) or (int(whole, 16),)
        cases.append(Pooled(op, level, index, number, int(whole, 16), bits))
    return Pool(tuple(held["parts"]), held["pinned"], tuple(held["quick"]), tuple(cases))


def pinned_dense(op: str, version: int) -> tuple[CaseSpec, ...]:
    """The dense block of ``core`` for an operator version."""
    pool = pool_of(op)
    return tuple(case.spec for case in pool.cases[: pool.pinned] if case.version == version)


def quick_dense(op: str, version: int) -> tuple[CaseSpec, ...]:
    """The dense cases of ``smoke`` for an operator version, which are in ``core`` too."""
    pool = pool_of(op)
    return tuple(pool.cases[k].spec for k in pool.quick if pool.cases[k].version == version)
