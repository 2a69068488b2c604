"""Styles: how right kernels compute, each with the roundings and orders that one of them has."""

from __future__ import annotations

from dataclasses import dataclass

ORDERS = (
    *("library", "forward", "backward", "blocks", "lanes", "tail", "pairwise", "fused", "chained"),
    *("seeded", "tiles", "halves", "shuffled", "compensated"),
)
INTERPOLATIONS = ("complement", "difference", "from-old", "in-turn", "in-turn-from-old")
RESETS = ("rounded", "fused", "apart")


@dataclass(frozen=True)
class Style:
    """The style in which a kernel computes.

    work
        Format of elementwise arithmetic; None: the tensor's own.
    accumulator
        Format in which products are summed; None: the tensor's own, float32 for half types.
    operands
        Format to which operands of matrix products are rounded first; ``tf32`` too; None: as they are.
    order
        Of a sum: ``library`` (NumPy's), ``forward``, ``backward``, ``blocks`` of 16 added in pairs, ``lanes`` (eight
        sums over every eighth term), ``tail`` (the same, of as many terms as fill all lanes; the rest one by one after
        them), ``pairwise`` (products added in pairs, and so on), ``fused`` (multiply-add, one rounding a term, in the
        cell state too), ``chained`` (one sum over inputs, states and biases), ``seeded`` (the same, but it starts with
        the biases), ``tiles`` (32 terms each, one tile after the other), ``halves`` (two parts of the terms, added at
        the end), ``shuffled`` (as threads come along), ``compensated`` (Kahan's).
    bias_first
        Whether biases are added to each other before anything else.
    stores_sums
        Whether XW, HR and each of their sums with a bias is stored in the tensor's type.
    stores_inputs
        Whether XW with all biases is stored in the tensor's type, as kernels do that compute it for all steps ahead.
    stores_gates
        Whether results of activations are stored in the tensor's type.
    stores_state
        Whether states are rounded to the tensor's type between steps.
    stores_hidden
        Whether H is, before it is multiplied, even where the other states are not; and what a reset gate leaves of it.
    activation
        ``exact`` (rounded once), ``formula`` (the document's, in the work format), ``careful`` (others, which neither
        overflow nor cancel), ``logistic`` (tanh from sigmoid), ``exponential`` (tanh from e^2x), ``rational`` (a
        continued fraction), ``table`` (interpolated), ``loose`` (anywhere in three quarters of the standard envelope),
        ``edge`` (at those three quarters), ``divided`` (quotients within 2.5 ulp), ``reciprocal`` (products with
        reciprocals within that), ``binary`` (powers of 2), ``contracted`` (multiply-add).
    flushes
        Whether subnormal numbers become zero; conforming in the class ``flushing`` alone.
    swallows_nan
        Whether Relu and clip turn NaN into a number.
    interpolation
        Of two states by a gate z: ``complement``, (1 - z)h + zH; ``difference``, h + z(H - h); ``from-old``,
        H + (1 - z)(h - H); ``in-turn``, h - zh + zH; ``in-turn-from-old``, H - (1 - z)H + (1 - z)h.
    own_complement
        Whether 1 - Sigmoid(x) is evaluated as Sigmoid(-x), as inaccurate as another.
    reset
        How a gate is applied to a sum that takes part in another: ``rounded``, product and sum; ``fused``,
        multiply-add; ``apart``, multiplied out, each of its terms alone.
    saturates
        Whether numbers too large for the tensor's type are stored as its largest one instead of infinity.
    truncates
        Whether storing in the tensor's type cuts digits off. No class allows that: IEEE 754's default is rounding to
        nearest, and what is cut off adds up, since it is always missing.
    ties_away
        Whether a tie is stored as the number farther from zero, as where half a unit is added before digits are cut.
    """

    name: str
    work: str | None = None
    accumulator: str | None = None
    operands: str | None = None
    order: str = "library"
    bias_first: bool = False
    stores_sums: bool = False
    stores_inputs: bool = False
    stores_gates: bool = False
    stores_state: bool = True
    stores_hidden: bool = False
    activation: str = "exact"
    flushes: bool = False
    swallows_nan: bool = False
    interpolation: str = "complement"
    own_complement: bool = False
    reset: str = "rounded"
    saturates: bool = False
    truncates: bool = False
    ties_away: bool = False


STYLES: dict[str, Style] = {
    s.name: s
    for s in (
        Style("library"),
        Style("forward", order="forward", activation="formula"),
        Style("backward", order="backward", bias_first=True, activation="careful", interpolation="difference"),
        Style("blocks", order="blocks", activation="rational", interpolation="from-old", reset="apart"),
        Style("lanes", order="lanes", activation="logistic", swallows_nan=True, interpolation="in-turn"),
        Style("fused", order="fused", activation="loose", interpolation="difference", reset="fused"),
        Style("chained", order="chained", activation="table", interpolation="in-turn-from-old", own_complement=True),
        Style("stored-sums", stores_sums=True, activation="formula"),
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
        Style("stored-inputs", stores_inputs=True, bias_first=True, order="lanes", activation="exponential"),
        Style("tail", order="tail", activation="careful", stores_inputs=True, interpolation="in-turn"),
        Style("pairwise", order="pairwise", activation="exponential", bias_first=True, reset="fused"),
        Style("wide", work="float64", accumulator="float64"),
        Style("wide-state", work="float32", stores_state=False, activation="loose"),
        Style("wide-cell", work="float32", stores_state=False, stores_hidden=True, stores_gates=True, order="blocks"),
        Style("single-inside", work="float32", activation="rational"),
        Style("saturating", work="float32", stores_state=False, saturates=True, activation="edge"),
        Style("divided", order="tiles", activation="divided", interpolation="in-turn"),
        Style("reciprocal", work="float32", order="shuffled", activation="reciprocal", interpolation="from-old"),
        Style("binary", order="seeded", activation="binary", reset="fused", interpolation="difference"),
        Style("contracted", order="fused", activation="contracted", bias_first=True, ties_away=True),
        Style("halves", order="halves", activation="careful", stores_gates=True, reset="apart"),
        Style("compensated", order="compensated", activation="reciprocal", own_complement=True),
        Style("widest", work="float64", accumulator="float64", stores_state=False),
        Style("half-up", work="float32", ties_away=True, stores_inputs=True, activation="logistic"),
    )
}
