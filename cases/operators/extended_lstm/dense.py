"""Dense cases of ExtendedLSTM: legal ones drawn at random, each with many features at once.

As for ONNX's operators (:mod:`...profiles.dense`), every case is drawn by its own number, so that a list of numbers is
a list of cases. Scales are chosen so that pre-activations stay where gates still tell numbers apart, whatever the sizes
and zero points.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from ...axes.generator import Counter
from ...specs.family import PoolDesign
from ...specs.recurrent_contexts import RecurrentContexts
from .axes import EXTENDED_AXES, is_open
from .codec import HIGHEST, MIDDLE, Affine, calibrated
from .spec import OP_TYPE, extended

EXTENDED_CONTEXTS = RecurrentContexts(OP_TYPE, EXTENDED_AXES)

# Parts of the space: what calibration gives, in one row; everything; everything but some of it, as targets lack it.
DESIGN = PoolDesign(
    drawn={"calibrated": 60, "complete": 280, "partial": 360},
    siblings={"calibrated": 0, "complete": 0, "partial": 0},
    models={"calibrated": 5, "complete": 24},
    cases=29,
    quick=18,
    turns=(21, 4),
)
"""The way in which the pool is drawn, and the share of it in ``core``: scales are attributes, so cases share a model
only where all tensors are fed."""

_STEPS = (1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8, 9, 11, 16, 17)
_ROWS = (1, 1, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 8, 9)
_WIDTHS = (1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 16, 16, 17, 19, 24, 31, 32, 32, 32, 33, 33, 34, 36)
_LARGEST = 1500  # T*N*H, beyond which a case costs more to judge than it shows
_MOST_IN_VAIN = 5000  # draws after which no more is expected of what is left

_LEFT_OUT = {
    "rows": 9, "float-output": 8, "no-bias": 7, "no-hidden-size": 7, "old": 7, "narrow-output": 8, "coarse-output": 8,
    "powers": 8, "beyond": 7, "wild": 9, "reruns": 5, "inputs": 5, "ends": 6, "low-output": 5,
}  # fmt: skip
"""Features that a target may lack or get wrong wherever it is, and in how many of sixteen cases of the partial level it
is left out. The shares are a choice, by what the shipped kernel does."""
_SIXTEENTHS = 16
_STRENGTHS = (0.6, 1.0, 1.5, 2.2)  # by what shares are multiplied: targets lack little or much

_DRAWS = 1 << 32  # numbers of dense cases for searches, of which
_ALONE, _NOTHING, _RARE = 0.6, 0.02, 0.15  # so many are of one row, without steps or rows, and with rare scales,
_EXPONENTS = (-30, -6)  # which are of such sizes: levels reach as far as 2**(exponent + 16)

_UNUSUAL = frozenset(_LEFT_OUT) - {"reruns", "inputs"}
"""Factors that calibration of tensors of usual sizes does not give."""


def dense_extended(level: str, index: int, seed: str = "") -> Any:
    """Dense case number `index` of a level. Raises KeyError for a level that there is not."""
    choose = Counter.of(f"ExtendedLSTM/dense/{level}/{seed}/{index}")
    without = {"calibrated": _UNUSUAL, "complete": frozenset[str](), "partial": _some(choose)}[level]
    return _Draw(choose, without).spec()


def sibling_of(spec: Any, number: int) -> Any | None:
    """Another case of the same model: with other numbers, and other sizes where these are open. None where the model
    holds the weights, whose numbers go with X's."""
    if spec.weights != "input":
        return None
    choose = Counter.of(f"{spec.digest}/{number}")
    draw = _Draw(choose, frozenset())
    changes: dict[str, Any] = {"seed": choose.below(1 << 16), "reruns": draw.one_of("none", "data")}
    if is_open(spec):
        changes |= {name: size for name, size in draw.sizes(spec.I, spec.H).items() if name in "TN"}
        changes |= {"reruns": draw.one_of("none", "data", "sizes"), "open": True}
    return replace(spec, **changes, fill=draw.fill(), data=draw.data())


def fresh_extended(seed: int | str, lacks: Collection[str] = ()) -> Iterator[Any]:
    """Dense cases without end, of all that there is and of parts of it, without some contexts; it ends where nothing
    more is left."""
    out = [place for id, place in EXTENDED_CONTEXTS.position.items() if id in lacks]
    known: set[Any] = set()
    in_vain = 0
    for index in itertools.count():
        spec = dense_extended("partial" if index % 2 else "complete", index, f"fresh/{seed}")
        if spec in known or (out and EXTENDED_CONTEXTS.held(spec)[:, out].any()):
            in_vain += 1
            if in_vain > _MOST_IN_VAIN:
                return
            continue
        in_vain = 0
        known.add(spec)
        yield spec


def any_extended(random: Random) -> Any | None:
    """A dense case for searches, mostly of one row, which is what every implementation has; sometimes without steps or
    rows, and with scales whose products leave what a mantissa of 16 bits and a shift of 32 hold. None where what was
    drawn cannot be together."""
    spec = dense_extended("complete", random.randrange(_DRAWS), "anything")
    changes: dict[str, Any] = {"N": 1} if random.random() < _ALONE else {}
    changes |= {name: 0 for name in "TN" if random.random() < _NOTHING}
    for name in "xwrby":
        if random.random() < _RARE:
            scale = float(np.float32(random.uniform(1.0, 2.0) * 2.0 ** random.randint(*_EXPONENTS)))
            changes[name] = scale, random.randrange(HIGHEST + 1)
    try:
        return replace(spec, **changes)
    except ValueError:
        return None


def _some(choose: Counter) -> frozenset[str]:
    strength = choose.one_of(_STRENGTHS)
    return frozenset(name for name, share in _LEFT_OUT.items() if choose.below(_SIXTEENTHS) < share * strength)


class _Draw:
    """One case being drawn, of what is not left out."""

    def __init__(self, choose: Counter, without: frozenset[str]) -> None:
        self._choose, self._without = choose, without

    def one_of(self, *values: Any) -> Any:
        """One of these, each as often."""
        return self._choose.one_of(values)

    def _rare(self, feature: str, of: int) -> bool:
        """Tell whether a feature is there: once in so many cases, unless it is left out."""
        chosen = self._choose.below(of) == 0
        return chosen and feature not in self._without

    def spec(self) -> Any:
        sizes = self.sizes()
        I, H = sizes["I"], sizes["H"]
        row: dict[str, Any] = dict(sizes)
        row["x"] = self._affine(self.one_of(0.5, 1.0, 2.0, 3.0, 4.0, 7.0))
        spread = self.one_of(1.0, 1.7, 2.5)
        largest = row["x"][0] * max(row["x"][1], HIGHEST - row["x"][1])
        row["w"] = self._weights(spread / largest, I, row["x"])
        row["y"] = None if self._rare("float-output", 5) else self._output()
        row["r"] = self._weights(spread, H, None)
        row["b"] = self._affine(self.one_of(0.25, 0.4, 0.75, 1.5))
        row["bias"] = not self._rare("no-bias", 4)
        row["fill"] = self.fill()
        row["hidden_size"] = not self._rare("no-hidden-size", 4)
        row["old"] = self._rare("old", 4)
        row["explicit"] = self.one_of(False, False, True)
        row["weights"] = "input" if self._rare("inputs", 2) else "initializer"
        row["reruns"] = self.one_of("data", "sizes") if self._rare("reruns", 2) else "none"
        row["data"] = self.data()
        row["seed"] = self._choose.below(1 << 16)
        return extended("dense", **row)

    def fill(self) -> tuple[tuple[str, float], ...]:
        """The tensors that are beyond their range."""
        return tuple((name, 1.5) for name in "XWRB" if self._rare("beyond", 3))

    def data(self) -> str:
        """The way in which X is spoilt, if it is."""
        return str(self.one_of("ties", "inf", "far")) if self._rare("wild", 3) else "dense"

    def sizes(self, *widths: int) -> dict[str, int]:
        """T, N, I and H, the last two of which may be given."""
        T, N = self.one_of(*_STEPS), self.one_of(*_ROWS)
        I, H = widths or (self.one_of(*_WIDTHS), self.one_of(*_WIDTHS))
        equal = self._choose.below(8)
        if equal == 0:
            N = min(T, 9)
        if equal == 1:
            I = H
        if "rows" in self._without:
            N = 1
        while T * N * H > _LARGEST and N > 1:
            N -= 1
        return {"T": T, "N": N, "I": I, "H": H}

    def _zero_point(self) -> int:
        kind = self._choose.below(6)
        if kind < 2:
            end = self.one_of(0, HIGHEST)
            return MIDDLE if "ends" in self._without else int(end)
        return MIDDLE if kind < 4 else int(self.one_of(8000, 41000) + self._choose.below(16000))

    def _affine(self, reach: float) -> Affine:
        """A scale and a zero point with which numbers reach about so far; a power of two in one case of three."""
        zero_point = self._zero_point()
        scale = float(np.float32(reach / max(zero_point, HIGHEST - zero_point)))
        if self._rare("powers", 3):
            return float(2.0 ** round(np.log2(scale))), zero_point
        return float(np.float32(scale * (1 + self._choose.below(256) / 1024))), zero_point

    def _weights(self, reach: float, terms: int, other: Affine | None) -> Affine:
        """Weights with which sums of so many products do not shut the gates: of numbers of one sign they grow with the
        number of terms, else with its root."""
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
