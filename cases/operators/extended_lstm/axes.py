"""The axes of ExtendedLSTM: those of an LSTM that it has, and its own: what a case is about, how each tensor is
quantized, how much of its range its numbers use."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....reference import OperatorVersion
from ...axes.attributes import finite_float32
from ...axes.axis import Axis, Domain, Field, Having, Rule, but
from ...axes.context import HALVES, Context, values_of
from ...axes.generator import uniform
from ...axes.node.explicit import EXPLICIT
from ...axes.node.hidden_size import HiddenSizeAxis
from ...axes.observed import Observed
from ...axes.session.reruns import RerunsAxis
from ...axes.tensors.bias import BiasAxis
from ...axes.tensors.draft import TensorDraft
from ...axes.tensors.seeds import SEEDS
from ...axes.tensors.size import SizeAxis
from ...axes.tensors.weights import WeightsAxis

__all__ = [
    "COARSE",
    "EXTENDED_AXES",
    "HIGHEST",
    "IN_RANGE",
    "MIDDLE",
    "Affine",
    "B",
    "R",
    "W",
    "X",
    "Y",
    "calibrated",
    "is_open",
    "is_power",
    "numbers",
    "reach",
    "representable",
]

HIGHEST, MIDDLE = 65535, 32768
"""Of the levels of uint16."""

Affine = tuple[float, int]

_WIDE = {"x": 3.0, "w": 0.5, "r": 0.5, "b": 0.5}
"""By tensor from where on its numbers are large: about the middle of what dense cases have."""
_NARROW = 0.6  # how far outputs must be representable on both sides; of narrower ranges it shows how they end
COARSE = 2.0**-9  # a y_scale at which roundings show in few digits
IN_RANGE = 0.999
"""Outputs lie between -1 and 1: what cannot be represented up to this saturates."""
_PLAIN: Affine = (2.0**-15, MIDDLE)
"""Levels that reach to 1 on both sides."""
_PAIR = f"any pair of a positive float32 scale and a zero point from 0 to {HIGHEST}"
_ZERO_POINTS = (0, 20000, MIDDLE, 45000, HIGHEST)


def calibrated(low: float, high: float) -> Affine:
    """Scale and zero point of a range, as the producer's calibration makes them: range/65535 in float32, uint16."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / HIGHEST)) or 1.0  # of nothing but zeros
    return scale, int(np.clip(np.rint(-low / scale), 0, HIGHEST))


# What a calibration gives for tensors of a usual size, no pair of scales a power of two.
X, W, R, B = calibrated(-3.1, 3.3), calibrated(-0.9, 1.0), calibrated(-0.8, 0.7), calibrated(-0.4, 0.5)
Y = calibrated(-1.05, 1.03)


def _is_affine(value: Any) -> bool:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    scale, zero_point = value
    whole = type(zero_point) is int and 0 <= zero_point <= HIGHEST
    return whole and type(scale) is float and finite_float32(scale) and float(np.float32(scale)) > 0


def _affines(st: Any) -> Any:
    """The strategy of scales and zero points. Levels of a tensor reach as far as 2**(exponent + 16): in most draws
    numbers are of a usual size; in the others products of two scales leave what a mantissa of 16 bits and a shift of 32
    hold."""
    mantissas = st.sampled_from((1.0, 1.5)) | st.floats(1.0, 2.0, width=32, exclude_max=True)
    exponents = st.one_of(st.just(-15), st.integers(-17, -13), st.integers(-30, -6))
    scales = st.builds(lambda m, e: float(np.float32(m * 2.0**e)), mantissas, exponents)
    zero_points = st.sampled_from((MIDDLE, 0, 32767, HIGHEST)) | st.integers(0, HIGHEST)
    return st.just(_PLAIN) | st.tuples(scales, zero_points)


def numbers(spec: Any, name: str) -> tuple[float, float]:
    """The middle of what a tensor's numbers are drawn from, and how far they are from it."""
    (scale, zero_point), fill = getattr(spec, name.lower()), dict(spec.fill).get(name, 1.0)
    low, high = -zero_point * scale * fill, (HIGHEST - zero_point) * scale * fill
    return (low + high) / 2, (high - low) / 2


class _About(Axis):
    """The subject of a case, as words of its id: ``realistic``, ``x-scale-power-of-two``."""

    name = "about"
    fields = (Field("about", str, ""),)
    part = "session"

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def drawn(self, st: Any) -> Mapping[str, Any]:
        return {"about": st.just("drawn")}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        fits = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}", spec.about)
        return None if fits else ("about", "one to 60 letters, digits, dots and hyphens")

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {f"about-{spec.about}": True}

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        return iter(())


class _Direction(Axis):
    """Both directions, always."""

    name = "direction"
    having = {"second-direction": Having(("half",), lambda row: row.half == "reverse")}

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {"direction": spec.direction}

    def occurring(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {"half": HALVES}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        for half in HALVES:
            yield Context(f"half={half}", ("half",), lambda row, half=half: row.half == half, half=True)  # type: ignore[misc]

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"bidirectional": True}


class _Size(SizeAxis):
    """T, N, I and H, the first two of which may be 0, and I."""

    fields = (Field("T", int, 4), Field("N", int, 1), Field("I", int, 3), Field("H", int, 3))
    least = {"T": 0, "N": 0, "I": 0, "H": 1}
    having = {
        **SizeAxis.having,
        "some-step": Having(("T",), lambda row: row.T > 0),
        "steps": Having(("T",), lambda row: row.T > 1),
        "recurrence": Having(("T",), lambda row: row.T > 1),
    }

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return _sizes(observed.configuration)

    def used(self, spec: Any) -> Mapping[str, bool]:
        return _sizes(spec)


def _sizes(of: Any) -> Mapping[str, bool]:
    return {
        "size-one": 1 in (of.T, of.I, of.H),
        "size-zero": 0 in (of.T, of.N, of.I, of.H),
        "several-rows": of.N > 1,
    }


class _Codec(Axis):
    """Scale and zero point of a tensor."""

    part = "model"

    def __init__(self, name: str, usual: Affine) -> None:
        self.name, self._usual = name, usual
        self.fields = (Field(name, tuple[float, int], (0.0, 0)),)
        self.having = {f"{name}-offset": Having((name,), lambda row: self._zero_point(row) not in (None, MIDDLE))}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {self.name: Domain((_PLAIN,), fits=(_is_affine, _PAIR))}

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def drawn(self, st: Any) -> Mapping[str, Any]:
        return {self.name: _affines(st)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        affine = getattr(spec, self.name)
        if affine is not None and finite_float32(affine[0]) and affine[0] >= 0 and affine[1] in range(HIGHEST + 1):
            return None
        return self.name, f"a scale from 0 on and a zero point from 0 to {HIGHEST}"

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        scale, zero_point = getattr(spec, self.name)
        return {f"{self.name}_scale": scale, f"{self.name}_zero_point": zero_point}

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        name = self.name.upper()
        if name in draft.inputs:
            middle, half = numbers(spec, name)
            drawn = uniform(draft.key(name), draft.inputs[name].shape, draft.precision, 0)
            draft.inputs[name] = (middle + half * drawn).astype(draft.format.dtype)

    def occurring(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        scales = [own * size for own in (1.0, 1.25) for size in (2.0**-20, 2.0**-10)]
        return {self.name: (*itertools.product(scales, _ZERO_POINTS),)}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from self._of_zero_point()
        yield from self._of_scale()
        yield self._context(f"{self.name} large", lambda affine: reach(affine) >= _WIDE[self.name])
        yield self._context(f"{self.name} small", lambda affine: reach(affine) < _WIDE[self.name])

    def _context(self, id: str, holds: Callable[[Affine], bool], pairs_only: bool = False) -> Context:
        """A context that a tensor which is not quantized has not."""

        def there(row: Any) -> bool:
            affine: Affine | None = getattr(row, self.name)
            return affine is not None and holds(affine)

        return Context(id, (self.name,), there, pairs_only=pairs_only)

    def _of_zero_point(self) -> Iterator[Context]:
        title = f"{self.name}_zero_point"
        ends, inside = (0, HIGHEST), {"below": range(1, MIDDLE), "above": range(MIDDLE + 1, HIGHEST)}
        yield self._context(f"{title} at an end", lambda affine: affine[1] in ends)
        yield self._context(f"{title} in the middle", lambda affine: affine[1] == MIDDLE)
        yield self._context(f"{title} between", lambda affine: affine[1] not in (*ends, MIDDLE))
        for value in ends:
            yield self._context(f"{title}={value}", lambda affine, value=value: affine[1] == value, True)  # type: ignore[misc]
        for word, among in inside.items():
            yield self._context(f"{title} {word} the middle", lambda affine, among=among: affine[1] in among, True)  # type: ignore[misc]

    def _of_scale(self) -> Iterator[Context]:
        yield self._context(f"{self.name}_scale power of two", lambda affine: is_power(affine[0]))
        yield self._context(f"{self.name}_scale no power of two", lambda affine: not is_power(affine[0]))

    def _zero_point(self, row: Any) -> int | None:
        affine: Affine | None = getattr(row, self.name)
        return None if affine is None else affine[1]

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The result of a calibration for a tensor of usual size; a zero point in the middle; a scale that is no power
        of two."""
        affine: Affine | None = getattr(spec, self.name)
        if affine is None or affine == self._usual:
            return
        scale, zero_point = affine
        values = [self._usual, (scale, MIDDLE), *([(scale * 1.25, zero_point)] if is_power(scale) else [])]
        yield from ((self.name, {self.name: value}) for value in values if value != affine)


class _Output(_Codec):
    """Scale and zero point of Y; None where it is not quantized."""

    words = {"quantized-output": "a quantized Y", "float-output": "a Y that is not quantized"}

    def __init__(self) -> None:
        super().__init__("y", Y)
        self.fields = (Field("y", tuple[float, int] | None, None),)
        self.having = {
            **self.having,
            "y-given": Having(("y",), lambda row: row.y is not None),
            "y-beyond": Having(("y",), lambda row: row.y is not None and representable(row.y) < 1),
        }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"y": Domain((None, _PLAIN), fits=(_is_affine, _PAIR))}

    def drawn(self, st: Any) -> Mapping[str, Any]:
        return {"y": st.none() | _affines(st)}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        return None if spec.y is None else super().refusal(spec)

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        return {} if spec.y is None else super().attributes(spec)

    def occurring(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        scales = [own * size for own in (1.0, 1.25) for size in (2.0**-18, 2.0**-15, 2.0**-14, 2.0**-8)]
        return {"y": (None, *itertools.product(scales, _ZERO_POINTS))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield self._context("y", lambda affine: True)
        yield Context("no y", ("y",), lambda row: row.y is None)
        yield from self._of_zero_point()
        yield from self._of_scale()
        yield self._context("y narrow", lambda affine: representable(affine) < _NARROW)
        yield self._context("y wide", lambda affine: representable(affine) >= _NARROW)
        yield self._context("y coarse", lambda affine: affine[0] >= COARSE)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        resolved: Any = observed.configuration
        y = resolved.y
        return self._told(y is not None, y is not None and min(-y.least, y.greatest) < IN_RANGE)

    def used(self, spec: Any) -> Mapping[str, bool]:
        return self._told(spec.y is not None, spec.y is not None and representable(spec.y) < IN_RANGE)

    def _told(self, there: bool, narrow: bool) -> Mapping[str, bool]:
        return {"quantized-output": there, "float-output": not there, "saturating-output": narrow}

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        yield from super().simpler(spec)
        if spec.y is not None:
            yield "y", {"y": None}


def is_power(scale: float) -> bool:
    """Tell whether a scale is a power of two, as attributes hold it."""
    return math.frexp(float(np.float32(scale)))[0] == 0.5


def reach(affine: Affine) -> float:
    """The largest size of a number that levels stand for."""
    scale, zero_point = affine
    return scale * max(zero_point, HIGHEST - zero_point)


def representable(affine: Affine) -> float:
    """Up to where levels stand for numbers on both sides of zero."""
    scale, zero_point = affine
    return scale * min(zero_point, HIGHEST - zero_point)


class _Fill(Axis):
    """By tensor how much of its range the numbers use: more than 1 saturates."""

    name = "fill"
    fields = (Field("fill", tuple[tuple[str, float], ...], ()),)

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {}

    def drawn(self, st: Any) -> Mapping[str, Any]:
        shares = st.tuples(*[st.sampled_from((1.0, 0.25, 1.5))] * 4)  # all of a range, little, more than there is
        return {"fill": shares.map(lambda some: tuple(pair for pair in zip("XWRB", some, strict=True) if pair[1] != 1))}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        right = all(name in ("X", "W", "R", "B", "Y") and finite_float32(f) and f > 0 for name, f in spec.fill)
        return None if right else ("fill", "pairs of a tensor's name and a positive number")

    def occurring(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        shares = itertools.product((1.0, 1.5), repeat=4)
        return {"fill": tuple(tuple(zip("XWRB", some, strict=True)) for some in shares)}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        for name in "xwrb":
            yield Context(f"{name} beyond its range", ("fill",), lambda row, name=name: _beyond(row, name))  # type: ignore[misc]
            yield Context(f"{name} within its range", ("fill",), lambda row, name=name: not _beyond(row, name))  # type: ignore[misc]


def _beyond(row: Any, name: str) -> bool:
    return any(fill > 1 for of, fill in row.fill if of == name.upper())


_WILD = {"inf": np.inf, "nan": np.nan, "far": 1e30}
_DATA = ("dense", "ties", "inf", "far")


class _Data(Axis):
    """``dense``; ``ties`` (X between two levels); ``inf``, ``nan``, ``far`` (some of X is infinite, NaN, 1e30)."""

    name = "data"
    fields = (Field("data", str, "dense"),)
    rules = (Rule("data", "dense", ("T", "N"), lambda row: not (row["T"] and row["N"])),)
    having = {
        "x-beyond": Having(("fill", "data"), lambda row: _beyond(row, "x") or row.data in ("inf", "far")),
        **{f"{n}-beyond": Having(("fill",), lambda row, n=n: _beyond(row, n)) for n in "wrb"},  # type: ignore[misc]
    }

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"data": Domain(("dense",), rare=("ties", "inf", "far", "nan"))}

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        if spec.data != "dense" and spec.illegal:
            return "data", "'dense' in a forbidden model"
        if spec.data != "dense" and not spec.T * spec.N * spec.I * spec.x[0]:
            return "data", "'dense' where X is empty or has no scale"
        return None

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        X: NDArray[Any] = draft.inputs["X"]
        if spec.data == "ties":
            levels = np.floor(X.astype(np.float64) / spec.x[0])
            draft.inputs["X"] = ((levels + 0.5) * spec.x[0]).astype(X.dtype)
        elif spec.data != "dense":
            wild = _WILD[spec.data]
            X[len(X) // 2, 0, 0] = wild
            if spec.data != "nan" and X.size > 1:
                X[-1, 0, -1] = -wild

    def occurring(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        return {"data": _DATA}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("data", _DATA)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        resolved: Any = observed.configuration
        given, codecs = resolved.given, resolved.affine
        beyond = (
            (given[name] < affine.least - affine.scale).any() or (given[name] > affine.greatest + affine.scale).any()
            for name, affine in codecs.items()
        )
        return {
            "nonfinite": not all(np.isfinite(array).all() for array in given.values()),
            "saturating-input": any(beyond),
        }

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {
            "near-tie": spec.data == "ties",
            "nonfinite": spec.data in ("inf", "nan"),
            "saturating-input": spec.data in ("inf", "far") or any(_beyond(spec, name) for name in "xwrb"),
        }


class _Bias(BiasAxis):
    """The input B, which most runtimes ask for."""

    fields = (Field("bias", bool, True),)

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {**super().observe(observed), "bias-absent": "B" not in observed.inputs}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"bias-absent": not spec.bias}


class _HiddenSize(HiddenSizeAxis):
    """The attribute, which cases tell to be there or not, since the document leaves open what follows."""

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        return {"hidden-size-absent": "hidden_size" not in observed.attributes}

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"hidden-size-absent": not spec.hidden_size}


class _Weights(WeightsAxis):
    """Constants first, which is how the producer writes them."""

    fields = (Field("weights", str, "initializer"),)

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {value: spec.weights == value for value in ("initializer", "input")}


class _Reruns(RerunsAxis):
    """``sizes``: of more steps, since one row is what every implementation has."""

    having = {"earlier-run": Having(("reruns",), lambda row: row.reruns != "none")}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"reruns": Domain(("none", "data", "sizes"))}

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        if draft.run and spec.reruns == "sizes":
            draft.T += 2

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("reruns", self.order)


class _Open(Axis):
    """Names for seq_length and batch_size in the model; where runs have several sizes it does anyhow."""

    name = "open"
    fields = (Field("open", bool, False),)
    part = "model"

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"open": Domain((False, True))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield Context("dimensions=symbolic", ("open", "reruns"), is_open)
        yield Context("dimensions=static", ("open", "reruns"), lambda row: not is_open(row))


def is_open(row: Any) -> bool:
    """Tell whether the model of a case gives names to seq_length and batch_size."""
    return bool(row.open or row.reruns == "sizes")


class _Former(Axis):
    """The old domain and name of the node."""

    name = "old"
    fields = (Field("old", bool, False),)
    part = "model"
    words = {"old-domain": "the operator's former name"}

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        return {"old": Domain((False, True))}

    def contexts(self, operators: Sequence[OperatorVersion]) -> Iterator[Context]:
        yield from values_of("old", (True, False))

    def used(self, spec: Any) -> Mapping[str, bool]:
        return {"old-domain": spec.old}


EXTENDED_AXES: tuple[Axis, ...] = (
    *(_About(), _Direction(), _Size()),
    *(_Codec("x", X), _Codec("w", W), _Codec("r", R), _Codec("b", B), _Output(), _Fill(), _Data(), _Bias()),
    *(_HiddenSize(), _Weights(), _Reruns(), _Open(), _Former()),
    # Two ways to write a node at a time are what its dense cases have.
    but(EXPLICIT, rules=()),
    but(SEEDS, fields=(Field("seed", int, 0),)),
)
