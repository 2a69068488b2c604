"""Case family of ExtendedLSTM."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ...axes.axis import NOTHING
from ...axes.generator import uniform
from ...profiles.profiles import written_cases
from ...profiles.random_cases import distinct
from ...profiles.recurrent import RecurrentFamily
from ...specs.data import inputs_of
from ...specs.family import FRESH_CASES, Family, Level, register
from ...specs.illegal import break_case
from .codec import COARSE, IN_RANGE, MIDDLE, is_power, numbers, reach, representable
from .random_cases import extended_case
from .spec import OP_TYPE, ExtendedSpec

_USUAL = {"x": (0.2, 16.0), **dict.fromkeys("wrb", (0.02, 16.0))}
"""Least and greatest size of a tensor's largest number."""


def _is_calibrated(spec: Any) -> bool:
    plain = spec.bias and spec.hidden_size and not (spec.illegal or spec.old or spec.fill) and spec.data == "dense"
    if not plain or spec.N != 1 or not spec.T * spec.I or spec.y is None:
        return False
    usual = all(low <= reach(getattr(spec, name)) <= high for name, (low, high) in _USUAL.items())
    # Calibrated ranges include outputs of -1, and their levels are fine.
    in_range = spec.y[1] >= MIDDLE and representable(spec.y) >= IN_RANGE and spec.y[0] < COARSE / 2
    scales = [getattr(spec, name)[0] for name in "xwrby"]
    products = (spec.x[0] * spec.w[0], spec.y[0] * spec.r[0])
    return usual and in_range and not any(is_power(scale) for scale in (*scales, *products))


EXTENDED_LEVELS: tuple[Level, ...] = (
    Level(
        "calibrated",
        "one row, with scales and zero points as calibration of tensors of usual sizes gives them, outputs in range",
        _is_calibrated,
        ("quantized-output", "initializer", "input"),
    ),
    Level(
        "complete",
        "everything that the operator's document allows: any scales, several rows, outputs and inputs out of range",
        lambda spec: not spec.illegal,
        (
            *("bias-absent", "quantized-output", "float-output", "initializer", "input"),
            *("several-rows", "saturating-input", "saturating-output", "rerun", "hidden-size-absent"),
        ),
    ),
)


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

    @cache  # noqa: B019 - there is one family
    def all_features(self, op: str, version: int) -> frozenset[str]:
        """Return the features of all cases."""
        specs = (spec for name in ("core", "full") for spec in written_cases(name, op, version))
        return frozenset().union(*(spec.features for spec in specs))

    def content(self, spec: Any) -> Iterator[bytes]:
        """Yield the bytes that identify a case: attributes, inputs, and inputs of the earlier run."""
        yield repr(sorted(break_case(spec)[0].attributes.items())).encode()
        yield from super().content(spec)
        if spec.reruns != "none":
            yield inputs_of(spec, 1)["X"].tobytes()

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
        """Return fresh cases of both levels; the same nonce gives the same cases."""
        chosen: dict[Any, None] = {}
        for level in EXTENDED_LEVELS:
            drawn = distinct(partial(extended_case, level.name), f"challenge/{nonce}")
            chosen |= dict.fromkeys(itertools.islice(filter(level.holds, drawn), FRESH_CASES))
        return tuple(chosen)


register(_Extended())
