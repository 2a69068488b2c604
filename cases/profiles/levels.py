"""Conformance levels of LSTM, GRU and RNN for certificates: nested parts of the space, and fresh cases of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from ...reference import operator_version
from ..axes.axis import features_in
from ..specs.family import FRESH_CASES, Level
from ..specs.features import all_features, recurrent_features
from ..specs.spec import RECURRENT_AXES, CaseSpec
from .random_cases import Supported, distinct, random_case, within

_ORDER = ("basic", "sequence", "complete", "none")


def _level(name: str) -> Supported:
    """Return the values of a level by axis; axes without restriction are left out."""
    wider = _ORDER[_ORDER.index(name) + 1 :]
    narrow = (axis for axis in RECURRENT_AXES if axis.level in wider)
    return {a.name: (getattr(CaseSpec, a.name),) if a.usual is None else a.usual for a in narrow}


LEVELS: Mapping[str, Supported] = MappingProxyType({name: _level(name) for name in _ORDER[:3]})
"""Nested parts of the space, from features that every runtime has to all features."""

CHALLENGE: Mapping[str, int] = MappingProxyType({"basic": FRESH_CASES, "sequence": 16, "complete": 32})
"""Least number of fresh cases of each level, for every operator version and type.

A fault that shows in a quarter of the cases of `complete` escapes 32 of them with a probability of 1 in 10,000.
"""

_MOST_DRAWS = 256
"""Number of draws in which every required feature of a level usually occurs; the profile has the missing ones."""

_SUMMARIES = {
    "basic": "forward, fixed sizes, default activations, with and without bias and initial states, every output",
    "sequence": "the same in every direction, and with rows of different lengths",
    "complete": "everything that the operator's document allows",
}


def supports(spec: CaseSpec, supported: Supported) -> bool:
    """Return whether a case is in a part of the space."""
    return all(within(name, getattr(spec, name, None), values) for name, values in supported.items())


@cache
def recurrent_levels(op: str, version: int, kind: Any = CaseSpec) -> tuple[Level, ...]:
    """Return the levels of an operator version, narrowest first; `kind` is the class of its cases."""
    return tuple(
        Level(name, _SUMMARIES[name], partial(_holds, name), _required(op, version, name, kind)) for name in LEVELS
    )


def _holds(name: str, spec: CaseSpec) -> bool:
    # Dimensions of length 0 are legal and rare: they are tested, but only `complete` includes them.
    return not spec.illegal and supports(spec, LEVELS[name]) and (name == "complete" or (spec.T > 0 and spec.N > 0))


def _required(op: str, version: int, name: str, kind: Any) -> tuple[str, ...]:
    """Return the features that axes require at this level and narrower ones, if the version has them."""
    possible, levels = all_features(op, version, kind), list(LEVELS)[: list(LEVELS).index(name) + 1]
    features = features_in(tuple(axis for axis in kind.axes if axis.of(operator_version(op, version)) is not None))
    return tuple(f.name for level in levels for f in features if f.level == level and f.name in possible)


def recurrent_challenge(op: str, version: int, type: str, nonce: str, kind: Any = CaseSpec) -> Sequence[CaseSpec]:
    """Return the fresh cases of a nonce.

    Each level has the number of cases in :data:`CHALLENGE`, and more for required features that no earlier case has.
    """
    chosen: dict[str, CaseSpec] = {}
    for level in recurrent_levels(op, version, kind):
        seed, supported = f"challenge/{nonce}/{level.name}", LEVELS[level.name]
        draws = distinct(partial(_draw, op, version, type, supported, kind), seed)
        fresh: list[CaseSpec] = []
        covered: set[str] = set()
        for spec in islice(draws, _MOST_DRAWS):
            features = recurrent_features(spec)
            if len(fresh) < CHALLENGE[level.name] or set(level.requires) & features - covered:
                fresh.append(spec)
                covered |= features
            if len(fresh) >= CHALLENGE[level.name] and covered.issuperset(level.requires):
                break
        chosen.update((spec.digest, spec) for spec in fresh)
    return tuple(chosen.values())


def _draw(op: str, version: int, type: str, supported: Supported, kind: Any, key: str) -> CaseSpec | None:
    return random_case(op, key, version, type, supported, kind)
