"""The levels that certificates may certify of LSTM, GRU and RNN: the nested parts of the space that profiles are built
in, and fresh cases of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import count
from types import MappingProxyType
from typing import Any

from ...reference import operator_version
from ..specs.features import all_features, recurrent_features
from ..specs.level import Level
from ..specs.spec import CaseSpec
from .dense import LEVELS, dense_spec, supports

CHALLENGE: Mapping[str, int] = MappingProxyType({"basic": 4, "sequence": 4, "complete": 8})
"""Fresh cases of each level, for every operator version and type, at least: as many as make a fault that shows in a
quarter of all dense cases escape with a probability of 1 in 100 (0.75^16), while the 42 versions and types of the three
operators together stay at half the cases of `core`."""

_MOST_DRAWS = 64
"""Draws in which all that a level requires has been seen in every version and type (four times over, for any seed of a
hundred that were tried); what is not seen until then is left to the profile."""

_ABOUT = {
    "basic": "forward, fixed sizes, default activations, with and without bias and initial states, every output",
    "sequence": "the same in every direction, and with rows of different lengths",
    "complete": "everything that the operator's document allows",
}


@cache
def recurrent_levels(op: str, version: int, kind: Any = CaseSpec) -> tuple[Level, ...]:
    """The levels of an operator version, narrowest first; `kind` is the class of its cases."""
    return tuple(
        Level(name, _ABOUT[name], partial(_holds, name), _required(op, version, name, kind)) for name in LEVELS
    )


def _holds(name: str, spec: CaseSpec) -> bool:
    # Dimensions without length are legal and rare: they are tried, and belong to what only `complete` promises.
    return not spec.illegal and supports(spec, LEVELS[name]) and (name == "complete" or (spec.T > 0 and spec.N > 0))


def _required(op: str, version: int, name: str, kind: Any) -> tuple[str, ...]:
    """The features that axes ask for, of this level and those before, where the version has them."""
    known, narrower = all_features(op, version, kind), list(LEVELS)[: list(LEVELS).index(name) + 1]
    lacks = {axis.name for axis in kind.axes if not axis.domains(operator_version(op, version))}
    wanted = (
        feature
        for level in narrower
        for axis in kind.axes
        if axis.name not in lacks
        for feature in axis.required.get(level, ())
    )
    return tuple(feature for feature in wanted if feature in known)


def recurrent_challenge(op: str, version: int, type: str, nonce: str) -> Sequence[CaseSpec]:
    """Fresh cases of an operator version and type: of each level so many (:data:`CHALLENGE`), and after them those that
    show what the level requires and no case before did."""
    chosen: dict[str, CaseSpec] = {}
    for level in recurrent_levels(op, version):
        fresh: list[CaseSpec] = []
        shown: set[str] = set()
        for spec in _drawn(op, version, type, level.name, nonce):
            features = recurrent_features(spec)
            adds = set(level.requires) & features - shown
            if len(fresh) < CHALLENGE[level.name] or adds:
                fresh.append(spec)
                shown |= features
            if len(fresh) >= CHALLENGE[level.name] and shown.issuperset(level.requires):
                break
        chosen.update((spec.digest, spec) for spec in fresh)
    return tuple(chosen.values())


def _drawn(op: str, version: int, type: str, name: str, nonce: str) -> Iterator[CaseSpec]:
    seen: set[str] = set()
    for index in count():
        if index >= _MOST_DRAWS * 4 or len(seen) >= _MOST_DRAWS:
            return
        spec = dense_spec(op, index, version, type, LEVELS[name], f"challenge/{nonce}/{name}", later=True, wide=True)
        if spec is not None and spec.digest not in seen:
            seen.add(spec.digest)
            yield spec
