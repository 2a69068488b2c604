"""Honest implementations: kernels that are right, with the roundings that real ones have.

None of them may ever be accused, whatever the case: that is what makes a radius sound. Each is the reference's own scan
and cell in another arithmetic, one that rounds as a *style* says.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .activations import Activation
from .evaluation import computation_of
from .formats import FORMATS, Format
from .node import Node
from .readings import Readings
from .recurrence import collect, trace

__all__ = ["STYLES", "Kernel", "Style", "run_kernel"]

Array = NDArray[Any]


@dataclass(frozen=True)
class Style:
    """How a kernel computes.

    work
        Format of elementwise arithmetic; None: the tensor's own.
    accumulator
        Format in which products are summed; None: the tensor's own, float32 for half types.
    operands
        Format to which operands of matrix products are rounded first; ``tf32`` too; None: as they are.
    order
        Of a sum: ``library`` (NumPy's), ``forward``, ``backward``, ``blocks`` of 16, ``fused`` (multiply-add, one
        rounding a term), ``chained`` (one sum over inputs, states and biases).
    bias_first
        Whether biases are added to each other before anything else.
    stores_sums
        Whether XW, HR and each of their sums with a bias is stored in the tensor's type.
    stores_state
        Whether states are rounded to the tensor's type between steps.
    activation
        ``exact`` (rounded once), ``formula`` (the document's, in the work format), ``rational`` (a continued fraction),
        ``table`` (interpolated), ``loose`` (anywhere in three quarters of the standard envelope).
    flushes
        Whether subnormal numbers become zero.
    swallows_nan
        Whether Relu and clip turn NaN into a number.
    """

    name: str
    work: str | None = None
    accumulator: str | None = None
    operands: str | None = None
    order: str = "library"
    bias_first: bool = False
    stores_sums: bool = False
    stores_state: bool = True
    activation: str = "exact"
    flushes: bool = False
    swallows_nan: bool = False


STYLES: dict[str, Style] = {
    s.name: s
    for s in (
        Style("library"),
        Style("forward", order="forward", activation="formula"),
        Style("backward", order="backward", bias_first=True),
        Style("blocks", order="blocks", activation="rational"),
        Style("fused", order="fused", activation="loose"),
        Style("chained", order="chained", activation="table"),
        Style("stored-sums", stores_sums=True, activation="formula"),
        Style("stored-sums-loose", stores_sums=True, order="backward", activation="loose", swallows_nan=True),
        Style("wide", work="float64", accumulator="float64"),
        Style("wide-state", work="float32", stores_state=False, activation="loose"),
        Style("single-inside", work="float32", stores_state=True, activation="rational"),
    )
}


def rounded(x: Array, form: Format | str) -> Array:
    """float64 numbers rounded to nearest in a format, ``tf32`` included, and given back as float64."""
    if form == "tf32":
        # 11 bits of precision with float32's exponents: add half a unit of the 13 bits that go, then cut them.
        bits = x.astype(np.float32).view(np.uint32)
        bits = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
        return bits.view(np.float32).astype(np.float64)
    form = FORMATS[form] if isinstance(form, str) else form
    with np.errstate(over="ignore", invalid="ignore"):
        return x.astype(form.dtype).astype(np.float64)


@dataclass(frozen=True)
class Product:
    """A matrix product not yet summed: x (..., K) and weights (K, G)."""

    x: Array
    weights: Array


@dataclass(frozen=True)
class Groups:
    """A sum whose groups are still apart; the kernel decides the order when it needs the number."""

    parts: tuple[Any, ...]
    kernel: Kernel

    # NumPy then leaves `array * Groups` alone.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Groups:
        if isinstance(other, Groups):
            return Groups(self.parts + other.parts, self.kernel)
        if isinstance(other, np.ndarray):
            return Groups((*self.parts, other), self.kernel)
        return NotImplemented

    def __getitem__(self, index: Any) -> Groups:
        if isinstance(index, tuple):  # a gate's block: the last axis
            block = index[-1]
            return Groups(
                tuple(
                    Product(p.x, p.weights[:, block]) if isinstance(p, Product) else p[..., block] for p in self.parts
                ),
                self.kernel,
            )
        # Steps: products have them, biases do not.
        return Groups(
            tuple(Product(p.x[index], p.weights) if isinstance(p, Product) else p for p in self.parts), self.kernel
        )

    def __len__(self) -> int:
        return len(self.parts[0].x)


class Kernel:
    """The arithmetic of one style for one tensor type. Numbers are arrays of the work format's dtype."""

    def __init__(self, style: Style, form: Format) -> None:
        self.style, self.form = style, form
        half = form.precision < 24
        self.work = FORMATS[style.work] if style.work else form
        if self.work.precision < form.precision:
            self.work = form
        self.accumulator = FORMATS[style.accumulator or ("float32" if half else form.name)]
        if self.accumulator.precision < form.precision:
            self.accumulator = form

    def _flushed(self, x: Array, form: Format | None = None) -> Array:
        if not self.style.flushes:
            return x
        return np.where(np.abs(x) < (form or self.form).least_normal, np.zeros_like(x), x)

    def given(self, value: Array) -> Array:
        return self._flushed(value.astype(self.work.dtype))

    def shown(self, value: Array) -> Array:
        return self.given(value)

    def kept(self, state: Array) -> Array:
        if not self.style.stores_state:
            return state
        return self._flushed(state.astype(self.form.dtype).astype(self.work.dtype))

    def weights(self, matrix: Array) -> Array:
        return self._operand(matrix.astype(np.float64).T)

    def _operand(self, x: Array) -> Array:
        x = self._flushed(x)
        return rounded(x, self.style.operands) if self.style.operands else x

    def product(self, x: Array, weights: Array) -> Groups:
        return Groups((Product(self._operand(x.astype(np.float64)), weights),), self)

    def activate(self, activation: Activation, argument: Groups | Array, clip: float | None) -> Array:
        x = self._summed(argument) if isinstance(argument, Groups) else argument
        if clip is not None:
            threshold = self.work.dtype.type(clip)
            if self.style.swallows_nan:
                x = np.fmin(np.fmax(x, -threshold), threshold)
            else:
                x = np.clip(x, -threshold, threshold)
        if self.style.swallows_nan and activation.name == "Relu":
            return np.fmax(x, x.dtype.type(0))
        return self._flushed(_EVALUATIONS[self.style.activation](activation, x, self.form))

    def concatenate(self, numbers: Sequence[Array], axis: int = 0) -> Array:
        return np.concatenate(numbers, axis)

    def stack(self, steps: Sequence[Array]) -> Array:
        return np.stack(steps)

    def where(self, mask: NDArray[np.bool_], number: Array, otherwise: Array) -> Array:
        return np.where(mask, number, otherwise)

    def recurrence(self, factor: Array, term: Array, start: Array) -> Array:
        states = []
        for t in range(len(term)):
            start = self.kept(self._flushed(factor[t] * start) + term[t])
            states.append(start)
        return np.stack(states)

    def _summed(self, groups: Groups) -> Array:
        """The number that a sum comes to, in the work format."""
        style, acc = self.style, self.accumulator
        products = [p for p in groups.parts if isinstance(p, Product)]
        biases = [p.astype(np.float64) for p in groups.parts if not isinstance(p, Product)]
        if style.order == "chained":
            x = np.concatenate([p.x for p in products], axis=-1)
            total = self._dot(Product(x, np.concatenate([p.weights for p in products])))
            for bias in biases:
                total = rounded(total + bias, acc)
            return self._flushed(total, acc).astype(self.work.dtype)
        if style.bias_first and len(biases) > 1:
            joined = biases[0]
            for bias in biases[1:]:
                joined = rounded(joined + bias, self.work)
            biases = [joined]
        sums = [self._flushed(self._dot(p)) for p in products]
        if style.stores_sums:
            sums = [rounded(s, self.form) for s in sums]
            sums = [rounded(s + b, self.form) for s, b in zip(sums, biases, strict=False)] + sums[len(biases) :]
            biases = biases[len(products) :]
        total = sums[0]
        for part in sums[1:] + biases:
            total = rounded(total + part, self.form if style.stores_sums else acc)
        return self._flushed(total).astype(self.work.dtype)

    def _dot(self, product: Product) -> Array:
        """x @ weights with every rounding of the style's order."""
        x, weights, acc, order = product.x, product.weights, self.accumulator, self.style.order
        terms = x.shape[-1]
        if order == "library" or acc.name == "float64":
            with np.errstate(over="ignore", invalid="ignore"):
                return (x.astype(acc.dtype) @ weights.astype(acc.dtype)).astype(np.float64)
        if order == "blocks":
            parts = [
                self._chain(x[..., k : k + 16], weights[k : k + 16], range(min(16, terms - k)))
                for k in range(0, terms, 16)
            ]
            while len(parts) > 1:
                parts = [rounded(sum(parts[j : j + 2], np.zeros(())), acc) for j in range(0, len(parts), 2)]
            return parts[0]
        return self._chain(x, weights, range(terms) if order != "backward" else range(terms - 1, -1, -1))

    def _chain(self, x: Array, weights: Array, steps: range) -> Array:
        total = np.zeros((*x.shape[:-1], weights.shape[1]))
        fused = self.style.order in ("fused", "chained")
        with np.errstate(over="ignore", invalid="ignore"):
            for k in steps:
                term = x[..., k : k + 1] * weights[k]
                total = rounded(total + (term if fused else rounded(term, self.accumulator)), self.accumulator)
        return total


def _exact(activation: Activation, x: Array, form: Format) -> Array:
    with np.errstate(over="ignore", invalid="ignore"):
        return activation(x.astype(np.float64)).astype(x.dtype)


def _formula(activation: Activation, x: Array, form: Format) -> Array:
    """The documents' formulas, every operation rounded to the work format, coefficients too."""
    kind = x.dtype.type
    a, b, one = kind(activation.alpha.value), kind(activation.beta.value), kind(1)
    with np.errstate(over="ignore", invalid="ignore"):
        formulas: dict[str, Callable[[], Array]] = {
            "Tanh": lambda: np.tanh(x),
            "Sigmoid": lambda: one / (one + np.exp(-x)),
            "Affine": lambda: a * x + b,
            "LeakyRelu": lambda: np.where(x >= 0, x, a * x),
            "ScaledTanh": lambda: a * np.tanh(b * x),
            "HardSigmoid": lambda: np.minimum(np.maximum(a * x + b, kind(0)), one),
            "Elu": lambda: np.where(x >= 0, x, a * (np.exp(x) - one)),
            "Softsign": lambda: x / (one + np.abs(x)),
            "Softplus": lambda: np.log(one + np.exp(x)),
        }
        formula = formulas.get(activation.name)
        return formula().astype(x.dtype) if formula else _exact(activation, x, form)


def _fraction(x: Array) -> Array:
    """tanh from Lambert's continued fraction x/(1 + x^2/(3 + x^2/(5 + ...))) at x/2, doubled: tanh 2y = 2t/(1 + t^2).

    15 terms leave less than 2^-60 for |x/2| <= 10; beyond, tanh is 1 to the last bit of float32.
    """
    y = np.clip(x, -20, 20) * x.dtype.type(0.5)
    square, tail = y * y, np.full_like(y, 41)
    for odd in range(39, 0, -2):
        tail = odd + square / tail
    t = y / tail
    return ((2 * t) / (1 + t * t)).astype(x.dtype)


def _rational(activation: Activation, x: Array, form: Format) -> Array:
    # A kernel for half types evaluates its fraction in float32.
    wide = x.astype(np.float32) if x.dtype.itemsize < 4 else x
    half = wide.dtype.type(0.5)
    if activation.name == "Tanh":
        return _fraction(wide).astype(x.dtype)
    if activation.name == "Sigmoid":
        return (half * _fraction(half * wide) + half).astype(x.dtype)
    return _formula(activation, x, form)


@lru_cache(maxsize=8)
def _table(name: str, intervals: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    places = np.linspace(-20.0, 20.0, intervals + 1)
    return places, np.tanh(places) if name == "Tanh" else 0.5 * np.tanh(0.5 * places) + 0.5


def _interpolated(activation: Activation, x: Array, form: Format) -> Array:
    # Linear interpolation over steps of s errs by at most max|f''| s^2/8 <= 0.1 s^2; 2u of it needs s = sqrt(20u).
    if activation.name not in ("Tanh", "Sigmoid") or form.name == "float64":
        return _exact(activation, x, form)
    places, values = _table(activation.name, int(np.ceil(40 / np.sqrt(20 * form.unit))))
    return np.interp(x.astype(np.float64), places, values).astype(x.dtype)


def _loose(activation: Activation, x: Array, form: Format) -> Array:
    """Off by up to three quarters of the standard envelope, in a direction that depends on the argument's bits."""
    if activation.name not in ("Tanh", "Sigmoid"):
        return _exact(activation, x, form)
    exact = activation(x.astype(np.float64))
    with np.errstate(over="ignore", invalid="ignore"):
        noise = np.sin(x.astype(np.float64) * 1e6)
    noise = np.where(np.isfinite(noise), noise, 0.0)
    return (exact + noise * 3 * form.unit * (np.abs(exact) + 1)).astype(x.dtype)


_EVALUATIONS: dict[str, Callable[[Activation, Array, Format], Array]] = {
    "exact": _exact,
    "formula": _formula,
    "rational": _rational,
    "table": _interpolated,
    "loose": _loose,
}


def run_kernel(
    node: Node, inputs: Mapping[str, Array], style: Style, readings: Readings | None = None
) -> dict[str, Array]:
    """All outputs that the node asks for, in its type, as a kernel of that style computes them."""
    computation = computation_of(node, inputs, readings)
    configuration = computation.configuration
    kernel = Kernel(style, configuration.format)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        outputs = collect(configuration, trace(computation, kernel), kernel)
        return {name: kernel._flushed(outputs[name].astype(configuration.format.dtype)) for name in node.outputs}
