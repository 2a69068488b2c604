"""Axes of ExtendedLSTM: those of LSTM that it has, and its own.

Its own are the subject of a case, the quantization of each tensor, and the part of its range that its numbers use.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ...axes.activations import finite_float32
from ...axes.axis import Axis, Changes, Condition, Feature, Rule, of_values
from ...axes.generator import uniform
from ...axes.node import EXPLICIT, HIDDEN_SIZE
from ...axes.session import RERUNS
from ...axes.tensors import BIAS, SEED, WEIGHTS, size_axis
from ...specs.features import Observed
from ...specs.model import TensorDraft
from .violations import violations

HIGHEST, MIDDLE = 65535, 32768
"""The highest and the middle level of uint16."""

Affine = tuple[float, int]

COARSE = 2.0**-9  # a y_scale at which roundings are visible in few digits
IN_RANGE = 0.999
"""Outputs lie between -1 and 1: a range that ends below this saturates."""
PLAIN: Affine = (2.0**-15, MIDDLE)
"""Levels that reach 1 on both sides."""


def calibrated(low: float, high: float) -> Affine:
    """Return scale and zero point of a range as the producer's calibration computes them: range/65535 in float32,
    uint16."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / HIGHEST)) or 1.0  # 1 if all numbers are zero
    return scale, int(np.clip(np.rint(-low / scale), 0, HIGHEST))


# Scales that a calibration gives for tensors of usual sizes; no product of two scales is a power of two.
X, W, R, B = calibrated(-3.1, 3.3), calibrated(-0.9, 1.0), calibrated(-0.8, 0.7), calibrated(-0.4, 0.5)
Y = calibrated(-1.05, 1.03)


def is_affine(value: Any) -> bool:
    """Return whether a value is a scale and a zero point."""
    if not isinstance(value, tuple) or len(value) != 2:
        return False
    scale, zero_point = value
    whole = type(zero_point) is int and 0 <= zero_point <= HIGHEST
    return whole and type(scale) is float and finite_float32(scale) and float(np.float32(scale)) > 0


def affines(st: Any) -> Any:
    """Return the strategy of scales and zero points.

    Levels of a tensor reach up to 2**(exponent + 16). In most draws numbers have usual sizes. In the others, products
    of two scales exceed what a mantissa of 16 bits and a shift of 32 can hold.
    """
    mantissas = st.sampled_from((1.0, 1.5)) | st.floats(1.0, 2.0, width=32, exclude_max=True)
    exponents = st.one_of(st.just(-15), st.integers(-17, -13), st.integers(-30, -6))
    scales = st.builds(lambda m, e: float(np.float32(m * 2.0**e)), mantissas, exponents)
    zero_points = st.sampled_from((MIDDLE, 0, 32767, HIGHEST)) | st.integers(0, HIGHEST)
    return st.just(PLAIN) | st.tuples(scales, zero_points)


def numbers(spec: Any, name: str) -> tuple[float, float]:
    """Return the middle of the interval from which a tensor's numbers are drawn, and half its length."""
    (scale, zero_point), fill = getattr(spec, name.lower()), dict(spec.fill).get(name, 1.0)
    low, high = -zero_point * scale * fill, (HIGHEST - zero_point) * scale * fill
    return (low + high) / 2, (high - low) / 2


def is_power(scale: float) -> bool:
    """Return whether a scale, as a float32 attribute, is a power of two."""
    return math.frexp(float(np.float32(scale)))[0] == 0.5


def reach(affine: Affine) -> float:
    """Return the largest absolute value that a level represents."""
    scale, zero_point = affine
    return scale * max(zero_point, HIGHEST - zero_point)


def representable(affine: Affine) -> float:
    """Return the bound up to which levels represent numbers on both sides of zero."""
    scale, zero_point = affine
    return scale * min(zero_point, HIGHEST - zero_point)


# Quantization

_PAIR = f"any pair of a positive float32 scale and a zero point from 0 to {HIGHEST}"


def _words_of_codec(name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
    given = Condition(f"{name}_scale", lambda spec: getattr(spec, name, None) is not None)
    if {*instead} == {None}:
        return (given,)
    scale, zero_point = value
    return of_values(f"{name}_scale {scale:.6g} at zero point {zero_point}", name, value), given


def _fill_levels(name: str, spec: Any, draft: TensorDraft) -> None:
    """Replace a tensor by numbers in the range of its levels."""
    if name == "B":
        if not spec.bias:
            return
        draft.hold("B", (2, 8 * draft.H), -1)
    middle, half = numbers(spec, name)
    drawn = uniform(draft.key(name), draft.inputs[name].shape, draft.precision, 0)
    draft.inputs[name] = (middle + half * drawn).astype(draft.format.dtype)


def _simpler_codec(name: str, usual: Affine, spec: Any) -> Iterator[Changes]:
    """Yield simpler codecs: a calibrated one, one with the zero point in the middle, one whose scale is no power of
    two; and for Y none."""
    affine: Affine | None = getattr(spec, name)
    if affine is not None and affine != usual:
        scale, zero_point = affine
        values = [usual, (scale, MIDDLE), *([(scale * 1.25, zero_point)] if is_power(scale) else [])]
        yield from ({name: value} for value in values if value != affine)
    if affine is not None and name == "y":
        yield {"y": None}


def _codec_axis(name: str, usual: Affine) -> Axis:
    """Return the axis of the scale and zero point of an input."""
    return Axis(
        name=name,
        values=(PLAIN,),
        fits=(is_affine, _PAIR),
        drawn=affines,
        conditions=partial(_words_of_codec, name),
        simpler=partial(_simpler_codec, name, usual),
        fill=partial(_fill_levels, name.upper()),
    )


def _y(o: Any) -> Any:
    return o.configuration.y


# Scale and zero point of Y; None where it is not quantized.
_OUTPUT_CODEC = replace(
    _codec_axis("y", Y),
    values=(None, PLAIN),
    fits=(lambda value: value is None or is_affine(value), f"None, or {_PAIR}"),
    drawn=lambda st: st.none() | affines(st),
    features=(
        Feature("quantized-output", "a quantized Y", lambda o: _y(o) is not None),
        Feature("float-output", "a Y that is not quantized", lambda o: _y(o) is None),
        Feature("saturating-output", "", lambda o: _y(o) is not None and min(-_y(o).least, _y(o).greatest) < IN_RANGE),
    ),
    fill=None,
)

# Numbers


def _right_shares(value: Any) -> bool:
    return all(name in ("X", "W", "R", "B", "Y") and finite_float32(f) and f > 0 for name, f in value)


def _shares(st: Any) -> Any:
    shares = st.tuples(*[st.sampled_from((1.0, 0.25, 1.5))] * 4)  # all of a range, little, more than there is
    return shares.map(lambda some: tuple(pair for pair in zip("XWRB", some, strict=True) if pair[1] != 1))


def _words_of_shares(value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
    if any(share > 1 for _, share in value):
        words = "numbers beyond what levels stand for"
        return (Condition(words, lambda spec: any(share > 1 for _, share in spec.fill)),)
    words = "numbers that use little of their range"
    return (Condition(words, lambda spec: bool(spec.fill) and all(share <= 1 for _, share in spec.fill)),)


_WILD = {"inf": np.inf, "nan": np.nan, "far": 1e30}
_SAID = {
    "nan": "NaN",
    "inf": "infinity",
    "far": "numbers far beyond all levels",
    "ties": "numbers between two levels",
}


def _fill_data(spec: Any, draft: TensorDraft) -> None:
    X: NDArray[Any] = draft.inputs["X"]
    if spec.data == "ties":
        levels = np.floor(X.astype(np.float64) / spec.x[0])
        draft.inputs["X"] = ((levels + 0.5) * spec.x[0]).astype(X.dtype)
    elif spec.data != "dense":
        wild = _WILD[spec.data]
        X[len(X) // 2, 0, 0] = wild
        if spec.data != "nan" and X.size > 1:
            X[-1, 0, -1] = -wild


def _saturates(o: Any) -> bool:
    """Return whether an input has a number more than a level beyond the range."""
    codecs = o.configuration.affine
    return any(
        bool((array < codecs[name].least - codecs[name].scale).any())
        or bool((array > codecs[name].greatest + codecs[name].scale).any())
        for name, array in o.configuration.given.items()
    )


# dense; ties (X between two levels); inf, nan, far (some of X is infinite, NaN, 1e30)
_DATA = Axis(
    name="data",
    values=("dense", "ties", "inf", "far", "nan"),
    rare=("ties", "inf", "far", "nan"),
    # X must have elements, and levels.
    rules=(Rule(("T", "N", "I", "x"), lambda T, N, I, x: not T * N * I * x[0], kind="illegal"),),
    features=(
        Feature("near-tie", case=lambda spec: spec.data == "ties"),
        Feature("nonfinite", "", lambda o: not o.magnitudes.finite),
        Feature("saturating-input", "", _saturates),
    ),
    conditions={value: (of_values(words, "data", value),) for value, words in _SAID.items()},
    fill=_fill_data,
)

# Node, sizes and session


def _longer(spec: Any, draft: TensorDraft) -> None:
    """Give the earlier run more steps. Rows stay the same, because every implementation supports one row."""
    if draft.run and spec.reruns == "sizes":
        draft.T += 2


def _sizes(test: Callable[[int, int, int, int], bool]) -> Callable[[Observed], bool]:
    return lambda o: test(o.configuration.T, o.configuration.N, o.configuration.I, o.configuration.H)


EXTENDED_AXES: tuple[Axis, ...] = (
    # The subject of a case, as part of its id: realistic, x-scale-power-of-two.
    Axis(
        name="about",
        fits=(
            lambda value: re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}", value) is not None,
            "one to 60 letters, digits, dots and hyphens",
        ),
        drawn=lambda st: st.just("drawn"),
        simpler=lambda spec: (),
    ),
    # Facts that the document fixes and only invalid models change, and invalid models of every kind.
    Axis(
        name="fixed",
        simpler=lambda spec: (),
        forbidden=tuple(violations()),
        features=(
            Feature("bidirectional", "", lambda o: True),
            Feature("size-one", "", _sizes(lambda T, N, I, H: 1 in (T, I, H))),
            Feature("size-zero", "", _sizes(lambda T, N, I, H: 0 in (T, N, I, H))),
            Feature("several-rows", "", _sizes(lambda T, N, I, H: N > 1)),
        ),
    ),
    size_axis("T", "step", 0, conditions={0: (of_values("seq_length 0", "T", 0),)}),
    size_axis("N", "row", 0, conditions={0: (of_values("batch_size 0", "N", 0),)}),
    *(size_axis("I", "feature of X", 0), size_axis("H", "unit", 1)),
    *(_codec_axis("x", X), _codec_axis("w", W), _codec_axis("r", R), _codec_axis("b", B), _OUTPUT_CODEC),
    # The part of its range that a tensor's numbers use; above 1 they saturate.
    Axis(
        name="fill",
        fits=(_right_shares, "pairs of a tensor's name and a positive number"),
        drawn=_shares,
        conditions=_words_of_shares,
    ),
    _DATA,
    # The input B, which most runtimes require.
    replace(
        BIAS,
        fill=None,
        marked="no-bias",
        forbidden=(),
        features=(*BIAS.features, Feature("bias-absent", "", lambda o: "B" not in o.inputs)),
    ),
    # Cases set the attribute or leave it out, because the document is ambiguous about its absence.
    replace(
        HIDDEN_SIZE,
        forbidden=(),
        features=(Feature("hidden-size-absent", "", lambda o: "hidden_size" not in o.attributes),),
    ),
    # Constants first, as the producer writes models.
    replace(
        WEIGHTS,
        forbidden=(),
        features=(
            Feature("initializer", case=lambda spec: spec.weights == "initializer"),
            Feature("input", case=lambda spec: spec.weights == "input"),
        ),
    ),
    replace(RERUNS, values=("none", "data", "sizes"), rare=(), often=(), prepare=_longer),
    # Names for seq_length and batch_size in the model; models of runs with several sizes have names in any case.
    Axis(name="open", values=(False, True)),
    # The old domain and name of the node.
    Axis(
        name="old",
        values=(False, True),
        features=(Feature("old-domain", "the operator's former name", case=lambda spec: spec.old),),
        conditions={True: (of_values("the old name", "old", True),)},
    ),
    # Random cases write a node in these two ways.
    replace(EXPLICIT, rules=(), forbidden=()),
    SEED,
)
