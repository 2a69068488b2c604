"""Numbers for what flows into a node, where nobody gave any: in a range in which its weights do something.

An argument of an activation that is far beyond a few units says nothing (every gate is open or shut), one near zero
little. So X is drawn from (-a, a) with a the power of two for which sums over W come out with a standard fault
between one and two; a uniform number from (-a, a) has a / sqrt(3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...cases.axes.generator import uniform
from ...reference import FORMATS
from ...reference.documents.tensors import LENGTHS, Levels
from ...reference.recurrent.computation import dequantized
from .portable import Array, NotPortable, PortableNode

SEQUENCES = ((6, 2), (3, 1), (9, 3))
"""seq_length and batch_size of each data set, where the model leaves them open."""

_MOST_EXPONENT = 14
"""Within float16."""


def drawn(node: PortableNode) -> list[dict[str, Array]]:
    """Draw arrays by formal input, for several runs of a session."""
    return [_one(node, number) for number in range(len(SEQUENCES))]


def _one(node: PortableNode, number: int) -> dict[str, Array]:
    steps, batch = SEQUENCES[number]
    longest = int(node.constants["sequence_lens"].max(initial=1)) if "sequence_lens" in node.constants else 1
    chosen = {"seq_length": max(steps, longest), "batch_size": batch, "input_size": 4, "hidden_size": 4}
    named = {extent.size for shape in node.formal.values() for extent in shape}
    sizes = {**dict.fromkeys(named, steps), "num_directions": 1, **chosen, **node.sizes}
    return {name: _input(node, name, sizes, number) for name in node.flowing}


def _input(node: PortableNode, name: str, sizes: Mapping[str, int], number: int) -> Array:
    if name in node.defaults:
        return node.defaults[name]
    shape, key = node.shape_of(name, sizes), f"{node.operator.name}/{node.path}/{name}/{number}"
    form = FORMATS[node.element]
    if node.operator.kind_of(name) not in ("T", LENGTHS):
        if (own := node.elements.get(name, node.element)) in FORMATS:
            return uniform(key, shape, FORMATS[own].precision, 0).astype(FORMATS[own].dtype)
        raise NotPortable(f"computes {name} in the graph: no data is drawn for that, give some with --inputs")
    if name == "sequence_lens":
        # From one step to all of them, the first row whole.
        steps = sizes["seq_length"]
        share = np.abs(uniform(key, shape, 24, 0))
        lengths = np.minimum((share * steps).astype(np.int32) + 1, steps).astype(np.int32)
        lengths[:1] = steps
        return lengths
    exponent = 0 if name.startswith("initial_") else _gain(sizes["hidden_size"])
    if name == "X":
        exponent = _exponent(node, sizes)
    return uniform(key, shape, form.precision, exponent).astype(form.dtype)


def _exponent(node: PortableNode, sizes: Mapping[str, int]) -> int:
    """Return the exponent of a."""
    W = _weights(node)
    if W is None or not W.size:
        return 0
    spread = float(np.sqrt(np.mean(np.square(W)))) * math.sqrt(sizes["input_size"] / 3)
    if not 0 < spread < math.inf:
        return 0
    return max(-_MOST_EXPONENT, min(_MOST_EXPONENT, math.ceil(-math.log2(spread))))


def _weights(node: PortableNode) -> Array | None:
    """Return the numbers that W stands for; None where they are not known."""
    held = {**node.defaults, **node.constants}
    W = held.get("W")
    if W is None:
        return None
    form = node.operator.tensors["W"]
    if not isinstance(form.codec, Levels):
        return W.astype(np.float64)
    scale, zero_point = (held.get(name) for name in (form.codec.scale, form.codec.zero_point))
    return None if scale is None or zero_point is None else dequantized(W.astype(np.float64), scale, zero_point)


def _gain(columns: int) -> int:
    """Return the exponent of weights with which sums of so many products are about as large as one."""
    return -round(math.log2(math.sqrt(max(columns, 1))))
