"""ExtendedLSTM as documented: a bidirectional LSTM of quantized tensors (com.amd.quark::ExtendedLSTM-1).

X, W, R and B stand for what their levels stand for; between them and Y lies the exact LSTM; where y_scale and
y_zero_point are given, Y is quantized with them, saturating. What the shipped kernel computes is in
:mod:`.extended_lstm_kernel`.

Judged step-local, as every operator here: each step starts from the Y that the target reported one step before, so that
the radius stays tight at any length. Three kinds of arithmetic are declared, none by the document, whose summary says
bfloat16 and whose attributes say uint16:

``fixed-point``
    Levels are multiplied as integers, scale products held in mantissas of 15 bits or more, pre-activations in 24
    fractional bits; gates and states in float32.
``float32``
    Dequantized numbers in float32, as by QDQ nodes around an LSTM.
``bfloat16``
    The same with operands and stored numbers in bfloat16, sums in float32.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...documents.interpretations import Question
from ...documents.operators import Document, OperatorVersion, declare
from ...documents.tensors import Stated, recurrent_forms
from ...numbers.accuracy import budget
from ...numbers.activations import Activation, Coefficient, kind_named
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded, Sum
from ...numbers.bounding import Bounding
from ...numbers.formats import FORMATS, Format
from ...numbers.plain import ordered_product
from ...recurrent.cell import ABSENT, Gates, Parameters, Recurrent, blocks_of
from ...recurrent.node import IllegalNode, Node, format_of_inputs, sizes_of_inputs
from ..lstm.cell import LSTM
from .attributes import Given, codecs_of, complaints
from .stages import Operand, Stages, Sums

__all__ = [
    "ARITHMETICS",
    "DOCUMENT",
    "MANTISSA",
    "OP_TYPE",
    "STATES",
    "WIDEST",
    "ExtendedLSTM",
    "Judge",
    "evaluate_extended",
    "evaluate_from",
    "expect_extended",
    "resolve",
]

Array = NDArray[np.float64]

ARITHMETICS = {"fixed-point": "standard", "float32": "standard", "bfloat16": "bf16-storage"}
"""The declared kinds of arithmetic, and the accuracy class (for float32 tensors) whose roundings their floats have."""

WIDEST = 0.05
"""The radius beyond which lying within it says nothing: outputs lie between -1 and 1."""

STATES = ("quantized", "as-computed")
"""Of a quantized Y, what goes into the next step: Y itself, or Ht before that."""

OP_TYPE, _DOMAIN = "ExtendedLSTM", "com.amd.quark"
_KINDS: Mapping[str, tuple[type, ...]] = {"FLOAT": (float,), "INT": (int, np.integer), "STRING": (str, bytes)}


def _version() -> OperatorVersion:
    """LSTM's tensors, as far as there are such, each with a scale and a zero point of its own.

    Those of Y are in no document, but every implementation demands them (clause extendedlstm.output-quantization).
    """
    forms = recurrent_forms(len(LSTM.gates))
    inputs, outputs = ("X", "W", "R", "B"), ("Y",)
    codecs = {name: Stated(f"{name.lower()}_scale", f"{name.lower()}_zero_point") for name in (*inputs, *outputs)}
    quantization = {codec.scale: "FLOAT" for codec in codecs.values()}
    quantization |= {codec.zero_point: "INT" for codec in codecs.values()}
    own = {name: replace(forms[name], codec=codec) for name, codec in codecs.items()}
    return OperatorVersion(
        domain=_DOMAIN,
        op_type=OP_TYPE,
        since_version=1,
        attributes=MappingProxyType(
            {"direction": "STRING", **dict.fromkeys(("hidden_size", "input_forget", "layout"), "INT"), **quantization}
        ),
        defaults=MappingProxyType({"direction": "forward", "input_forget": 0, "layout": 0}),
        inputs=inputs,
        required=frozenset({"X", "W", "R"}),
        outputs=outputs,
        required_outputs=frozenset(),
        types=("float32",),
        tensors=MappingProxyType({**forms, **own}),
    )


DOCUMENT = declare(
    Document(
        OP_TYPE,
        _DOMAIN,
        Path(__file__).with_name("clauses.toml"),
        {1: _version()},
        questions=(Question("state_quantization", STATES),),
        former=(("com.vai.quantize", "VitisLSTM"),),
    )
)

# What one mantissa of 15 bits or more costs: rounded by half a unit, it is 2^14 units at least.
MANTISSA = 2.0**-15
# One rounding to 24 fractional bits, by half a unit; the five terms of a pre-activation have one each.
_FRACTION = 2.0**-25
_TERMS = 5
_UNIT = 2.0**-24


def _illegal(topic: str, message: str) -> IllegalNode:
    return IllegalNode(f"extendedlstm.{topic}", f"com.amd.quark::{OP_TYPE}-1: {message}")


@dataclass(frozen=True)
class ExtendedLSTM:
    """A node with its inputs, resolved.

    tensors
        X (T, N, I), W (2, 4H, I), R (2, 4H, H) and, where it is there, B (2, 8H), quantized.
    y
        How Y is quantized; None where it is not.
    given, affine
        The tensors as they were given, and how each is quantized.
    """

    T: int
    N: int
    I: int
    H: int
    tensors: Mapping[str, Operand] = field(hash=False)
    y: Affine | None
    given: Mapping[str, NDArray[Any]] = field(default_factory=dict, hash=False)
    affine: Mapping[str, Affine] = field(default_factory=dict, hash=False)

    @property
    def format(self) -> Format:
        """Of all tensors."""
        return FORMATS["float32"]

    @property
    def directions(self) -> tuple[str, ...]:
        """Both, always."""
        return "forward", "reverse"

    @property
    def layout(self) -> int:
        """The sequence comes first, always."""
        return 0

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Every row has all steps."""
        return np.full(self.N, self.T)

    @property
    def ragged(self) -> bool:
        """Never."""
        return False

    @property
    def states(self) -> tuple[str, ...]:
        """There are no outputs beside Y."""
        return ()

    def shape_of(self, output: str) -> tuple[int, ...]:
        """The shape of Y, the only output."""
        return self.T, 2, self.N, self.H


def resolve(attributes: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]]) -> ExtendedLSTM:
    """A node with its inputs. Raises IllegalNode, naming the clause, where the document does not allow it."""
    inputs = {name: array for name, array in inputs.items() if array is not None}
    node = Node(OP_TYPE, 1, attributes, ("Y",), _DOMAIN)
    operator = node.operator
    for name, value in attributes.items():
        if not isinstance(value, _KINDS[operator.attributes[name]]) or isinstance(value, bool):
            raise _illegal("attributes.types", f"{name} is {value!r}, which is not of its type")
    for complaint in complaints(Given(operator, attributes)):
        raise _illegal(*complaint)
    format_of_inputs(operator, inputs, _illegal)
    T, N, I, H = sizes_of_inputs(node, inputs, 2, 0, _illegal)
    affine = {}
    for name, codec in codecs_of(operator).items():
        scale, zero_point = attributes.get(codec.scale), attributes.get(codec.zero_point)
        if scale is not None and zero_point is not None:
            affine[name] = Affine(float(scale), int(zero_point), codec.bits)
        elif (scale, zero_point) != (None, None):
            message = f"{codec.scale} and {codec.zero_point} are given together or not at all"
            raise _illegal("output-quantization", message)
    tensors = {name: Operand.of(affine[name], array) for name, array in inputs.items()}
    return ExtendedLSTM(T, N, I, H, tensors, affine.get("Y"), inputs, {name: affine[name] for name in inputs})


def evaluate_extended(node: ExtendedLSTM, state: str = "quantized") -> Array:
    """Y (T, 2, N, H), every state computed from the one before, in float64 and quantized where y_scale is given.

    state
        One of STATES. Without y_scale both are the same.
    """
    return evaluate_from(node, state)[0]


def evaluate_from(
    node: ExtendedLSTM, state: str = "quantized", before: tuple[Array, Array] | None = None
) -> tuple[Array, tuple[Array, Array]]:
    """Y as of :func:`evaluate_extended`, and Ht and Ct after the last step, each (2, N, H).

    before
        Ht and Ct before the first step; zero without them.
    """
    Y = np.zeros((node.T, 2, node.N, node.H))
    start = np.zeros((2, node.N, node.H))
    hiddens, cells = (start.copy(), start.copy()) if before is None else (before[0].copy(), before[1].copy())
    t, H = node.tensors, node.H
    for d in range(2):
        steps = range(node.T) if d == 0 else range(node.T - 1, -1, -1)
        bias = t["B"].value[d, : 4 * H] + t["B"].value[d, 4 * H :] if "B" in t else np.zeros(4 * H)
        sums = ordered_product(t["X"].value, t["W"].value[d].T) + bias
        hidden, cell = hiddens[d], cells[d]
        for step in steps:
            arguments = sums[step] + ordered_product(hidden, t["R"].value[d].T)
            i, o, f = (0.5 * np.tanh(0.5 * arguments[:, k * H : (k + 1) * H]) + 0.5 for k in range(3))
            cell = f * cell + i * np.tanh(arguments[:, 3 * H :])
            hidden = o * np.tanh(cell)
            Y[step, d] = hidden if node.y is None else node.y.rounded(hidden)
            if state == "quantized":
                hidden = Y[step, d]
        hiddens[d], cells[d] = hidden, cell
    return Y, (hiddens, cells)


def expect_extended(
    node: ExtendedLSTM,
    observed: NDArray[Any],
    arithmetic: str = "fixed-point",
    state: str = "quantized",
    stages: Stages = Stages(),  # noqa: B008 - a frozen value
) -> Bounded:
    """What Y (T, 2, N, H) must be, each step from the state that the target reported one step before.

    A radius holds what the arithmetic may cost before Y is quantized, half of y_scale for the rounding to a level, and
    what dequantizing to float32 costs; the value is the exact one, saturated. Divided by y_scale it is in levels.

    observed
        The Y that the target reported, float32.
    arithmetic, state
        Of ARITHMETICS and STATES.
    stages
        Those of an implementation that gets one or another wrong.

    Raises ValueError for a kind of arithmetic or an interpretation that there is not.
    """
    if arithmetic not in ARITHMETICS or state not in STATES:
        raise ValueError(
            f"arithmetic is one of {', '.join(ARITHMETICS)} and state of {', '.join(STATES)}, not {arithmetic}, {state}"
        )
    judge = Judge(node, arithmetic, state, stages)
    with np.errstate(over="ignore", invalid="ignore"):
        seen = stages.seen(observed.astype(np.float64))
        bounded = judge.bounding.concatenate([judge.direction(d, seen[:, d])[:, np.newaxis] for d in range(2)], 1)
    return stages.placed(bounded)


class Judge:
    """One node in one kind of arithmetic."""

    def __init__(self, node: ExtendedLSTM, arithmetic: str, state: str, stages: Stages) -> None:
        self.node, self.stages = node, stages
        self.tensors, self._conforming = dict(node.tensors), stages.conforming
        if not self._conforming:
            self.tensors = {n: stages.quantized(n, node.affine[n], array) for n, array in node.given.items()}
            self.tensors["X"] = stages.rows(self.tensors["X"])
        self.fixed = arithmetic == "fixed-point"
        self.wide = arithmetic != "bfloat16"
        self.state = state
        self.bounding = Bounding(budget(ARITHMETICS[arithmetic], "float32"))

    def direction(self, d: int, observed: Array) -> Bounded:
        """Y (T, N, H) of one direction."""
        node, stages = self.node, self.stages
        order = slice(None, None, -1) if stages.backwards[d] else slice(None)
        places = order if stages.realigned else slice(None)
        if node.T == 0:
            return self.exact(np.zeros((0, node.N, node.H)))
        before = stages.state(self._before(observed[places]))
        input_sums = self.input_sums(d, order)
        hidden_sums = self.hidden_sums(d, before)
        if not self._conforming:
            t, own = self.tensors, stages.weights[d]
            total = input_sums.value + hidden_sums.value
            sums = Sums(t["X"][order], t["W"][own], before, t["R"][own], sum(self._biases(d)), total)
            shift = stages.shift(sums)
            if np.any(shift):
                input_sums = input_sums + self.exact(np.broadcast_to(shift, total.shape))
        hidden, _ = self.walk(input_sums, hidden_sums, self.exact(np.zeros((node.N, node.H))))
        return self.shown(hidden)[places]

    def _biases(self, d: int) -> tuple[Any, Any]:
        """Wb and Rb of one direction; what stands for both where there is no B."""
        rows = 4 * self.node.H
        if "B" not in self.tensors:
            return np.full(rows, self.stages.absent_bias), np.zeros(rows)
        B = self.tensors["B"][self.stages.weights[d]]
        return self.stages.biases((B.value[:rows], B.value[rows:]))

    def input_sums(self, d: int, order: slice) -> Any:
        """Xt*(W^T) + Wb of every step, in processing order: (T, N, 4H)."""
        t, own, rows = self.tensors, self.stages.weights[d], 4 * self.node.H
        sums: Any = self._product(t["X"][order], t["W"][own])
        if "B" in t:
            return sums + self._bias(replace(t["B"][own][:rows], value=self._biases(d)[0]))
        return sums + self.exact(self._biases(d)[0]) if self.stages.absent_bias else sums

    def hidden_sums(self, d: int, before: Operand, unsure: Any = 0.0) -> Any:
        """Ht-1*(R^T) + Rb of the states before each step.

        unsure
            What the product may be off by beside what it costs for the levels of these states.
        """
        t, own, rows = self.tensors, self.stages.weights[d], 4 * self.node.H
        sums: Any = self._product(before, t["R"][own])
        if self.fixed:
            sums = sums.with_error(sums.error + unsure)
        return sums + self._bias(replace(t["B"][own][rows:], value=self._biases(d)[1])) if "B" in t else sums

    def walk(self, input_sums: Any, hidden_sums: Any, cell: Bounded) -> tuple[Any, ...]:
        """Ht and Ct after every step, from the sums and the cell state before the first."""

        def unused(*_: Any) -> Any:
            raise NotImplementedError

        stages, blocks = self.stages, blocks_of(self.stages.gates, self.node.H)
        functions = LSTM.bind(self.bounding, tuple(_activation(name) for name in stages.functions), (None, None, None))
        parameters = Parameters(functions, dict.fromkeys(LSTM.peepholes, ABSENT), None, False, self.bounding)
        sums = Gates(input_sums, blocks), Recurrent(hidden_sums, blocks, None, unused)
        return LSTM.walk(parameters, *sums, (cell,))

    def exact(self, value: Array) -> Bounded:
        """Numbers without error."""
        return Bounded(value, np.zeros_like(value), self.bounding.budget)

    def _before(self, observed: Array) -> Operand:
        """The state before each step, from the Y that was reported for the steps before, in processing order."""
        y = self.node.y
        start = np.zeros_like(observed[:1])
        reported = np.concatenate([start, observed[:-1]])
        if y is None:
            # No quantization: the state may be held wider than it is shown.
            return Operand(reported, self.bounding.shown(reported).radius, np.zeros_like(reported), 0, 0.0)
        levels = y.levels(reported)
        value = y.dequantized(levels)
        # Narrow floats may show a rounded copy of the level that is held.
        radius = np.zeros_like(value) if self.wide else self.bounding.budget.unit * np.abs(value)
        if self.state == "as-computed":
            # Anything that quantizes to the level; from the ends on to 1, which no state exceeds.
            low, high = value - radius - y.scale / 2, value + radius + y.scale / 2
            low = np.where(value - radius <= y.least, np.minimum(-1.0, low), low)
            high = np.where(value + radius >= y.greatest, np.maximum(1.0, high), high)
            value, radius = (low + high) / 2, (high - low) / 2
            value[0], radius[0] = 0.0, 0.0
        return Operand(
            value, radius, (levels - 2 ** (y.bits - 1)).astype(np.float64), y.zero_point - 2 ** (y.bits - 1), y.scale
        )

    def _product(self, x: Operand, w: Operand) -> Sum:
        """x (T, N, K) times the transposed weights (4H, K): (T, N, 4H)."""
        bounding = self.bounding
        weights = bounding.weights(w.value)
        product = bounding.product(Bounded(x.value, x.radius, bounding.budget), weights)
        open_weights = w.radius.any()
        error = product.error
        if open_weights:
            error = error + (np.abs(x.value) + x.radius) @ w.radius.T
        if not self.fixed or x.scale == 0:
            # Dequantizing to float32 rounds each operand; so does holding a state that nothing quantizes.
            return product.with_error(error + 2 * _UNIT * (1 + _UNIT) * product.magnitude)
        return self._fixed(x, w, product, error)

    def _fixed(self, x: Operand, w: Operand, product: Sum, error: Array) -> Sum:
        """The product in fixed point. With levels a and b less 32768, and zero points p and q likewise,

            sum (a - p)(b - q) = sum ab - q sum a - p sum b + n p q

        each part is exact as an integer, and multiplied with a scale product that a mantissa holds: 2^-15 of each
        part's size. Before that the first part may lose bits to fit: half of 2^ceil(log2 n) products of units. Every
        part is rounded to 24 fractional bits.
        """
        unit, terms = x.scale * w.scale, x.value.shape[-1]
        parts = np.abs(x.centred @ w.centred.T)
        if w.centre:
            parts = parts + abs(w.centre) * np.abs(x.centred.sum(-1, keepdims=True))
        if x.centre:
            parts = parts + abs(x.centre) * np.abs(w.centred.sum(-1))
        parts = parts + terms * abs(x.centre * w.centre)
        lost = 0.5 * 2.0 ** math.ceil(math.log2(terms)) * unit if terms > 1 else 0.5 * unit
        radius = error + MANTISSA * unit * parts + lost + _TERMS / 2 * _FRACTION
        # The sum itself is exact: one term, as far as roundings of a sum go.
        fixed = np.stack((product.value, radius, product.spread, product.spread))
        return Sum(fixed, 1, product.groups, product.budget, product.doubt)

    def _bias(self, b: Operand) -> Bounded:
        rounding = _FRACTION if self.fixed else 0.0
        radius = b.radius + self.bounding.budget.unit * np.abs(b.value) + rounding
        return Bounded(b.value, radius, self.bounding.budget)

    def shown(self, hidden: Bounded) -> Bounded:
        """Y as the target shows it: quantized where y_scale is given."""
        y = self.node.y
        if y is None:
            return hidden
        value = self.stages.shown(y, hidden.value)
        radius = hidden.radius + y.scale / 2
        if self.fixed:
            # To 24 fractional bits, off by a whole unit where the sign is lost, and by a mantissa of 16 bits to a
            # level.
            radius = radius + 2 * _FRACTION + MANTISSA / 2 * np.abs(hidden.value)
        else:
            # The quotient by y_scale, in float32.
            radius = radius + 2 * _UNIT * np.abs(hidden.value)
        radius = radius + _UNIT * np.abs(value) + _UNIT * y.scale
        return replace(hidden, value=value, radius=radius, proportion=None)


def _activation(name: str) -> Activation:
    kind = kind_named(name)
    assert kind is not None
    # HardSigmoid's defaults, and x itself for Affine; the others have none.
    return Activation(kind, *map(Coefficient, (1.0, 0.0) if name == "Affine" else (0.2, 0.5)))
