"""Random numbers for a node's inputs if the user gave none, in a range in which its weights matter.

An activation with an argument far beyond a few units tests nothing (every gate is open or shut), and one near zero
little. So X is drawn from (-a, a). a is the power of two for which sums over W have a standard deviation between one
and two; a uniform number from (-a, a) has a / sqrt(3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from ...cases.axes.generator import uniform
from ...reference import FORMATS
from ...reference.documents.tensors import Levels
from ...reference.recurrent.computation import dequantized
from .portable import Array, NotPortable, PortableNode

SEQUENCES = ((6, 2), (3, 1), (9, 3))
"""seq_length and batch_size of each data set, if the model leaves them open."""

_MOST_EXPONENT = 14
"""Limit of the exponent, within float16."""


def drawn(node: PortableNode) -> list[dict[str, Array]]:
    """Return random arrays by formal input, for several runs of a session. Raise NotPortable."""
    longest = int(node.constants["sequence_lens"].max(initial=1)) if "sequence_lens" in node.constants else 1
    named = {extent.size for shape in node.formal.values() for extent in shape}
    runs = []
    for number, (steps, batch) in enumerate(SEQUENCES):
        usual = {"seq_length": max(steps, longest), "batch_size": batch, "input_size": 4, "hidden_size": 4}
        sizes = {**dict.fromkeys(named, steps), "num_directions": 1, **usual, **node.sizes}
        runs.append({name: _input(node, name, sizes, number) for name in node.flowing})
    return runs


def _input(node: PortableNode, name: str, sizes: Mapping[str, int], number: int) -> Array:
    if name in node.defaults:
        return node.defaults[name]
    shape = tuple(extent.value(sizes) for extent in node.formal[name])
    key = f"{node.operator.name}/{node.path}/{name}/{number}"
    if name == "sequence_lens":
        # From one step to all of them, the first row whole.
        steps = sizes["seq_length"]
        lengths = np.minimum((np.abs(uniform(key, shape, 24, 0)) * steps).astype(np.int32) + 1, steps)
        lengths[:1] = steps
        return lengths.astype(np.int32)
    if node.elements[name] not in FORMATS:
        raise NotPortable(f"computes {name} in the graph: no data is drawn for that, give some with --inputs")
    form, exponent = FORMATS[node.elements[name]], 0
    if name == "X":
        exponent = _exponent(node, sizes)
    elif node.operator.kind_of(name) == "T" and not name.startswith("initial_"):
        # Weights for which sums of this many products are about 1.
        exponent = -round(math.log2(math.sqrt(max(sizes["hidden_size"], 1))))
    return uniform(key, shape, form.precision, exponent).astype(form.dtype)


def _exponent(node: PortableNode, sizes: Mapping[str, int]) -> int:
    """Return the exponent of a."""
    weights, form = {**node.defaults, **node.constants}, node.operator.tensors.get("W")
    if "W" not in weights or form is None:
        return 0
    W = weights["W"].astype(np.float64)
    if isinstance(form.codec, Levels):
        if form.codec.scale not in weights or form.codec.zero_point not in weights:
            return 0
        W = dequantized(W, weights[form.codec.scale], weights[form.codec.zero_point])
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.sqrt(np.mean(np.square(W)))) * math.sqrt(sizes["input_size"] / 3) if W.size else 0.0
    if not 0 < spread < math.inf:
        return 0
    return max(-_MOST_EXPONENT, min(_MOST_EXPONENT, math.ceil(-math.log2(spread))))
