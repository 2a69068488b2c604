"""The pinned pool of dense cases, with what each of them shows.

Dense cases are drawn (:mod:`.dense`), measured (``conformance/proof/exposure.py``) and chosen greedily by what they add
(``python -m benchmarks.pool.choose`` writes pool.json beside this module). The first ones are the dense
block of ``core``, level by level; the others are there to fill up on a target that lacks something. What each case
shows is pinned too, so that no choice waits for a measurement, or depends on the machine that it is made on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib import resources
from typing import Any

import msgspec
from msgspec import Struct

from ..specs.family import PoolDesign, family_of
from ..specs.spec import CaseSpec
from .dense import LEVELS, dense_spec, sibling
from .partial import PARTIAL, VARIED, partial_space
from .rare import RARE, costly, rare_space
from .turns import FIRST_EVENT, FIRST_TURN, eventful, turned

TYPES: Mapping[str, str | None] = {"basic": "float32", "sequence": "float32"}
"""The type in which a level is drawn, that which most targets have first; the others have every type."""

# Models of `complete` and cases of the dense block: with all other models of core 600, and 1,500 cases
# (test_profiles.py), in shares that bring each operator to the same goal.
_BLOCKS = {"LSTM": (71, 148), "GRU": (61, 131), "RNN": (65, 137)}


def recurrent_design(op: str) -> PoolDesign:
    """Ways in which the pools of ONNX's operators are drawn."""
    complete, cases = _BLOCKS[op]
    return PoolDesign(
        drawn={"basic": 60, "sequence": 90, "complete": 330, "partial": 420, "device": 150},
        siblings={"basic": 0, "sequence": 1, "complete": 2, "partial": 1, "device": 1, RARE: 1},
        models={"basic": 8, "sequence": 6, "complete": complete},
        cases=cases,
        quick=11,
        many={RARE: 3500},
        measured=270,
        turns=(27, 10),
    )


class Pooled(Struct, frozen=True, dict=True):
    """One case of the pool.

    op, level, index, sibling
        How it is drawn: dense case `index` of the level, or a sibling of that one (0 for itself).
    version
        That of its operator, which is known without drawing the case.
    models
        How many models must be compiled for it, a companion among them.
    held
        For each direction which contexts it has: bit k for context k of its operator.
    whole, halves
        Which parts it shows (bit k for part k of ``parts``): when it goes wrong as a whole, and in one direction alone.
    """

    op: str
    level: str
    index: int
    sibling: int
    version: int
    models: int
    held: tuple[int, ...]
    whole: int
    halves: tuple[int, ...]

    @cached_property
    def place(self) -> str:
        """The place where it stands, in a word."""
        return f"{self.op}/{self.level}/{self.index}/{self.sibling}"

    @cached_property
    def spec(self) -> Any:
        """The case itself. Most of the pool is never built."""
        spec = family_of(self.op).pooled(self.op, self.level, self.index, self.sibling)
        assert spec is not None, "pool.json names cases that are drawn"
        return spec

    @cached_property
    def model(self) -> tuple[str, int]:
        """Cases with the same one share a model."""
        return self.level, self.index


class Pool(Struct, frozen=True, dict=True):
    """The pool of an operator: ``dense`` cases of it are in ``core``, those of ``quick`` (places) in ``smoke``, and
    ``further`` ones are as pool.json has them."""

    op: str
    parts: tuple[str, ...]
    quick: tuple[int, ...]
    dense: tuple[Pooled, ...]
    further: Sequence[Sequence[Any]]

    @property
    def pinned(self) -> int:
        """The number of them in ``core``."""
        return len(self.dense)

    @cached_property
    def of_core(self) -> frozenset[str]:
        """The places of those."""
        return frozenset(case.place for case in self.dense)

    @cached_property
    def cases(self) -> tuple[Pooled, ...]:
        """All cases, those of ``core`` first."""
        return self.dense + tuple(_pooled(self.op, row) for row in self.further)


def _pooled(op: str, row: Sequence[Any]) -> Pooled:
    """The case that a row of pool.json describes."""
    level, index, number, version, models, there, whole, *halves = row
    bits = tuple(int(half, 16) for half in halves) or (int(whole, 16),)
    contexts = tuple(int(half, 16) for half in there.split("."))
    return Pooled(op, level, index, number, version, models, contexts, int(whole, 16), bits)


def recurrent_pooled(op: str, level: str, index: int, number: int) -> CaseSpec | None:
    """The case of LSTM, GRU or RNN that stands at a place of the pool; None where nothing is drawn there."""
    if number >= FIRST_TURN:
        first = recurrent_pooled(op, level, index, 0)
        if first is None:
            return None
        return eventful(first, number - FIRST_EVENT) if number >= FIRST_EVENT else turned(first, number - FIRST_TURN)
    if level == RARE:
        version, kind, space = rare_space(op, index)
        spec = dense_spec(op, index, version, kind, space, seed=level)
    else:
        space = partial_space(op, level, index) if level in PARTIAL else LEVELS[level]
        spec = dense_spec(op, index, None, TYPES.get(level), space, seed=level, later=level == VARIED)
    if spec is not None and number:
        spec = sibling(spec, number) if spec.dimensions == "symbolic" or spec.lengths != "absent" else None
    return None if spec is None or (level == RARE and costly(spec)) else spec


@cache
def pool_of(op: str) -> Pool:
    """The pool of an operator. Raises KeyError where it has none."""
    text = resources.files(__package__ or "onnxspec.cases.profiles").joinpath("pool.json").read_bytes()
    held: dict[str, Any] = msgspec.json.decode(msgspec.json.decode(text, type=dict[str, msgspec.Raw])[op])
    rows, pinned = held["cases"], held["pinned"]
    dense = tuple(_pooled(op, row) for row in rows[:pinned])
    return Pool(op, tuple(held["parts"]), tuple(held["quick"]), dense, rows[pinned:])
