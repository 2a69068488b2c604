"""Conforming implementations: correct kernels with the roundings of real ones.

No case may ever fail one of them; this shows that radii are sound. Each is the reference's own scan and cell in another
arithmetic, which rounds according to a *style*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.accuracy import FORMATS, Format
from ..numbers.activations import Activation
from ..numbers.plain import Joining
from ..recurrent.computation import computation_of
from ..recurrent.node import Node
from ..recurrent.rnn import run
from .activations import EVALUATIONS

ORDERS = ("library", "forward", "backward", "lanes", "fused", "tiles", "shuffled")
INTERPOLATIONS = ("complement", "difference", "from-old", "in-turn")
RESETS = ("rounded", "fused", "apart")


@dataclass(frozen=True)
class Style:
    """Roundings and summation order of a kernel.

    work
        Format of elementwise arithmetic; None: the tensor's own.
    accumulator
        Format in which products are summed; None: the tensor's own, float32 for half types.
    operands
        Format to which operands of matrix products are rounded first, ``tf32`` included; None: they are not rounded.
    order
        Order of a sum: ``library`` (NumPy's), ``forward``, ``backward``, ``lanes`` (eight sums over every eighth term,
        added in pairs), ``fused`` (multiply-add with one rounding a term, in the cell state too), ``tiles`` (sums of 32
        terms, added in order), ``shuffled`` (as threads finish).
    stores_sums
        Whether XW, HR and each of their sums with a bias is stored in the tensor's type.
    stores_gates
        Whether results of activations are stored in the tensor's type.
    stores_state
        Whether states are rounded to the tensor's type between steps.
    activation
        ``exact`` (rounded once), ``formula`` (the document's, in the work format), ``logistic`` (tanh from sigmoid),
        ``loose`` (anywhere in three quarters of the standard envelope), ``edge`` (at the limits of these three
        quarters), ``divided`` (quotients within 2.5 ulp), ``reciprocal`` (products with reciprocals within 2.5 ulp).
    flushes
        Whether subnormal numbers become zero; this conforms only in the class ``flushing``.
    swallows_nan
        Whether Relu and clip turn NaN into a number.
    interpolation
        Formula for two states and a gate z: ``complement``, (1 - z)h + zH; ``difference``, h + z(H - h); ``from-old``,
        H + (1 - z)(h - H); ``in-turn``, h - zh + zH.
    own_complement
        Whether 1 - Sigmoid(x) is evaluated as Sigmoid(-x), with its own error.
    reset
        How a gate is applied to a sum that is a term of another sum: ``rounded``, product and sum; ``fused``,
        multiply-add; ``apart``, distributed over the terms.
    saturates
        Whether numbers too large for the tensor's type are stored as its largest number instead of infinity.
    truncates
        Whether storing in the tensor's type truncates. No class allows this, because the errors then add up.
    """

    name: str
    work: str | None = None
    accumulator: str | None = None
    operands: str | None = None
    order: str = "library"
    stores_sums: bool = False
    stores_gates: bool = False
    stores_state: bool = True
    activation: str = "exact"
    flushes: bool = False
    swallows_nan: bool = False
    interpolation: str = "complement"
    own_complement: bool = False
    reset: str = "rounded"
    saturates: bool = False
    truncates: bool = False


# Each of `stored-sums-edge`, `saturating`, `divided` and `reciprocal` once exposed error bounds that were too narrow.
STYLES: dict[str, Style] = {
    s.name: s
    for s in (
        Style("library"),
        Style("forward", order="forward", activation="formula"),
        Style("lanes", order="lanes", activation="logistic", swallows_nan=True, interpolation="in-turn"),
        Style("fused", order="fused", activation="loose", interpolation="difference", reset="fused"),
        Style(
            "stored-sums-edge",
            stores_sums=True,
            order="backward",
            activation="edge",
            swallows_nan=True,
            interpolation="from-old",
            own_complement=True,
            reset="apart",
        ),
        Style("wide", work="float64", accumulator="float64"),
        Style("wide-state", work="float32", stores_state=False, activation="loose"),
        Style("saturating", work="float32", stores_state=False, saturates=True, activation="edge"),
        Style("divided", order="tiles", activation="divided", interpolation="in-turn"),
        Style("reciprocal", work="float32", order="shuffled", activation="reciprocal", interpolation="from-old"),
    )
}


Array = NDArray[Any]

# Number of terms of sums that are computed at a time before they are added one by one; they fit a processor's cache.
_TERMS = 1 << 15


def rounded(x: Array, form: Format | str) -> Array:
    """Return float64 numbers rounded to nearest in a format (``tf32`` included), as float64."""
    if form == "tf32":
        # 11 bits of precision with float32's exponents: add half a unit of the 13 dropped bits, then truncate.
        with np.errstate(over="ignore"):
            single = x.astype(np.float32)
            bits = single.view(np.uint32)
            bits = (bits + np.uint32(0xFFF) + ((bits >> np.uint32(13)) & np.uint32(1))) & np.uint32(0xFFFFE000)
            return np.where(np.isfinite(single), bits.view(np.float32), single).astype(np.float64)
    form = FORMATS[form] if isinstance(form, str) else form
    with np.errstate(over="ignore", invalid="ignore"):
        return _through(x, form)


def _through(x: Array, form: Format) -> Array:
    """Return numbers rounded to a format; NumPy must ignore overflow in the caller's context.

    Numbers that already have the format's type (only float32 here) are returned unchanged.
    """
    return x if x.dtype == form.dtype else x.astype(form.dtype).astype(np.float64)


def _cut(x: Array, form: Format) -> Array:
    """Return float64 numbers truncated to a format's precision."""
    fraction, exponent = np.frexp(x)
    return np.asarray(np.ldexp(np.trunc(np.ldexp(fraction, form.precision)), exponent - form.precision))


class Groups(Struct, frozen=True):
    """Sum of matrix products and other numbers; the kernel chooses the order when it needs the total.

    sums
        The sum of each product.
    terms
        The other numbers, biases first.
    """

    sums: tuple[Array, ...]
    terms: tuple[Array, ...]
    kernel: Kernel

    # Makes NumPy leave `array * Groups` to this class.
    __array_ufunc__ = None

    def __add__(self, other: Any) -> Groups:
        if isinstance(other, Groups):
            return Groups(self.sums + other.sums, self.terms + other.terms, self.kernel)
        if isinstance(other, np.ndarray):
            return Groups(self.sums, (*self.terms, other), self.kernel)
        return NotImplemented

    __radd__ = __add__

    def __rmul__(self, other: Any) -> Any:
        return self.kernel.reset(other, self)

    def __getitem__(self, index: Any) -> Groups:
        # A gate's block is an index of the last axis, which biases have too; steps are those of products alone.
        terms = tuple(term[index] for term in self.terms) if isinstance(index, tuple) else self.terms
        return Groups(tuple(part[index] for part in self.sums), terms, self.kernel)

    def __len__(self) -> int:
        return len(self.sums[0])


class Kernel(Joining):
    """Arithmetic of one style for one tensor type. Numbers are arrays of the work format's dtype."""

    def __init__(self, style: Style, form: Format) -> None:
        self.style, self.form = style, form
        half = form.precision < 24
        self.work = FORMATS[style.work] if style.work else form
        if self.work.precision < form.precision:
            self.work = form
        self.accumulator = FORMATS[style.accumulator or ("float32" if half else form.name)]
        if self.accumulator.precision < form.precision:
            self.accumulator = form
        # For numbers that float32 holds exactly, as states are, float32 sums equal float64 sums that are rounded.
        self._single = self.accumulator.name == "float32" and self.work.precision <= 24 and style.order != "fused"
        # The last gates with their complements: `interpolation` gets only the gate.
        self._complements: list[tuple[Array, Array]] = []

    def _flushed(self, x: Array, form: Format | None = None) -> Array:
        if not self.style.flushes:
            return x
        return np.where(np.abs(x) < (form or self.form).least_normal, np.zeros_like(x), x)

    def stored(self, x: Array) -> Array:
        """Return numbers in the tensor's type."""
        if self.style.truncates:
            x = _cut(x.astype(np.float64), self.form)
        if self.style.saturates:
            x = np.clip(x.astype(np.float64), -self.form.largest, self.form.largest)
        return self._flushed(x.astype(self.form.dtype))

    def exact(self, value: Array) -> Array:
        return self._flushed(value.astype(self.work.dtype))

    def reported_state(self, value: Array) -> Array:
        return self.exact(value)

    def feedback(self, hidden: Array) -> Array:
        """Return the hidden state for the next step of a free run."""
        return self.carry_state(hidden)

    def carry_state(self, state: Array) -> Array:
        return self.stored(state).astype(self.work.dtype) if self.style.stores_state else state

    def weights(self, matrix: Array) -> Array:
        operand = self._operand(matrix.astype(np.float64).T)
        single = operand.astype(np.float32) if self._single else operand
        return single if np.array_equal(single, operand) else operand

    def _operand(self, x: Array) -> Array:
        x = self._flushed(x)
        return rounded(x, self.style.operands) if self.style.operands else x

    def product(self, x: Array, weights: Array) -> Groups:
        x = self._operand(x.astype(np.float64))
        if weights.dtype == np.float32:
            x = x.astype(np.float32)
        with np.errstate(over="ignore", invalid="ignore"):
            return Groups((self._sums(x, weights).astype(np.float64, copy=False),), (), self)

    def activate(self, activation: Activation, argument: Groups | Array, clip: float | None) -> Array:
        x = self.summed(argument) if isinstance(argument, Groups) else argument
        if clip is not None:
            threshold = self.work.dtype.type(clip)
            if self.style.swallows_nan:
                x = np.fmin(np.fmax(x, -threshold), threshold)
            else:
                x = np.clip(x, -threshold, threshold)
        result = self._evaluated(activation, x)
        if self.style.own_complement and activation.name == "Sigmoid":
            self._complements = [*self._complements[-1:], (result, self._evaluated(activation, -x))]
        return result

    def _evaluated(self, activation: Activation, x: Array) -> Array:
        if self.style.swallows_nan and activation.name == "Relu":
            result = np.fmax(x, x.dtype.type(0))
        else:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
                result = EVALUATIONS[self.style.activation](activation, x, self.form)
        return self.stored(result).astype(self.work.dtype) if self.style.stores_gates else self._flushed(result)

    @property
    def _fuses(self) -> bool:
        """Whether multiply-adds round once; float64 has no wider type here in which to compute them."""
        return self.style.order == "fused" and self.work.name != "float64"

    def reset(self, gate: Array, groups: Groups) -> Array | Groups:
        """Return a gate times a sum, as a term of another sum."""
        if self.style.reset == "apart":
            parts = [*(self.summed(Groups((part,), (), self)) for part in groups.sums), *groups.terms]
            return Groups((), tuple(self._flushed(gate * part) for part in parts), self)
        total = self.summed(groups)
        if self.style.reset == "fused" and self.work.name != "float64":
            return gate.astype(np.float64) * total  # rounded later, by the sum that it is added to
        return self._flushed(gate * total)

    def interpolation(self, share: Array, new: Array, old: Array) -> Array:
        formula = self.style.interpolation
        rest = next((other for gate, other in self._complements if gate is share), self._flushed(1 - share))
        if formula == "difference":
            first, factor, second = new, share, self._flushed(old - new)
        elif formula == "from-old":
            first, factor, second = old, rest, self._flushed(new - old)
        elif formula == "in-turn":
            first, factor, second = self._flushed(new - self._flushed(share * new)), share, old
        else:
            first, factor, second = self._flushed(rest * new), share, old
        if self._fuses:
            return self._flushed((factor.astype(np.float64) * second + first).astype(self.work.dtype))
        return self._flushed(first + self._flushed(factor * second))

    def recurrence(self, factor: Array, term: Array, start: Array) -> Array:
        states = []
        for t in range(len(term)):
            if self._fuses:
                exact = factor[t].astype(np.float64) * start + term[t]
                start = self.carry_state(self._flushed(exact.astype(self.work.dtype)))
            else:
                start = self.carry_state(self._flushed(factor[t] * start) + term[t])
            states.append(start)
        return np.stack(states)

    def summed(self, groups: Groups) -> Array:
        """Return the value of a sum, in the work format."""
        biases = [term.astype(np.float64) for term in groups.terms]
        sums, sum_format = [self._flushed(part) for part in groups.sums], self.accumulator
        if self.style.stores_sums:
            sum_format = self.form
            sums = [self.stored(s).astype(np.float64) for s in sums]
            both = zip(sums, biases, strict=False)
            sums = [self.stored(s + b).astype(np.float64) for s, b in both] + sums[len(biases) :]
            biases = biases[len(groups.sums) :]
        total = sums[0]
        for part in sums[1:] + biases:
            total = rounded(total + part, sum_format)
        return self._flushed(total).astype(self.work.dtype)

    def _sums(self, x: Array, weights: Array) -> Array:
        """Return x @ weights with every rounding of the style's order."""
        acc, order, terms = self.accumulator, self.style.order, x.shape[-1]
        if order == "library" or acc.name == "float64":
            total: Array = x.astype(acc.dtype) @ weights.astype(acc.dtype)
            return total.astype(np.float64)
        if order == "lanes":
            return self._paired([self._chain(x, weights, range(terms)[k::8]) for k in range(min(8, terms))])
        if order == "tiles":
            return self._in_turn([self._chain(x, weights, range(terms)[k : k + 32]) for k in range(0, terms, 32)])
        if order == "shuffled":
            return self._chain(x, weights, np.random.default_rng(terms).permutation(terms))
        return self._chain(x, weights, range(terms) if order != "backward" else range(terms - 1, -1, -1))

    def _in_turn(self, parts: list[Array]) -> Array:
        total, *others = parts
        for part in others:
            total = _through(total + part, self.accumulator)
        return total

    def _paired(self, parts: list[Array]) -> Array:
        while len(parts) > 1:
            pairs = (parts[j : j + 2] for j in range(0, len(parts), 2))
            parts = [_through(sum(pair, np.zeros((), pair[0].dtype)), self.accumulator) for pair in pairs]
        (total,) = parts
        return total

    def _chain(self, x: Array, weights: Array, steps: Sequence[int] | Array) -> Array:
        total, form = np.zeros((*x.shape[:-1], weights.shape[1]), x.dtype), self.accumulator
        chunk_size = max(1, _TERMS // max(1, total.size))
        for first in range(0, len(steps), chunk_size):
            chunk = steps[first : first + chunk_size]
            terms = x[..., chunk, np.newaxis] * weights[chunk]
            if self.style.order != "fused":
                terms = _through(terms, form)
            for k in range(len(chunk)):
                total = _through(total + terms[..., k, :], form)
        return total


def run_kernel(
    node: Node,
    inputs: Mapping[str, Array],
    style: Style,
    interpretations: Interpretations | None = None,
    *,
    arithmetic: type[Kernel] = Kernel,
) -> dict[str, Array]:
    """Return all outputs of the node, in its type, as a kernel of that style computes them."""
    computation = computation_of(node, inputs, interpretations)
    configuration = computation.configuration
    kernel = arithmetic(style, configuration.format)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        outputs = run(configuration, computation.inputs, kernel)
        return {name: kernel.stored(outputs[name]) for name in node.outputs}
