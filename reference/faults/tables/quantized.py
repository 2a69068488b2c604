"""Faults of kernels of levels: zero points, scales, the state, how numbers become levels, and what their own code
path leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...numbers.affine import Affine
from ...numbers.channels import Channels, Codec, product_codec
from ...recurrent.node import Node, cell_named
from ...recurrent.rnn import CELLS
from ..levels import STATE_CODEC, HalfAway, Truncating, Wrapping, each_channel, level_fault, recoded

__all__: list[str] = []

Arrays = Mapping[str, NDArray[Any]]
Levelled = tuple[Node, Arrays]

_WEIGHTS = ("W", "R", "B", "P")
_STATES = ("initial_h", "initial_c")
_OUTPUTS = ("Y", "Y_h", "Y_c")

_OF_GATES = tuple(op for op, cell in CELLS.items() if len(cell.gates) > 1)
_OF_PEEPHOLES = tuple(op for op, cell in CELLS.items() if cell.peepholes)


def _each(node: Node, names: tuple[str, ...], change: Callable[[Affine], Affine]) -> Node:
    """A node with codecs of some tensors changed."""
    return recoded(node, {name: each_channel(node.codecs[name], change) for name in names if name in node.codecs})


def _at_zero(codec: Affine) -> Affine:
    return replace(codec, zero_point=0)


@level_fault("quantized.zero-point-of-X-ignored")
def no_zero_point_of_x(node: Node, inputs: Arrays) -> Levelled:
    """Takes the zero point of X for zero."""
    return _each(node, ("X",), _at_zero), inputs


@level_fault("quantized.zero-points-of-weights-ignored")
def no_zero_points_of_weights(node: Node, inputs: Arrays) -> Levelled:
    """Takes the zero points of quantized weights for zero."""
    return _each(node, _WEIGHTS, _at_zero), inputs


@level_fault("quantized.zero-points-of-states-ignored", clause="initial-states")
def no_zero_points_of_states(node: Node, inputs: Arrays) -> Levelled:
    """Takes the zero points of quantized initial states for zero."""
    return _each(node, _STATES, _at_zero), inputs


@level_fault("quantized.zero-points-of-outputs-ignored")
def no_zero_points_of_outputs(node: Node, inputs: Arrays) -> Levelled:
    """Quantizes outputs with a zero point of zero."""
    return _each(node, _OUTPUTS, _at_zero), inputs


def _as(node: Node, name: str, other: str, what: str) -> Node:
    """A node in which one tensor has another's scale or zero point, where both have one of each."""
    own, theirs = node.codecs.get(name), node.codecs.get(other)
    if not isinstance(own, Affine) or not isinstance(theirs, Affine):
        return node
    value = getattr(theirs, what)
    if what == "zero_point" and not own.lowest <= value <= own.highest:
        return node
    return recoded(node, {name: replace(own, **{what: value})})


@level_fault("quantized.zero-point-of-X-for-outputs")
def zero_point_of_x(node: Node, inputs: Arrays) -> Levelled:
    """Uses the zero point of X for Y and Y_h."""
    return _as(_as(node, "Y", "X", "zero_point"), "Y_h", "X", "zero_point"), inputs


@level_fault("quantized.zero-point-of-W-for-R")
def zero_point_of_w(node: Node, inputs: Arrays) -> Levelled:
    """Uses the zero point of W for R."""
    return _as(node, "R", "W", "zero_point"), inputs


@level_fault("quantized.scale-of-W-for-R")
def scale_of_w(node: Node, inputs: Arrays) -> Levelled:
    """Uses the scale of W for R."""
    w, r = node.codecs.get("W"), node.codecs.get("R")
    if isinstance(w, Channels) and isinstance(r, Channels) and len(w.each) == len(r.each):
        pairs = zip(w.each, r.each, strict=True)
        return recoded(node, {"R": Channels(r.axis, tuple(replace(b, scale=a.scale) for a, b in pairs))}), inputs
    return _as(node, "R", "W", "scale"), inputs


@level_fault("quantized.scale-of-X-for-states", clause="initial-states")
def scale_of_x(node: Node, inputs: Arrays) -> Levelled:
    """Uses the scale of X for initial_h."""
    return _as(node, "initial_h", "X", "scale"), inputs


@level_fault("quantized.scale-of-next-channel")
def next_channel(node: Node, inputs: Arrays) -> Levelled:
    """Uses the scale of each channel for the channel before it."""

    def turned(codec: Codec) -> Codec:
        if isinstance(codec, Affine):
            return codec
        scales = np.roll(codec.scales, -1).tolist()
        pairs = zip(codec.each, scales, strict=True)
        return Channels(codec.axis, tuple(replace(own, scale=scale) for own, scale in pairs))

    return recoded(node, {name: turned(node.codecs[name]) for name in "WR" if name in node.codecs}), inputs


@level_fault("quantized.scale-of-first-channel")
def first_channel(node: Node, inputs: Arrays) -> Levelled:
    """Uses the scale of the first channel for all channels."""

    def alike(codec: Codec) -> Codec:
        if isinstance(codec, Affine):
            return codec
        return each_channel(codec, lambda own: replace(own, scale=codec.each[0].scale))

    return recoded(node, {name: alike(node.codecs[name]) for name in "WR" if name in node.codecs}), inputs


@level_fault("quantized.state-as-levels-of-X")
def state_as_x(node: Node, inputs: Arrays) -> Levelled:
    """Hands the state on to the next step in levels of X's scale and zero point."""
    x = node.codecs.get("X")
    return (recoded(node, {STATE_CODEC: x}) if x is not None else node), inputs


def _shown(kind: type[Affine]) -> Callable[[Affine], Affine]:
    return lambda codec: kind(codec.scale, codec.zero_point, codec.bits, codec.signed)


@level_fault("quantized.saturation-wraps")
def wraps(node: Node, inputs: Arrays) -> Levelled:
    """Lets outputs beyond the ends of their type go on at its other end."""
    return _each(node, _OUTPUTS, _shown(Wrapping)), inputs


@level_fault("quantized.truncated", slight=True)
def truncated(node: Node, inputs: Arrays) -> Levelled:
    """Cuts outputs off towards zero instead of rounding them to levels."""
    return _each(node, _OUTPUTS, _shown(Truncating)), inputs


@level_fault("quantized.ties-away-from-zero", slight=True)
def ties_away(node: Node, inputs: Arrays) -> Levelled:
    """Rounds outputs half way between two levels away from zero, and not to the even one."""
    return _each(node, _OUTPUTS, _shown(HalfAway)), inputs


@level_fault("quantized.bias-of-product-scale", clause="bias")
def bias_of_product(node: Node, inputs: Arrays) -> Levelled:
    """Adds the levels of an int32 bias to those of products, whatever its scale is."""
    codec = node.codecs.get("B")
    if codec is None or codec.bits != 32 or not {"X", "W", "R"} <= node.codecs.keys():
        return node, inputs
    return recoded(node, {"B": product_codec(node.codecs)}), inputs


@level_fault("quantized.gates-swapped", clause="gates.order", operators=_OF_GATES)
def gates_swapped(node: Node, inputs: Arrays) -> Levelled:
    """Takes the first two gates of quantized W and R for each other."""
    swapped = {}
    for name in "WR":
        if name in node.codecs:
            blocks = np.split(inputs[name], len(cell_named(node.op_type).gates), axis=1)
            swapped[name] = np.concatenate([blocks[1], blocks[0], *blocks[2:]], axis=1)
    return node, {**inputs, **swapped}


@level_fault("quantized.clip-in-levels", clause="clip")
def clip_in_levels(node: Node, inputs: Arrays) -> Levelled:
    """Takes clip for a number of levels of Y."""
    codec = node.codecs.get("Y") or node.codecs.get("Y_h")
    clip = node.attributes.get("clip")
    if not isinstance(codec, Affine) or not clip:
        return node, inputs
    return replace(node, attributes={**node.attributes, "clip": float(np.float32(clip * codec.scale))}), inputs


@level_fault("quantized.peepholes-left-out", clause="peepholes", operators=_OF_PEEPHOLES)
def peepholes_left_out(node: Node, inputs: Arrays) -> Levelled:
    """Leaves the peepholes out where P is quantized."""
    codec = node.codecs.get("P")
    if codec is None:
        return node, inputs
    zeros = np.zeros(inputs["P"].shape)
    return node, {**inputs, "P": codec.levels(zeros).astype(codec.dtype)}
