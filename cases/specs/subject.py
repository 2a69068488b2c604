"""Subjects: the nodes of a session, the sources of their inputs, and the names of their outputs.

Mostly this is a single node. Several nodes are a graph: in sequence, side by side, or with shared weights. Every output
that another node needs is a graph output too, so each node is judged by its actual inputs, as the target itself
reported them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Node

Array = NDArray[Any]
Arrays = Mapping[str, Array]

MOVES = ("Identity", "Reshape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that move numbers without changing them."""


class Move(Struct, frozen=True):
    """Operator between two nodes that changes no number.

    axes
        For Transpose the permutation, for Reshape the shape (0: unchanged, -1: the rest), for Gather the one axis whose
        last entry is picked, for the others the axes. None if the model has none.
    """

    op_type: str
    axes: tuple[int, ...] | None = None

    def __call__(self, array: Array) -> Array:
        """Return the moved numbers. Raise ValueError if they cannot have that shape."""
        if self.op_type == "Transpose":
            return array.transpose(self.axes)
        if self.op_type == "Reshape":
            assert self.axes is not None
            return array.reshape([array.shape[k] if size == 0 else size for k, size in enumerate(self.axes)])
        if self.op_type == "Squeeze":
            return array.squeeze(self.axes)
        if self.op_type == "Gather":
            assert self.axes is not None
            last: Array = np.take(array, -1, axis=self.axes[0])
            return last
        return array if self.op_type == "Identity" else np.expand_dims(array, self.axes or ())


class Source(Struct, frozen=True):
    """Source of an input of a node.

    tensor
        Name of a graph input, an initializer or a graph output.
    moves
        The moves between tensor and input, in order.
    """

    tensor: str
    moves: tuple[Move, ...] = ()

    def of(self, tensors: Arrays) -> Array:
        """Return the input, from tensors by name in the graph. Raise KeyError for a missing one."""
        array = tensors[self.tensor]
        for move in self.moves:
            array = move(array)
        return array


class Bound(Struct, frozen=True):
    """Node in its graph.

    name
        Empty for a single node.
    inputs
        Sources by formal name; None for a single node whose tensors have their formal names.
    outputs
        Names in the graph by formal name; None for such a single node.
    """

    name: str
    node: Node
    inputs: Mapping[str, Source] | None = None
    outputs: Mapping[str, str] | None = None

    def inputs_from(self, tensors: Arrays) -> dict[str, Array]:
        """Return all inputs by formal name. Raise KeyError for a missing tensor."""
        if self.inputs is None:
            return dict(tensors)
        return {formal: source.of(tensors) for formal, source in self.inputs.items()}

    def fed_from(self, fed: Arrays) -> dict[str, Array]:
        """Return the inputs, by formal name, that are graph inputs without moves."""
        sources = (self.inputs or {}).items()
        return {formal: fed[s.tensor] for formal, s in sources if not s.moves and s.tensor in fed}

    def called(self, output: str) -> str:
        """Return the name in the graph of an output, by formal name."""
        return output if self.outputs is None else self.outputs[output]

    def origin(self, formal: str) -> str:
        """Return the graph tensor from which an input comes."""
        source = (self.inputs or {}).get(formal)
        return formal if source is None else source.tensor

    def is_given(self, tensors: Arrays) -> bool:
        """Return whether all inputs come from these tensors."""
        return self.inputs is None or all(source.tensor in tensors for source in self.inputs.values())


@dataclass(frozen=True)
class Subject:
    """The nodes of a session, each after the nodes that it gets inputs from.

    shown
        Names of the graph's outputs in the graph's order.
    """

    nodes: tuple[Bound, ...]
    shown: tuple[str, ...]

    @staticmethod
    def lone(node: Node) -> Subject:
        """Return the subject of a single node, whose tensors have their formal names."""
        return Subject((Bound("", node),), node.outputs)

    @property
    def is_lone(self) -> bool:
        return len(self.nodes) == 1 and self.nodes[0].inputs is None

    def named(self, name: str) -> Bound:
        """Return the node of that name. Raise KeyError."""
        for bound in self.nodes:
            if bound.name == name:
                return bound
        raise KeyError(name)

    def answered(self, inputs: Arrays, answer: Callable[[Bound, dict[str, Array]], Arrays]) -> dict[str, Array]:
        """Return all tensors of the graph, computed from its inputs and each node's outputs by formal name."""
        tensors = dict(inputs)
        for bound in self.nodes:
            outputs = answer(bound, bound.inputs_from(tensors))
            tensors |= {bound.called(name): array for name, array in outputs.items()}
        return tensors

    def showing(self, bound: Bound) -> Node:
        """Return a node with only those of its outputs that the graph returns."""
        if bound.outputs is None:
            return bound.node
        names = bound.outputs
        return replace(bound.node, outputs=tuple(o for o in bound.node.outputs if names.get(o) in self.shown))
