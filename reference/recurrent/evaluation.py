"""The value of a node: what its document says that it computes, in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.tensors import Levels, TensorForm
from ..numbers.plain import Ordered, Plain
from .configuration import configure
from .node import Node
from .recurrence import Computation, collect, trace


def computation_of(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations | None = None
) -> Computation:
    """A node with its inputs, resolved, and the tensors in float64. Raises IllegalNode."""
    return Computation(configure(node, inputs, interpretations), tensors_of(inputs, node.operator.tensors))


def tensors_of(inputs: Mapping[str, NDArray[Any]], forms: Mapping[str, TensorForm]) -> dict[str, NDArray[Any]]:
    """The inputs that there are, in float64 but for lengths. Levels become the numbers that they stand for, and their
    axes stand as in ONNX's operators; scales and zero points stay what they are."""
    given = {n: a if n == "sequence_lens" else a.astype(np.float64) for n, a in inputs.items() if a is not None}
    for name, form in forms.items():
        if isinstance(form.codec, Levels) and name in given:
            given[name] = dequantized(given[name], given[form.codec.scale], given[form.codec.zero_point])
    return given


def dequantized(levels: NDArray[Any], scale: NDArray[Any], zero_point: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers that levels (directions, columns, channels) stand for, as (directions, channels, columns). They are
    exact: levels of 8 bits and scales of float32 leave room.

    scale, zero_point
        (directions,), or (directions, channels).
    """
    scales, zeros = (a.reshape(len(levels), 1, -1) for a in (scale, zero_point))
    numbers: NDArray[np.float64] = ((levels - zeros) * scales).swapaxes(1, 2)
    return numbers


def evaluate(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations | None = None
) -> dict[str, NDArray[np.float64]]:
    """The outputs that the node asks for, by name, as float64 arrays in the node's layout. A matrix library adds the
    sums, so the last digits depend on the machine.

    inputs
        Formal input name to array: X, W, R, and of B, sequence_lens, initial_h, initial_c, P those that are there;
        None stands for one that is not.
    interpretations
        Which meaning to follow where the document is open; the reference's own without it.

    Raises IllegalNode where the document does not allow the node with these inputs.
    """
    return _evaluate(node, inputs, interpretations, Plain())


def evaluate_in_order(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations | None = None
) -> dict[str, NDArray[np.float64]]:
    """Outputs like :func:`evaluate`'s, with the terms of each sum added from the first to the last: no matrix library
    has part in the last digits, so what is written into files is the same on every machine. Several times slower."""
    return _evaluate(node, inputs, interpretations, Ordered())


def _evaluate(
    node: Node, inputs: Mapping[str, NDArray[Any]], interpretations: Interpretations | None, arithmetic: Plain
) -> dict[str, NDArray[np.float64]]:
    computation = computation_of(node, inputs, interpretations)
    with np.errstate(over="ignore", invalid="ignore"):
        outputs = collect(computation.configuration, trace(computation, arithmetic), arithmetic)
    return {name: outputs[name] for name in node.outputs}
