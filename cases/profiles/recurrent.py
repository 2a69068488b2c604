"""Cases of operators that have a cell, and of ONNX's recurrent operators as one family."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ...reference import CELLS, Node, operator_version
from ..axes.axis import NOTHING, Axis, features_in
from ..axes.violation import Violation
from ..specs.family import FRESH_CASES, Family, Level, Supported, register
from ..specs.features import all_features, break_case, illegal_cases, node_features, recurrent_features, violations_of
from ..specs.recurrent import recurrent_case
from ..specs.space import settle
from ..specs.spec import RECURRENT_AXES, CaseSpec
from . import written_cases
from .random_cases import distinct, left_of, random_case, within

if TYPE_CHECKING:
    from ..specs.drawing import Bounds


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


def _holds(name: str, spec: CaseSpec) -> bool:
    # Dimensions of length 0 are legal and rare: they are tested, but only `complete` includes them.
    return not spec.illegal and supports(spec, LEVELS[name]) and (name == "complete" or (spec.T > 0 and spec.N > 0))


def _required(op: str, version: int, name: str, kind: Any) -> tuple[str, ...]:
    """Return the features that axes require at this level and narrower ones, if the version has them."""
    possible, levels = all_features(op, version, kind), list(LEVELS)[: list(LEVELS).index(name) + 1]
    features = features_in(tuple(axis for axis in kind.axes if axis.of(operator_version(op, version)) is not None))
    return tuple(f.name for level in levels for f in features if f.level == level and f.name in possible)


RANDOM_OF_FULL = 1200
"""Number of random cases of ``full`` for each operator version."""


class CellFamily(Family):
    """Cases of LSTM, GRU and RNN, and of operators like them, derived from the axes of their specs."""

    operators = tuple(CELLS)
    spec: Any = CaseSpec
    build = staticmethod(recurrent_case)

    def profile(self, name: str, op: str, version: int) -> Iterable[CaseSpec]:
        """Return the cases of the profile's file; see :mod:`.profiles` for ``full``."""
        if name != "full":
            return written_cases(name, op, version)
        written = itertools.chain(written_cases("core", op, version), written_cases(name, op, version))
        usual = LEVELS["complete"]  # without features that have their own profile
        drawn = distinct(lambda key: self.random_case(op, key, version, supported=usual), "full")
        drawn = itertools.islice(drawn, RANDOM_OF_FULL)
        return dict.fromkeys(itertools.chain(written, drawn, illegal_cases(op, version, self.spec)))

    def features(self, spec: CaseSpec) -> frozenset[str]:
        return recurrent_features(spec)

    def all_features(self, op: str, version: int) -> frozenset[str]:
        return all_features(op, version, self.spec)

    def content(self, spec: CaseSpec) -> Iterator[bytes]:
        """Yield every input by name; of a quantized case, its levels, scales and zero points."""
        inputs = break_case(spec)[1]
        if spec.quantized:
            trial = recurrent_case(spec).trial
            inputs = trial.feeds[-1].inputs
            for name, codec in sorted(trial.node.codecs.items()):
                yield f"{name} {codec.scales.tolist()} {codec.zero_points.tolist()} {codec.dtype.name}".encode()
        for name, array in sorted(inputs.items()):
            yield name.encode()
            yield array.tobytes()

    def richer(self, spec: CaseSpec) -> Sequence[Mapping[str, Any]]:
        """Return changes that enrich a case, to distinguish faults.

        The first makes it larger and returns all outputs; the next ones add one optional feature each; the last adds
        most of them.
        """
        more: dict[str, Any] = {"T": max(spec.T, 4), "N": max(spec.N, 3), "H": max(spec.H, 5)}
        more["outputs"] = tuple(operator_version(spec.op, spec.version).outputs)
        absent: list[tuple[Axis, Mapping[str, Any]]] = []
        for axis in spec.axes:
            changes = axis.added(spec)
            if any(getattr(spec, name) != value for name, value in changes.items()):
                absent.append((axis, changes))
        together: dict[str, Any] = {}
        for axis, changes in absent:
            together |= {} if axis.richer_alone else changes
        return [more, *({**more, **changes} for _, changes in absent), {**more, **together}]

    def simpler(self, spec: CaseSpec) -> Iterator[tuple[str, Mapping[str, Any]]]:
        for axis in spec.axes:
            yield from axis.simplified(spec)

    def goes_together(self, spec: CaseSpec) -> bool:
        """Return whether the rules of axes leave a case unchanged."""
        row = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
        return bool(spec.illegal or settle(row, search=True, axes=spec.axes) == row)

    def random_case(
        self, op: str, key: str, version: int | None = None, type: str | None = None, supported: Supported = NOTHING
    ) -> CaseSpec | None:
        return random_case(op, key, version, type, supported, self.spec)

    def without(self, op: str, lacks: Collection[str]) -> Supported:
        return left_of(op, lacks, self.spec)

    def cases(self, op: str, version: int, bounds: Bounds) -> Any:
        from ..specs.drawing import recurrent_cases  # imports Hypothesis, so only on demand

        return recurrent_cases(op, version, bounds, self.spec)

    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        return node_features(node, inputs, self.spec.axes)

    def violations(self, op: str, version: int) -> Sequence[Violation]:
        return violations_of(op, version, self.spec)

    def levels(self, op: str, version: int) -> Sequence[Level]:
        return _levels(op, version, self.spec)

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[CaseSpec]:
        """Return the fresh cases of a nonce.

        Each level has the number of cases in :data:`CHALLENGE`, and more for required features that no earlier case
        has.
        """
        chosen: dict[str, CaseSpec] = {}
        for level in self.levels(op, version):
            draw = partial(self.random_case, op, version=version, type=type, supported=LEVELS[level.name])
            fresh: list[CaseSpec] = []
            covered: set[str] = set()
            for spec in islice(distinct(draw, f"challenge/{nonce}/{level.name}"), _MOST_DRAWS):
                features = recurrent_features(spec)
                if len(fresh) < CHALLENGE[level.name] or set(level.requires) & features - covered:
                    fresh.append(spec)
                    covered |= features
                if len(fresh) >= CHALLENGE[level.name] and covered.issuperset(level.requires):
                    break
            chosen.update((spec.digest, spec) for spec in fresh)
        return tuple(chosen.values())


@cache
def _levels(op: str, version: int, kind: Any) -> tuple[Level, ...]:
    """Return the levels of an operator version, narrowest first; `kind` is the class of its cases."""
    return tuple(
        Level(name, _SUMMARIES[name], partial(_holds, name), _required(op, version, name, kind)) for name in LEVELS
    )


register(CellFamily())
