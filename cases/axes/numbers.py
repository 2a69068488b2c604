"""Axes of the numbers in the tensors: how they are drawn, and how they are changed afterwards."""

from __future__ import annotations

from math import isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from ...reference import FORMATS
from .axis import Axis, Feature, Rule, choice, needs, needs_numbers, of_values
from .generator import gain, integers

if TYPE_CHECKING:
    from ..specs.features import Observed
    from ..specs.model import TensorDraft

_PLAIN = ("dense", "small", "large")
"""Data in which further changes stay readable."""

# Functions that approach a limit on both sides and are computed from e^x.
_SATURATING = frozenset({"Tanh", "Sigmoid", "ScaledTanh"})


def _product(o: Observed) -> float:
    return o.magnitudes.largest["X"] * o.magnitudes.largest["W"]


def _steep(o: Observed) -> bool:
    """Return whether one product may bring an argument to where e^x leaves the range of T."""
    return bool(_product(o) >= np.log(o.configuration.format.largest))


def _overflows(o: Observed) -> bool:
    c = o.configuration
    return (_steep(o) and "Softplus" in o.functions) or _product(o) * c.I >= c.format.largest


# Exponents of X and of states, added to the usual ones. Weights stay as they are, so that cases share a model.
_MAGNITUDES: dict[str, tuple[int, int]] = {"small": (-6, -6), "large": (4, 2), "huge": (10, 0)}
_WORDS = {
    "small": "small numbers",
    "large": "large numbers",
    "huge": "huge numbers",
    "heavy": "large weights",
    "one-sign": "numbers of one sign",
    "exact": "exactly representable data",
    "numerics": "one-step accuracy",
    "nan-row": "NaN in one row",
    "inf-row": "infinity in one row",
    "nan-padding": "NaN in the padding",
}


def _prepare_data(spec: Any, draft: TensorDraft) -> None:
    if spec.data == "exact":
        # The fewer digits the data has, the more operations it takes to use up the format's digits.
        draft.precision = 3 if draft.format.precision >= 24 else 2
    draft.of_x, draft.of_states = _MAGNITUDES.get(spec.data, (0, 0))
    draft.of_weights = 2 if spec.data == "heavy" else 0


def _fill_data(spec: Any, draft: TensorDraft) -> None:
    inputs, X = draft.inputs, draft.X
    if spec.data == "one-sign":
        inputs |= {name: np.abs(inputs[name]) for name in ("X", "W")}
    elif spec.data in ("nan-row", "inf-row"):
        X[draft.T // 2, draft.N // 2, 0] = np.nan if spec.data == "nan-row" else np.inf
    elif spec.data == "nan-padding":
        for row, length in enumerate(inputs["sequence_lens"]):
            X[length:, row] = np.nan


# dense; small, large, huge (the last saturates every activation, on both sides); heavy (W and R are four times as
# large); one-sign (X and W positive: a sum loses digits as it grows); exact (few digits: every intermediate of
# piecewise-linear activations is representable); numerics (one step from given states, where every digit counts);
# nan-row, inf-row (one row of X has NaN or infinity: the others must not change); nan-padding (NaN past the lengths)
DATA = Axis(
    name="data",
    values=("dense", *_WORDS),
    rare=tuple(_WORDS),
    often=("dense", "dense", "dense", "small", "large", "heavy"),
    rules=(
        # There must be elements that can be corrupted.
        needs_numbers("nan-row", "inf-row", kind="illegal"),
        Rule(("lengths",), lambda lengths: lengths in ("absent", "full"), ("nan-padding",), kind="illegal"),
        # The case tests accuracy only with one step from given states.
        Rule(("T", "initial"), lambda T, initial: T != 1 or initial != "all", ("numerics",)),
    ),
    features=(
        *(
            Feature(name, _WORDS[name], case=lambda spec, name=name: spec.data == name, column=True)  # type: ignore[misc]
            for name in ("numerics", "exact")
        ),
        Feature("nonfinite", "NaN or infinity", lambda o: not o.magnitudes.finite),
        Feature("infinity", "infinity", lambda o: o.magnitudes.infinite),
        Feature(
            "saturating",
            "arguments at which functions are flat",
            lambda o: _steep(o) and bool(o.functions & _SATURATING),
        ),
        Feature("overflow", "numbers that leave the range of their type", _overflows),
    ),
    marked="{}",
    conditions={value: (of_values(words, "data", value),) for value, words in _WORDS.items()},
    prepare=_prepare_data,
    fill=_fill_data,
)

# Zeros: kernels skip them

_SHARE = 3  # one element in so many is 0
_WHOLE = ("X", "W", "R", "B", "P", "initial_h", "initial_c")


def _fill_zeros(spec: Any, draft: TensorDraft) -> None:
    inputs, X = draft.inputs, draft.X
    if spec.zeros == "row":
        X[:, draft.N // 2] = 0
    elif spec.zeros == "step":
        X[draft.T // 2] = 0
    elif spec.zeros == "mask":
        X[draft.T // 2, draft.N // 2] = 0
    elif spec.zeros == "ends":
        for row in range(draft.N):
            X[draft.T - (row + 1) % draft.T :, row] = 0
    elif spec.zeros in ("input-bias", "recurrent-bias"):
        B = inputs["B"] = inputs["B"].copy()
        first, last = np.split(B, 2, axis=1)
        (first if spec.zeros == "input-bias" else last)[...] = 0
    elif spec.zeros == "state":
        for state in draft.states:
            state[:, 0] = 0
    elif spec.zeros == "elements":
        for name in ("X", "W", "R"):
            key = f"{spec.op}/zeros/{name}/{spec.weights_seed}"
            inputs[name] = _thinned(inputs[name], draft.key(name, "zeros/") if name == "X" else key)
    elif spec.zeros == "weights":
        for name in ("W", "R"):
            inputs[name] = inputs[name].copy()
            inputs[name][:, ::_SHARE] = 0
    elif spec.zeros == "tensor":
        present = [name for name in _WHOLE if name in inputs]
        chosen = present[spec.seed % len(present)]
        inputs[chosen] = np.zeros_like(inputs[chosen])


def _thinned(array: Any, key: str) -> Any:
    """Return the array with zeros in place of some elements, half of them negative."""
    dice = integers(key, array.size, 0, 2 * _SHARE - 1).reshape(array.shape)
    thinned = array.copy()
    thinned[dice == 0] = 0.0
    thinned[dice == 1] = -0.0
    return thinned


def _with_zeros(o: Observed) -> list[str]:
    """Return the inputs that have a zero."""
    least = o.magnitudes.least.items()
    return [name for name, size in least if size == 0 or (isnan(size) and (o.inputs[name] == 0).any())]


_ZEROS = (
    *("elements", "row", "step", "weights", "tensor", "input-bias", "recurrent-bias"),
    *("ends", "mask", "state"),
)

# elements (a third of X, W and R, some of them -0); row (of X, at all steps); step (of X, in all rows); mask (a step of
# X in one row); ends (the last steps of X, in each row others); weights (whole rows of W and R); input-bias,
# recurrent-bias (that half of B); state (the first row of the initial states); tensor (a whole tensor, by the seed)
ZEROS = choice(
    "zeros",
    "none",
    _ZEROS,
    14,
    rules=(
        # Numbers that are corrupted, or exact to the last digit, are not changed.
        Rule(("data",), lambda data: data not in _PLAIN),
        needs_numbers(),
        Rule(("T",), lambda T: T < 2, ("ends",)),
        *needs({"input-bias": "bias", "recurrent-bias": "bias", "state": "initial"}),
    ),
    features=(
        Feature("zero-elements", "zeros among the numbers", lambda o: bool(_with_zeros(o))),
        Feature("zero-tensor", "a tensor of zeros", lambda o: any(not o.inputs[name].any() for name in _with_zeros(o))),
    ),
    marked="zero-{}",
    fill=_fill_zeros,
)

# Extremes

# By value, the tensors and the power of two by which they are larger than usual. Tables and clamps of kernels end at 8
# or 16, int8 scales at 127.
_LARGER = {
    "weights": (("W", "R"), 5),
    "bias": (("B",), 6),
    "peepholes": (("P",), 5),
    "states": (("initial_h", "initial_c"), 7),
}
_STEEP = {"float16": 5, "float64": 11}
"""The power of two by which X is larger, for e^x of some arguments to leave the range of the type; 8 in other types."""


def _times(array: Any, *factors: float) -> Any:
    """Return the array multiplied by each factor in float64."""
    larger = array.astype(np.float64)
    for factor in factors:
        larger = larger * factor
    return larger.astype(array.dtype)


def _fill_extremes(spec: Any, draft: TensorDraft) -> None:
    inputs, X = draft.inputs, draft.X
    form = FORMATS[spec.type]
    least = float(form.least_normal)
    if spec.extremes == "subnormal":
        # By a power of two that leaves the largest below the least normal number, and so keeps as many digits as
        # possible.
        exponent = np.frexp(np.abs(X.astype(np.float64)).max(initial=1.0))[1]
        X[...] = _times(X, least, 2.0 ** -float(exponent))
    elif spec.extremes == "subnormal-weights":
        larger = 2.0 ** -float(gain(draft.I))
        inputs["W"] = _times(inputs["W"], least, larger)
        X[...] = _times(X, 1 / least, 1 / larger)
    elif spec.extremes == "steep":
        X[...] = _times(X, 2.0 ** _STEEP.get(spec.type, 8))
    elif spec.extremes == "top":
        X[draft.T // 2, :, 0] = X.dtype.type(form.largest)
    elif spec.extremes == "cancel":
        pairs = draft.I // 2
        X[..., 1 : 2 * pairs : 2] = X[..., 0 : 2 * pairs : 2]
        W = inputs["W"] = inputs["W"].copy()
        W[..., 1 : 2 * pairs : 2] = -W[..., 0 : 2 * pairs : 2]
    elif spec.extremes in _LARGER:
        names, exponent = _LARGER[spec.extremes]
        # A power of two: no digit is lost.
        inputs |= {name: _times(inputs[name], 2.0**exponent) for name in names if name in inputs}


def _subnormal(name: str) -> Any:
    """Return the test whether an input has a subnormal number."""

    def holds(o: Observed) -> bool:
        least_normal = float(o.configuration.format.least_normal)
        if o.magnitudes.least.get(name, least_normal) >= least_normal:
            return False
        array = o.inputs[name]
        return bool(((array != 0) & (np.abs(array.astype(np.float64)) < least_normal)).any())

    return holds


_EXTREMES = (
    *("subnormal", "cancel", "weights", "bias", "peepholes", "states", "top"),
    *("subnormal-weights", "steep"),
)

# subnormal (all elements of X); cancel (products of X and W cancel in pairs, to exactly 0); top (some of X as large as
# its type can hold); weights, bias, peepholes, states (many times as large as usual); subnormal-weights (all elements
# of W, and X so large that products are as usual); steep (e^x of some arguments leaves the range of the type)
EXTREMES = choice(
    "extremes",
    "none",
    _EXTREMES,
    14,
    there=lambda operator, value: value != "peepholes" or "P" in operator.inputs,
    rules=(
        Rule(("data",), lambda data: data not in _PLAIN),
        needs_numbers(),
        *needs({"bias": "bias", "peepholes": "peepholes", "states": "initial"}),
        Rule(("I",), lambda I: I < 2, ("cancel",)),
        Rule(("data",), lambda data: data != "dense", ("subnormal-weights", "steep")),
    ),
    features=(
        Feature("subnormal", "subnormal numbers", _subnormal("X")),
        Feature("subnormal-weights", "subnormal weights", _subnormal("W")),
        Feature(
            "large-weights",
            "weights beyond 16",
            lambda o: max(o.magnitudes.largest["W"], o.magnitudes.largest["R"]) > 16,
        ),
        Feature("large-bias", "a bias beyond 8", lambda o: o.magnitudes.largest.get("B", 0.0) > 8),
    ),
    marked="extreme-{}",
    fill=_fill_extremes,
)

# Numbers that are the same in several places: kernels look up cached data by its source

_TIED = {"W": ("W",), "R": ("R",), "directions": ("W", "R", "B", "P")}


def _fill_alike(spec: Any, draft: TensorDraft) -> None:
    inputs, X = draft.inputs, draft.X
    for name in _TIED.get(spec.alike, ()):
        if name in inputs:
            inputs[name] = np.repeat(inputs[name][:1], draft.D, axis=0)
    if spec.alike == "steps":
        X[...] = X[:1]
    elif spec.alike == "rows":
        X[...] = X[:, :1]
        for state in draft.states:
            state[...] = state[:, :1]
    elif spec.alike == "bias":
        first, _ = np.split(inputs["B"], 2, axis=1)
        inputs["B"] = np.concatenate((first, -first), axis=1)
    elif spec.alike == "states":
        first, *others = draft.states
        for state in others:
            state[...] = first


def _same(axis: int) -> Any:
    """Return the test whether X is the same along its steps (0) or rows (1)."""

    def holds(o: Observed) -> bool:
        X, c = o.inputs["X"], o.configuration
        steps = X if c.layout == 0 else X.swapaxes(0, 1)
        return bool(c.T and c.N and (c.T, c.N)[axis] > 1 and (steps == steps.take([0], axis)).all())

    return holds


def _opposite_biases(o: Observed) -> bool:
    B = o.inputs.get("B", np.empty((0, 0)))
    half = B.shape[1] // 2
    return half > 0 and bool((B[:, :half] == -B[:, half:]).all()) and bool(B.any())


# W, R (that tensor is the same in both directions), directions (all weights are); steps (X is the same at each step),
# rows (X and the initial states are the same in each row), states (all initial states have the same numbers), bias (the
# halves of B are the same but for the sign: their sum is zero)
ALIKE = choice(
    "alike",
    "none",
    ("W", "R", "directions", "steps", "rows", "states", "bias"),
    30,
    there=lambda operator, value: value != "states" or "initial_c" in operator.inputs,
    rules=(
        Rule(("direction",), lambda direction: direction != "bidirectional", tuple(_TIED)),
        Rule(("data",), lambda data: data not in _PLAIN),
        # Zeros at one place are not copied to others.
        Rule(("zeros",), lambda zeros: zeros != "none", ("steps", "rows", "states", "bias")),
        needs_numbers(),
        Rule(("T",), lambda T: T < 2, ("steps",)),
        Rule(("N",), lambda N: N < 2, ("rows",)),
        *needs({"bias": "bias"}),
        Rule(("initial",), lambda initial: initial != "all", ("states",)),
    ),
    features=(
        Feature(
            "tied-weights",
            "weights that are the same in both directions",
            lambda o: any(a.shape[0] == 2 and bool((a[0] == a[1]).all()) for a in (o.inputs["W"], o.inputs["R"])),
        ),
        Feature("same-steps", "the same X at each step", _same(0)),
        Feature("same-rows", "the same X in each row", _same(1)),
        Feature("opposite-biases", "biases that cancel", _opposite_biases),
    ),
    marked="alike-{}",
    fill=_fill_alike,
)
