"""Case family of ExtendedLSTM, and its random cases: legal ones, each with many features at once.

The scale and zero point of each tensor are chosen so that pre-activations stay where gates are not saturated.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from ...axes.axis import NOTHING
from ...axes.generator import Counter
from ...profiles import written_cases
from ...profiles.random_cases import LARGEST, STEPS, WIDTHS, distinct
from ...profiles.recurrent import CellFamily
from ...specs.family import FRESH_CASES, Family, Level, Supported, register
from ...specs.features import break_case
from ...specs.model import inputs_of
from .axes import COARSE, HIGHEST, IN_RANGE, MIDDLE, Affine, calibrated, is_power, reach, representable
from .spec import OP_TYPE, ExtendedSpec, extended

_ROWS = (1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 9)

_LEFT_OUT = {
    "rows": 9, "float-output": 8, "no-bias": 7, "no-hidden-size": 7, "old": 7, "narrow-output": 8, "coarse-output": 8,
    "powers": 8, "beyond": 7, "wild": 9, "reruns": 5, "inputs": 5, "ends": 6, "low-output": 5,
}  # fmt: skip
"""Features that a target may lack or get wrong in every case, and the number of sixteen ``partial`` cases without each.

The shares are chosen by the behaviour of the shipped kernel.
"""
_SIXTEENTHS = 16
_STRENGTHS = (0.6, 1.0, 1.5, 2.2)  # factors of the shares: targets lack little or much

_UNUSUAL = frozenset(_LEFT_OUT) - {"reruns", "inputs"}
"""Features that do not result from calibration of tensors of usual sizes."""


def extended_case(level: str, key: str) -> Any:
    """Return the case that a key draws for a level. Raise KeyError for a level that does not exist."""
    choose = Counter.of(f"ExtendedLSTM/dense/{level}/{key}")
    without = {"calibrated": _UNUSUAL, "complete": frozenset[str](), "partial": _some(choose)}[level]
    return _Draw(choose, without).spec()


def _some(choose: Counter) -> frozenset[str]:
    strength = choose.one_of(_STRENGTHS)
    return frozenset(name for name, share in _LEFT_OUT.items() if choose.below(_SIXTEENTHS) < share * strength)


class _Draw:
    """Drawing of one case with features that are not left out."""

    def __init__(self, choose: Counter, without: frozenset[str]) -> None:
        self._choose, self._without = choose, without

    def one_of(self, *values: Any) -> Any:
        """Return one of the values, with equal probability."""
        return self._choose.one_of(values)

    def _rare(self, feature: str, of: int) -> bool:
        """Return True in one of `of` cases, unless the feature is left out."""
        chosen = self._choose.below(of) == 0
        return chosen and feature not in self._without

    def spec(self) -> Any:
        row: dict[str, Any] = self._sizes()
        row["x"] = self._affine(self.one_of(0.5, 1.0, 2.0, 3.0, 4.0, 7.0))
        spread = self.one_of(1.0, 1.7, 2.5)
        largest = row["x"][0] * max(row["x"][1], HIGHEST - row["x"][1])
        row["w"] = self._weights(spread / largest, row["I"], row["x"])
        row["y"] = None if self._rare("float-output", 5) else self._output()
        row["r"] = self._weights(spread, row["H"], None)
        row["b"] = self._affine(self.one_of(0.25, 0.4, 0.75, 1.5))
        row["bias"] = not self._rare("no-bias", 4)
        row["fill"] = tuple((name, 1.5) for name in "XWRB" if self._rare("beyond", 3))
        row["hidden_size"] = not self._rare("no-hidden-size", 4)
        row["old"] = self._rare("old", 4)
        row["explicit"] = self.one_of(False, False, True)
        row["weights"] = "input" if self._rare("inputs", 2) else "initializer"
        row["reruns"] = self.one_of("data", "sizes") if self._rare("reruns", 2) else "none"
        row["data"] = self.one_of("ties", "inf", "far") if self._rare("wild", 3) else "dense"
        row["seed"] = self._choose.below(1 << 16)
        return extended("dense", **row)

    def _sizes(self) -> dict[str, int]:
        T, N, I, H = map(self._choose.one_of, (STEPS, _ROWS, WIDTHS, WIDTHS))
        equal = self._choose.below(8)
        if equal == 0:
            N = min(T, 9)
        if equal == 1:
            I = H
        if "rows" in self._without:
            N = 1
        while T * N * H > LARGEST and N > 1:
            N -= 1
        return {"T": T, "N": N, "I": I, "H": H}

    def _zero_point(self) -> int:
        kind = self._choose.below(6)
        if kind < 2:
            end = self.one_of(0, HIGHEST)
            return MIDDLE if "ends" in self._without else int(end)
        return MIDDLE if kind < 4 else int(self.one_of(8000, 41000) + self._choose.below(16000))

    def _affine(self, reach: float) -> Affine:
        """Return a scale and a zero point whose numbers reach about `reach`; in one case of three the scale is a power
        of two."""
        zero_point = self._zero_point()
        scale = float(np.float32(reach / max(zero_point, HIGHEST - zero_point)))
        if self._rare("powers", 3):
            return float(2.0 ** round(np.log2(scale))), zero_point
        return float(np.float32(scale * (1 + self._choose.below(256) / 1024))), zero_point

    def _weights(self, reach: float, terms: int, other: Affine | None) -> Affine:
        """Return the codec of weights whose sums of `terms` products do not shut the gates.

        Sums of numbers of one sign grow with the number of terms, other sums with its square root.
        """
        scale, zero_point = self._affine(reach)
        leaning = [abs(z - MIDDLE) > 24000 for z in (zero_point, *([other[1]] if other is not None else []))]
        factor = 1.7 / (terms if all(leaning) and other is not None else terms**0.5)
        power = 2.0 ** round(np.log2(factor))
        return float(np.float32(scale * power)), zero_point

    def _output(self) -> Affine:
        kind = self._choose.below(12)
        if kind < 3 and "narrow-output" not in self._without:
            low, high = self.one_of((-0.3, 0.3), (0.0, 0.9), (-0.9, 0.0), (-0.15, 1.0), (-1.0, 0.2))
            return calibrated(low, high)
        if kind < 6:
            powers = (2.0**-15, 2.0**-14, 2.0**-8, 2.0**-12)
            scale = self.one_of(*(powers[:2] if "coarse-output" in self._without else powers))
            if "powers" in self._without:
                scale = float(np.float32(scale * 1.1875))
            return scale, MIDDLE if self._choose.below(2) else 33000 + self._choose.below(1 << 14)
        if kind < 8 and "coarse-output" not in self._without:
            return float(np.float32(2.0**-9 * 1.375)), self._zero_point_of_output()
        low, high = 1.01 + self._choose.below(128) / 1024, 1.01 + self._choose.below(128) / 1024
        scale, zero_point = calibrated(-low, high)
        return scale, max(zero_point, MIDDLE) if "low-output" in self._without else zero_point

    def _zero_point_of_output(self) -> int:
        zero_point = self.one_of(MIDDLE, 20000, 45000)
        return 45000 if zero_point == 20000 and "low-output" in self._without else int(zero_point)


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


class _Extended(CellFamily):
    """Cases of ExtendedLSTM."""

    operators = (OP_TYPE,)
    spec = ExtendedSpec

    def profile(self, name: str, op: str, version: int) -> Iterable[Any]:
        """Return the cases of a profile; those that may corrupt memory come last."""
        return sorted(super().profile(name, op, version), key=lambda spec: spec.spoils)

    def features(self, spec: Any) -> frozenset[str]:
        features: frozenset[str] = spec.features
        return features

    @cache  # noqa: B019 - there is one family
    def all_features(self, op: str, version: int) -> frozenset[str]:
        specs = (spec for name in ("core", "full") for spec in written_cases(name, op, version))
        return frozenset().union(*(spec.features for spec in specs))

    def content(self, spec: Any) -> Iterator[bytes]:
        """Yield the bytes that identify a case: attributes, inputs, and inputs of the earlier run."""
        yield repr(sorted(break_case(spec)[0].attributes.items())).encode()
        yield from super().content(spec)
        if spec.reruns != "none":
            yield inputs_of(spec, 1)["X"].tobytes()

    def random_case(
        self, op: str, key: str, version: int | None = None, type: str | None = None, supported: Supported = NOTHING
    ) -> Any | None:
        """Return a random case. Half of the cases leave out features that targets lack."""
        return extended_case("partial" if int(key[-1:], 36) % 2 else "complete", key)

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

    without = Family.without  # draws take no bounds, so cases with missing features are left out afterwards

    def levels(self, op: str, version: int) -> Sequence[Level]:
        return EXTENDED_LEVELS

    def challenge(self, op: str, version: int, type: str, nonce: str) -> Sequence[Any]:
        """Return fresh cases of both levels; the same nonce gives the same cases."""
        chosen: dict[Any, None] = {}
        for level in EXTENDED_LEVELS:
            drawn = distinct(partial(extended_case, level.name), f"challenge/{nonce}")
            chosen |= dict.fromkeys(itertools.islice(filter(level.holds, drawn), FRESH_CASES))
        return tuple(chosen)


register(_Extended())
