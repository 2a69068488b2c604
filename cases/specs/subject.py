"""Subjects: the nodes that a session is about, what gives each of their inputs, and where each output is seen.

Mostly that is a lone node. Several are a graph: one behind another, side by side, or with weights that they share.
Every output that another node needs is an output of the graph too, so that each node is judged from the numbers that it
really got, those that the target itself reported.
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
"""Operators that move numbers and change none."""


class Move(Struct, frozen=True):
    """An operator that stands between two nodes and changes no number.

    axes
        Of Transpose the permutation, of Reshape the shape (0: as it was, -1: the rest), of Gather the one axis whose
        last place is picked, of the others the axes. None where the model gives none.
    """

    op_type: str
    axes: tuple[int, ...] | None = None

    def __call__(self, array: Array) -> Array:
        """The numbers as they come out. Raises ValueError where they cannot have that shape."""
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
    """The source of an input of a node.

    tensor
        Name of a graph input, an initializer or a graph output.
    moves
        What it goes through on its way, in order.
    """

    tensor: str
    moves: tuple[Move, ...] = ()

    def of(self, tensors: Arrays) -> Array:
        """The input, from tensors by name in the graph. Raises KeyError for one that is not there."""
        array = tensors[self.tensor]
        for move in self.moves:
            array = move(array)
        return array


class Bound(Struct, frozen=True):
    """A node in its graph.

    name
        Empty for a lone node, which needs none.
    inputs
        By formal name where it comes from; None for a lone node whose tensors are called as its document calls them.
    outputs
        By formal name what each is called in the graph; None for such a lone node.
    """

    name: str
    node: Node
    inputs: Mapping[str, Source] | None = None
    outputs: Mapping[str, str] | None = None

    def inputs_from(self, tensors: Arrays) -> dict[str, Array]:
        """All inputs by formal name. Raises KeyError where a tensor is not there."""
        if self.inputs is None:
            return dict(tensors)
        return {formal: source.of(tensors) for formal, source in self.inputs.items()}

    def fed_from(self, fed: Arrays) -> dict[str, Array]:
        """Inputs, by formal name, that are graph inputs as they are."""
        sources = (self.inputs or {}).items()
        return {formal: fed[s.tensor] for formal, s in sources if not s.moves and s.tensor in fed}

    def called(self, output: str) -> str:
        """The name of an output, by formal name, in the graph."""
        return output if self.outputs is None else self.outputs[output]

    def origin(self, formal: str) -> str:
        """The tensor in the graph that an input comes from."""
        source = (self.inputs or {}).get(formal)
        return formal if source is None else source.tensor

    def is_given(self, tensors: Arrays) -> bool:
        """Tell whether all inputs come from these tensors."""
        return self.inputs is None or all(source.tensor in tensors for source in self.inputs.values())


@dataclass(frozen=True)
class Subject:
    """The nodes of a session, each behind those that it gets numbers from.

    shown
        Names of the graph's outputs in the graph's order.
    """

    nodes: tuple[Bound, ...]
    shown: tuple[str, ...]

    @staticmethod
    def lone(node: Node) -> Subject:
        """A node alone, its tensors called as its document calls them."""
        return Subject((Bound("", node),), node.outputs)

    @property
    def is_lone(self) -> bool:
        return len(self.nodes) == 1 and self.nodes[0].inputs is None

    def named(self, name: str) -> Bound:
        """The node of that name. Raises KeyError."""
        for bound in self.nodes:
            if bound.name == name:
                return bound
        raise KeyError(name)

    def answered(self, inputs: Arrays, answer: Callable[[Bound, dict[str, Array]], Arrays]) -> dict[str, Array]:
        """All tensors of the graph, from its inputs and what each node answers to its own, by formal name."""
        tensors = dict(inputs)
        for bound in self.nodes:
            outputs = answer(bound, bound.inputs_from(tensors))
            tensors |= {bound.called(name): array for name, array in outputs.items()}
        return tensors

    def showing(self, bound: Bound) -> Node:
        """A node with those of its outputs alone that the graph shows."""
        if bound.outputs is None:
            return bound.node
        names = bound.outputs
        return replace(bound.node, outputs=tuple(o for o in bound.node.outputs if names.get(o) in self.shown))
