"""Case family of ExtendedLSTM."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ....reference import Node
from ....reference.operators.extended_lstm.document import resolve
from ...axes.axis import NOTHING
from ...axes.generator import uniform
from ...profiles.profiles import written_cases
from ...profiles.recurrent import RecurrentFamily
from ...specs.data import inputs_of
from ...specs.family import Family, Level
from ...specs.features import Observed, groups_with, tested
from ...specs.illegal import break_case
from .axes import EXTENDED_AXES
from .codec import MIDDLE, numbers
from .levels import EXTENDED_LEVELS, extended_challenge
from .random_cases import extended_case
from .spec import OP_TYPE, VERSION, ExtendedSpec

_ASIDE = 5000  # levels by which a zero point is moved: far, but scales still fit


class _Extended(RecurrentFamily):
    """Cases of ExtendedLSTM."""

    operators = (OP_TYPE,)
    spec = ExtendedSpec
    larger = MappingProxyType({"T": 3, "I": 3, "H": 5})  # no second row, because some targets support one row only

    def profile(self, name: str, op: str, version: int) -> Iterable[Any]:
        """Return the cases of a profile; those that may corrupt memory come last."""
        return sorted(super().profile(name, op, version), key=lambda spec: spec.spoils)

    def features(self, spec: Any) -> frozenset[str]:
        """Return features that a case contains."""
        features: frozenset[str] = spec.features
        return features

    def groups(self, spec: Any) -> list[str]:
        """Return the report columns of a case; every legal case is bidirectional."""
        always = {"bidirectional", *(["bias"] if spec.bias else [])}
        return groups_with(spec.features & {"illegal"} or spec.features | always)

    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Return the features of all cases."""
        return _all_features()

    def content(self, spec: Any) -> Iterator[bytes]:
        """Yield the bytes that identify a case: attributes, inputs, and inputs of the earlier run."""
        yield repr(sorted(break_case(spec)[0].attributes.items())).encode()
        yield from super().content(spec)
        if spec.reruns != "none":
            yield inputs_of(spec, 1)["X"].tobytes()

    def node_features(self, node: Node, inputs: Mapping[str, NDArray[Any]]) -> frozenset[str]:
        """Return features of a node, by its axes."""
        observed: Any = Observed(node, inputs, resolve(node.attributes, inputs))
        return frozenset(name for name, present in tested(observed, EXTENDED_AXES).items() if present)

    def formula(self, spec: Any, name: str, array: NDArray[Any]) -> str | None:
        """Return the Python expression that generates a tensor, within its range; None if there is none."""
        if name not in ("X", "W", "R", "B"):
            return None
        middle, reach = numbers(spec, name)
        for run in (0, 1):
            key = f"{spec.op}/{name}/{spec.seed}/{run}"
            if (middle + reach * uniform(key, array.shape, 24, 0)).astype(array.dtype).tobytes() == array.tobytes():
                drawn = f'drawn("{key}", {array.shape}, 24, 0)'
                return f'({middle!r} + {reach!r} * {drawn}).astype("{array.dtype.name}")'
        return None

    def random_case(
        self,
        op: str,
        key: str,
        version: int | None = None,
        type: str | None = None,
        supported: Mapping[str, Collection[Any]] = NOTHING,
    ) -> Any | None:
        """Return a random case. Half of the cases leave out features that targets lack."""
        return extended_case("partial" if int(key[-1:], 36) % 2 else "complete", key)

    def without(self, op: str, lacks: Collection[str]) -> Mapping[str, Collection[Any]]:
        """Return no bounds: draws do not take any, so cases with missing features are left out afterwards."""
        return NOTHING

    def richer(self, spec: Any) -> Sequence[Mapping[str, Any]]:
        """Return changes that make a case larger, then add a bias, an earlier run, and other scales and zero points.

        Faults of levels and faults of sums look the same while gates are shut.
        """
        more = {"T": max(spec.T, 4), "I": max(spec.I, 3), "H": max(spec.H, 5)}
        richer: list[dict[str, Any]] = [more, {**more, "bias": True}, {**more, "reruns": "data"}]
        for name in ("x", "w"):
            scale, zero_point = getattr(spec, name)
            aside = zero_point + (_ASIDE if zero_point < MIDDLE else -_ASIDE)
            richer += [{**more, name: (scale / 2, zero_point)}, {**more, name: (scale, aside)}]
        return richer

    crossed = Family.crossed

    def levels(self, op: str, version: int) -> Sequence[Level]:
        """Return the conformance levels."""
        return EXTENDED_LEVELS

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[Any]:
        """Return fresh cases for a nonce."""
        return extended_challenge(nonce)


@cache
def _all_features() -> frozenset[str]:
    specs = (spec for name in ("core", "full") for spec in written_cases(name, OP_TYPE, VERSION))
    return frozenset().union(*(spec.features for spec in specs))


EXTENDED_FAMILY = _Extended()
