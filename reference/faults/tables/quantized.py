"""Faults of integer kernels: zero points, scales, the state, quantizing, and features missing in their code path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.affine import Affine, Channels, Codec, product_codec
from ...recurrent.node import Node, cell_named
from ...recurrent.rnn import CELLS
from ..alterations import STATE_CODEC, HalfAway, Truncating, Wrapping, each_channel, level_fault, recoded

# Rows: id, clause, words, then the codecs that stand in place of those of the node, and fields of Fault.
# fmt: off

Arrays = Mapping[str, NDArray[Any]]
Codecs = Mapping[str, Codec]

_WEIGHTS = ("W", "R", "B", "P")
_STATES = ("initial_h", "initial_c")
_OUTPUTS = ("Y", "Y_h", "Y_c")

_OF_GATES = tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1)
_OF_PEEPHOLES = tuple(op for op, cell in CELLS.items() if cell.peepholes)


def _codecs(id: str, clause: str, words: str, change: Callable[[Codecs], Codecs], **fields: Any) -> None:
    """Register a fault that uses other codecs for some tensors: `change` of the codecs by tensor."""
    level_fault(id, clause, words, lambda node, inputs: (recoded(node, change(node.codecs)), inputs), **fields)


def _each(codecs: Codecs, names: tuple[str, ...], change: Callable[[Codec], Codec]) -> Codecs:
    return {name: change(codecs[name]) for name in names if name in codecs}


def _at_zero(codec: Codec) -> Codec:
    return each_channel(codec, lambda own: replace(own, zero_point=0))


def _as(codecs: Codecs, name: str, other: str, field: str) -> Codecs:
    """Return one tensor's codec with another's scale or zero point, if both are per tensor and the value is valid."""
    own, theirs = codecs.get(name), codecs.get(other)
    if not isinstance(own, Affine) or not isinstance(theirs, Affine):
        return {}
    value = getattr(theirs, field)
    if field == "zero_point" and not own.lowest <= value <= own.highest:
        return {}
    return {name: replace(own, **{field: value})}


def _scales_of_w(codecs: Codecs) -> Codecs:
    w, r = codecs.get("W"), codecs.get("R")
    if isinstance(w, Channels) and isinstance(r, Channels) and len(w.each) == len(r.each):
        return {"R": _with_scales(r, [own.scale for own in w.each])}
    return _as(codecs, "R", "W", "scale")


def _with_scales(codec: Channels, scales: list[float]) -> Channels:
    pairs = zip(codec.each, scales, strict=True)
    return Channels(codec.axis, tuple(replace(own, scale=scale) for own, scale in pairs))


def _next_scales(codec: Codec) -> Codec:
    return codec if isinstance(codec, Affine) else _with_scales(codec, np.roll(codec.scales, -1).tolist())


def _first_scale(codec: Codec) -> Codec:
    return codec if isinstance(codec, Affine) else _with_scales(codec, [codec.each[0].scale] * len(codec.each))


def _quantizing(codecs: Codecs, kind: type[Affine]) -> Codecs:
    """Return codecs of the outputs that quantize in another way."""
    def changed(codec: Codec) -> Codec:
        return each_channel(codec, lambda own: kind(own.scale, own.zero_point, own.bits, own.signed))

    return _each(codecs, _OUTPUTS, changed)


def _bias_of_product(codecs: Codecs) -> Codecs:
    codec = codecs.get("B")
    there = codec is not None and codec.bits == 32 and {"X", "W", "R"} <= codecs.keys()
    return {"B": product_codec(codecs)} if there else {}


_codecs("quantized.zero-point-of-X-ignored", "equations", "Takes the zero point of X for zero.",
    lambda codecs: _each(codecs, ("X",), _at_zero))
_codecs("quantized.zero-points-of-weights-ignored", "equations", "Takes the zero points of quantized weights for zero.",
    lambda codecs: _each(codecs, _WEIGHTS, _at_zero))
_codecs("quantized.zero-points-of-states-ignored", "initial-states",
    "Takes the zero points of quantized initial states for zero.",
    lambda codecs: _each(codecs, _STATES, _at_zero))
_codecs("quantized.zero-points-of-outputs-ignored", "equations", "Quantizes outputs with a zero point of zero.",
    lambda codecs: _each(codecs, _OUTPUTS, _at_zero))
_codecs("quantized.zero-point-of-X-for-outputs", "equations", "Uses the zero point of X for Y and Y_h.",
    lambda codecs: {**_as(codecs, "Y", "X", "zero_point"), **_as(codecs, "Y_h", "X", "zero_point")})
_codecs("quantized.zero-point-of-W-for-R", "equations", "Uses the zero point of W for R.",
    lambda codecs: _as(codecs, "R", "W", "zero_point"))
_codecs("quantized.scale-of-W-for-R", "equations", "Uses the scale of W for R.", _scales_of_w)
_codecs("quantized.scale-of-X-for-states", "initial-states", "Uses the scale of X for initial_h.",
    lambda codecs: _as(codecs, "initial_h", "X", "scale"))
_codecs("quantized.scale-of-next-channel", "equations", "Uses the scale of each channel for the channel before it.",
    lambda codecs: _each(codecs, ("W", "R"), _next_scales))
_codecs("quantized.scale-of-first-channel", "equations", "Uses the scale of the first channel for all channels.",
    lambda codecs: _each(codecs, ("W", "R"), _first_scale))
_codecs("quantized.state-as-levels-of-X", "equations",
    "Hands the state on to the next step in levels of X's scale and zero point.",
    lambda codecs: {STATE_CODEC: codecs["X"]} if "X" in codecs else {})
_codecs("quantized.saturation-wraps", "equations",
    "Lets outputs beyond the ends of their type go on at its other end.",
    lambda codecs: _quantizing(codecs, Wrapping))
_codecs("quantized.truncated", "equations", "Cuts outputs off towards zero instead of rounding them to levels.",
    lambda codecs: _quantizing(codecs, Truncating), kind="small")
_codecs("quantized.ties-away-from-zero", "equations",
    "Rounds outputs half way between two levels away from zero, and not to the even one.",
    lambda codecs: _quantizing(codecs, HalfAway), kind="small")
_codecs("quantized.bias-of-product-scale", "bias",
    "Adds the levels of an int32 bias to those of products, whatever its scale is.", _bias_of_product)


@level_fault("quantized.gates-swapped", "gates.order",
    "Takes the first two gates of quantized W and R for each other.", operators=_OF_GATES)
def gates_swapped(node: Node, inputs: Arrays) -> tuple[Node, Arrays]:
    swapped = {}
    for name in "WR":
        if name in node.codecs:
            blocks = np.split(inputs[name], len(cell_named(node.op_type).gates), axis=1)
            swapped[name] = np.concatenate([blocks[1], blocks[0], *blocks[2:]], axis=1)
    return node, {**inputs, **swapped}


@level_fault("quantized.clip-in-levels", "clip", "Takes clip for a number of levels of Y.")
def clip_in_levels(node: Node, inputs: Arrays) -> tuple[Node, Arrays]:
    codec = node.codecs.get("Y") or node.codecs.get("Y_h")
    clip = node.attributes.get("clip")
    if not isinstance(codec, Affine) or not clip:
        return node, inputs
    return replace(node, attributes={**node.attributes, "clip": float(np.float32(clip * codec.scale))}), inputs


@level_fault("quantized.peepholes-left-out", "peepholes",
    "Leaves the peepholes out where P is quantized.", operators=_OF_PEEPHOLES)
def peepholes_left_out(node: Node, inputs: Arrays) -> tuple[Node, Arrays]:
    codec = node.codecs.get("P")
    if codec is None:
        return node, inputs
    zeros = np.zeros(inputs["P"].shape)
    return node, {**inputs, "P": codec.levels(zeros).astype(codec.dtype)}
