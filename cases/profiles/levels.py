"""Levels that certificates may certify of LSTM, GRU and RNN: nested parts of the space, and fresh cases of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from itertools import islice
from types import MappingProxyType
from typing import Any

from ...reference import operator_version
from ..axes.recurrent import RECURRENT_AXES
from ..specs.family import FRESH_CASES
from ..specs.features import all_features, recurrent_features
from ..specs.level import Level
from ..specs.spec import CaseSpec
from .random_cases import Supported, distinct, random_case, within


def _level(name: str) -> Supported:
    """Return the values that belong to a level, as axes say; an axis without the level has those of ``basic``."""
    return {axis.name: axis.levels.get(name, axis.levels["basic"]) for axis in RECURRENT_AXES if axis.levels}


def _restricting(supported: Supported) -> Supported:
    """Leave out axes that may have any of their values."""
    free = {axis.name for axis in RECURRENT_AXES if set(supported.get(axis.name, ())) == set(axis.order) != set()}
    return {name: values for name, values in supported.items() if name not in free}


LEVELS: Mapping[str, Supported] = MappingProxyType(
    {
        "basic": _level("basic"),
        "sequence": _restricting(_level("sequence")),
        "complete": {axis.name: axis.levels["complete"] for axis in RECURRENT_AXES if "complete" in axis.levels},
    }
)
"""Nested parts of the space, from features that every runtime has to all."""

CHALLENGE: Mapping[str, int] = MappingProxyType({"basic": FRESH_CASES, "sequence": 16, "complete": 32})
"""Fresh cases of each level, for every operator version and type, at least. A fault that shows in a quarter of the
cases of `complete` escapes 32 of them with a probability of 1 in 10,000."""

_MOST_DRAWS = 256
"""Number of draws in which every required feature of a level has been seen; the profile has the missing ones."""

_SUMMARIES = {
    "basic": "forward, fixed sizes, default activations, with and without bias and initial states, every output",
    "sequence": "the same in every direction, and with rows of different lengths",
    "complete": "everything that the operator's document allows",
}


def supports(spec: CaseSpec, supported: Supported) -> bool:
    """Tell whether a case lies in a part of the space."""
    return all(within(name, getattr(spec, name, None), values) for name, values in supported.items())


@cache
def recurrent_levels(op: str, version: int, kind: Any = CaseSpec) -> tuple[Level, ...]:
    """Return the levels of an operator version, narrowest first; `kind` is the class of its cases."""
    return tuple(
        Level(name, _SUMMARIES[name], partial(_holds, name), _required(op, version, name, kind)) for name in LEVELS
    )


def _holds(name: str, spec: CaseSpec) -> bool:
    # Dimensions without length are legal and rare: they are tried, and belong to what only `complete` promises.
    return not spec.illegal and supports(spec, LEVELS[name]) and (name == "complete" or (spec.T > 0 and spec.N > 0))


def _required(op: str, version: int, name: str, kind: Any) -> tuple[str, ...]:
    """Return the features that axes ask for, of this level and narrower ones, where the version has them."""
    known, levels = all_features(op, version, kind), list(LEVELS)[: list(LEVELS).index(name) + 1]
    present = [axis for axis in kind.axes if axis.domains(operator_version(op, version))]
    wanted = (feature for level in levels for axis in present for feature in axis.required.get(level, ()))
    return tuple(feature for feature in wanted if feature in known)


def recurrent_challenge(op: str, version: int, type: str, nonce: str, kind: Any = CaseSpec) -> Sequence[CaseSpec]:
    """Return the fresh cases of a nonce: for each level the number in :data:`CHALLENGE`, and more for required features
    that no earlier case has."""
    chosen: dict[str, CaseSpec] = {}
    for level in recurrent_levels(op, version, kind):
        seed, supported = f"challenge/{nonce}/{level.name}", LEVELS[level.name]
        draws = distinct(partial(_draw, op, version, type, supported, kind), seed)
        fresh: list[CaseSpec] = []
        shown: set[str] = set()
        for spec in islice(draws, _MOST_DRAWS):
            features = recurrent_features(spec)
            if len(fresh) < CHALLENGE[level.name] or set(level.requires) & features - shown:
                fresh.append(spec)
                shown |= features
            if len(fresh) >= CHALLENGE[level.name] and shown.issuperset(level.requires):
                break
        chosen.update((spec.digest, spec) for spec in fresh)
    return tuple(chosen.values())


def _draw(op: str, version: int, type: str, supported: Supported, kind: Any, key: str) -> CaseSpec | None:
    return random_case(op, key, version, type, supported, kind)
