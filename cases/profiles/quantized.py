"""The profile ``quantized``: cases of nodes between DequantizeLinear and QuantizeLinear.

It stands beside ``core``, and nobody runs it who does not ask for it: most targets that take float nodes have no
quantized ones, or run them in float. Every two values of what a quantized node is made of stand together in some case,
and each model has two cases, of which the second is calibrated by the first one's numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from ...reference import operator_version
from ...reference.recurrent.node import cell_named
from ..axes.quantized.quantization import INTEGERS, can_be_quantized
from ..specs.space import settle, space_of, spec_from
from ..specs.spec import CaseSpec
from .covering import cover

# Values that a kernel of levels treats in a way of its own. Those that stand twice are in more rows.
_BESIDE: Mapping[str, tuple[Hashable, ...]] = {
    "direction": ("bidirectional", "forward", "reverse"),
    "size": ("small", "square", "single-row"),
    "bias": (True, True, False),
    "lengths": ("absent", "ragged"),
    "initial": ("all", "none"),
    "activations": ("default", "default", "soft"),
    "clip": (None, 0.5),
    "outputs": ("all", "all", "all", "Y", "states"),
    "weights": ("initializer", "initializer", "input"),
    "dimensions": ("static", "symbolic"),
    "opset": ("first", "last"),
    "peepholes": (True, False),
    "input_forget": (None, None, 1),
    "linear_before_reset": (0, 1),
    "quantization": INTEGERS,
    "weight_type": ("same", "same", "same", "s8", "u8"),
    "channels": ("tensor", "directions", "rows"),
    "bias_type": ("same", "product", "int32"),
    "quantized_tensors": ("all", "all", "all", "inputs", "data"),
    "scales": ("calibrated", "calibrated", "power", "saturating"),
    "zero_points": ("calibrated", "calibrated", "lowest", "highest"),
}
_RICH: Mapping[str, Hashable] = {
    **{"type": "float32", "size": "small", "bias": True, "initial": "all", "lengths": "ragged"},
    **{"direction": "bidirectional", "weights": "initializer", "outputs": "all"},
}
_PINNED = 14
"""The version of every operator that has all of them; others have the first rows of a design of their own."""

_FEWER = 5
"""Models of another version."""

_OTHER = 1000
"""Distance of the seed of a model's second case from that of its weights."""


_TIED: Mapping[str, Any] = {"T": 1, "N": 40, "I": 3, "H": 36, "weights": "initializer", "scales": "power"}
_TIED_SEED = 2
"""The first of which every case has an odd level and a half."""


def quantized_cases(op: str, version: int) -> Iterator[CaseSpec]:
    """The cases of an operator version."""
    operator = operator_version(op, version)
    if not can_be_quantized(operator):
        return
    space = space_of(operator)
    axes = {name: values for name, values in _BESIDE.items() if name in space or name == "size"}
    rows = cover(axes, _settled, strength=2, seed=version, candidates=12)
    if version != _PINNED:
        rows = itertools.islice(rows, _FEWER)
    for number, row in enumerate(itertools.chain(rows, _alone(op, version) if version == _PINNED else ())):
        for seed in (number, number + _OTHER):
            yield spec_from(op, version, {**row, "type": "float32"}, seed=seed, weights_seed=number)
    if version == _PINNED:
        yield from _of_ties(op, version)


def _of_ties(op: str, version: int) -> Iterator[CaseSpec]:
    """Cases in which nothing rounds before numbers become levels, so that it is known which of them lie half way
    between two: one step, scales that are powers of two, gates of one half, and no more digits than float32 has."""
    _, *others = cell_named(op).activations
    functions = ("HardSigmoid", *("Relu" for _ in others)) if others else ("Relu",)
    halves: dict[str, Any] = {"alpha": (0.0,), "beta": (0.5,)} if others else {}
    for kind in INTEGERS:
        narrow = {} if kind.endswith("8") else {"weight_type": "s8"}
        for seed in (_TIED_SEED, _TIED_SEED + _OTHER):
            yield CaseSpec(
                op, version, **_TIED, **halves, **narrow, activations=functions, quantization=kind, seed=seed,
                weights_seed=_TIED_SEED,
            )  # fmt: skip


def _settled(row: dict[str, Hashable]) -> dict[str, Hashable]:
    return settle(row)


def _alone(op: str, version: int) -> Iterator[dict[str, Hashable]]:
    """Values that stand in no design, once each: tensors that alone are quantized, a scale that makes all 0,
    layout 1."""
    operator = operator_version(op, version)
    tensors = space_of(operator)["quantized_tensors"].rare
    rich = {**_RICH, **({"peepholes": True} if "P" in operator.inputs else {})}
    types = itertools.cycle(INTEGERS)
    for tensor in tensors:
        if tensor not in _BESIDE["quantized_tensors"]:
            more = {"zero_points": "middle"} if tensor == "outputs" else {}
            yield {**rich, "quantization": next(types), "quantized_tensors": tensor, **more}
    yield {**rich, "quantization": next(types), "scales": "zeroing", "bias_type": "float"}
    # Many runtimes refuse it outright, and what a refused row combines is not tried.
    yield {**rich, "quantization": next(types), "layout": 1}
