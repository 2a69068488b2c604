"""Roads from a float node to one that an NPU runs, and what each costs in accuracy: by the references alone.

Ranges are calibrated as quantizers do: from the least to the largest number of each tensor, zero among them, on the
inputs that are given and on what the float node computes of them. Constants of signed integers have a zero point of 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import IllegalNode, Node, evaluate_in_order
from ...reference.numbers.affine import Affine
from .extended_lstm.producer import NotQuantizable, documented, kernel_rows, quantized

Array = NDArray[Any]
Arrays = Mapping[str, Array]

_INTEGERS = {"u8": (8, False), "s8": (8, True), "u16": (16, False), "s16": (16, True)}
_CONSTANTS = ("W", "R", "B", "P")
_DYNAMIC, _DOMAIN = "DynamicQuantizeLSTM", "com.microsoft"
_INT8 = 127


@dataclass(frozen=True)
class Plan:
    """A node and its inputs on one road.

    why
        Why there is none; empty where there is.
    """

    name: str
    node: Node | None = None
    inputs: Arrays = field(default_factory=dict)
    why: str = ""

    def Y(self) -> Array:
        """The references' Y, as numbers."""
        assert self.node is not None
        Y = evaluate_in_order(self.node, self.inputs)["Y"]
        codec = self.node.codecs.get("Y")
        return Y if codec is None else codec.dequantized(Y.astype(np.int64))


@dataclass(frozen=True)
class Road:
    """The distance of Y from the float node's.

    largest, mean, rms
        Of |Y - float Y|; NaN where the node cannot go this way.
    decibels
        The signal over that, by squares.
    steps
        The largest error at each step of X.
    note
        Why the node cannot go this way, or what is left out of it on the way.
    """

    name: str
    largest: float = math.nan
    mean: float = math.nan
    rms: float = math.nan
    decibels: float = math.nan
    steps: tuple[float, ...] = ()
    note: str = ""


def costs(node: Node, inputs: Arrays) -> list[Road]:
    """The cost of each road for a float32 node on some inputs. Raises NotQuantizable, see :func:`plans`."""
    shown = replace(node, outputs=("Y",))
    planned = plans(node, inputs)
    exact = evaluate_in_order(shown, inputs)["Y"]
    batch_first = node.attributes.get("layout") == 1
    measured = [
        Road(plan.name, note=plan.why) if plan.node is None else _measured(plan.name, plan.Y(), exact, batch_first)
        for plan in planned
    ]
    return [*measured, *_extended(node, inputs, exact, batch_first)]


def plans(node: Node, inputs: Arrays) -> list[Plan]:
    """The node on each road that a model of ONNX's and com.microsoft's operators can go.

    Raises NotQuantizable for a node that is not float32 and for numbers on which no range can be calibrated.
    """
    for name, array in inputs.items():
        if array.dtype != np.float32 and name != "sequence_lens":
            already = ", quantized already" if array.dtype.kind in "iu" else ""
            raise NotQuantizable(f"{name} is {array.dtype.name}{already}: costs are told of float32 nodes alone")
    if not inputs["X"].size or not all(np.isfinite(array).all() for array in inputs.values()):
        raise NotQuantizable("there are numbers that are not finite, or none: no range can be calibrated")
    everything = replace(node, outputs=node.operator.outputs)
    numbers = {**inputs, **evaluate_in_order(everything, inputs)}
    return [*(_qdq(everything, inputs, numbers, name) for name in _INTEGERS), _dynamic(node, inputs)]


def _measured(name: str, Y: Array, exact: Array, batch_first: bool, note: str = "") -> Road:
    error = np.abs(Y.astype(np.float64) - exact)
    noise, signal = float((error**2).mean()), float((exact**2).mean())
    decibels = 10 * math.log10(signal / noise) if signal and noise else math.inf
    by_step = np.moveaxis(error, 1 if batch_first else 0, 0)
    steps = tuple(float(step.max()) for step in by_step)
    return Road(name, float(error.max()), float(error.mean()), math.sqrt(noise), decibels, steps, note)


def _qdq(node: Node, inputs: Arrays, numbers: Arrays, name: str) -> Plan:
    """The node between DequantizeLinear and QuantizeLinear."""
    bits, signed = _INTEGERS[name]
    codecs = {
        tensor: _calibrated(array, bits, signed, symmetric=signed and tensor in _CONSTANTS)
        for tensor, array in numbers.items()
        if tensor != "sequence_lens"
    }
    levels = {
        tensor: codecs[tensor].levels(array).astype(codecs[tensor].dtype) if tensor in codecs else array
        for tensor, array in inputs.items()
    }
    return Plan(f"QDQ {name}", replace(node, codecs=codecs), levels)


def _calibrated(array: Array, bits: int, signed: bool, symmetric: bool) -> Affine:
    """The codec of the range that an array has."""
    low, high = float(array.min(initial=0.0)), float(array.max(initial=0.0))
    lowest, highest = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    if symmetric:
        scale = float(np.float32(max(-low, high) / highest))
        return Affine(scale or 1.0, 0, bits, signed)
    scale = float(np.float32((high - low) / (highest - lowest))) or 1.0
    return Affine(scale, int(np.clip(lowest + np.rint(-low / scale), lowest, highest)), bits, signed)


def _dynamic(node: Node, inputs: Arrays) -> Plan:
    """An LSTM with weights in int8, by the largest of each direction; the rest is quantized as it runs."""
    if node.op_type != "LSTM":
        return Plan(_DYNAMIC, why=f"{node.op_type} has no such operator")
    attributes = {name: value for name, value in node.attributes.items() if name != "layout"}
    if node.attributes.get("layout") == 1:
        return Plan(_DYNAMIC, why="it has no layout 1")
    given = dict(inputs)
    for name in ("W", "R"):
        largest = np.abs(inputs[name]).max(axis=(1, 2), keepdims=True, initial=0.0)
        scale = np.where(largest > 0, largest / np.float32(_INT8), np.float32(1)).astype(np.float32)
        levels = np.clip(np.rint(inputs[name] / scale), -_INT8, _INT8).astype(np.int8)
        given[name] = np.ascontiguousarray(levels.swapaxes(1, 2))
        given[f"{name}_scale"] = scale.reshape(-1)
        given[f"{name}_zero_point"] = np.zeros(len(scale), np.int8)
    return Plan(_DYNAMIC, Node(_DYNAMIC, 1, attributes, ("Y",), _DOMAIN), given)


def _extended(node: Node, inputs: Arrays, exact: Array, batch_first: bool) -> Iterator[Road]:
    """The ExtendedLSTM that AMD Quark's producer makes: by the document, and as the shipped kernel computes."""
    names = {"ExtendedLSTM, as documented": documented, "ExtendedLSTM, as shipped": kernel_rows}
    try:
        q = quantized(node, inputs)
    except (NotQuantizable, IllegalNode) as error:
        yield from (Road(name, note=str(error)) for name in names)
        return
    note = f"leaves out {', '.join(q.dropped)}" if q.dropped else ""
    for name, compute in names.items():
        Y = compute(q)
        yield _measured(name, Y.transpose(2, 0, 1, 3) if batch_first else Y, exact, batch_first, note)
