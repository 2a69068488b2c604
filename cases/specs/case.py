"""Cases ready to run: models, their nodes and inputs of any operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Node, open_questions_of, resolve
from ..axes.violation import Violation

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


class Spec(Protocol):
    """Case as a small immutable value, from which its models and inputs are rebuilt bit for bit.

    id
        Stable, readable, a safe file name; it begins with the operator's name in small letters and its version.
    node
        Of an invalid model, the node before the violation.
    illegal
        Id of the violation by which the model breaks its document; empty for a valid one.
    size
        Sort key for simplicity: smaller is simpler.
    graded
        Whether it tests accuracy only, so that its errors count for a target's bias.
    spoils
        Whether an implementation without checks may corrupt its memory with it: it is run last.
    shows_pattern
        Whether it has a Y with several steps and units, so that a picture is informative.
    """

    @property
    def id(self) -> str: ...
    @property
    def op(self) -> str: ...
    @property
    def version(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def node(self) -> Node: ...
    @property
    def illegal(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def size(self) -> tuple[float, int]: ...
    @property
    def graded(self) -> bool: ...
    @property
    def spoils(self) -> bool: ...
    @property
    def shows_pattern(self) -> bool: ...

    def __hash__(self) -> int:
        """Return the hash of the value."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as plain values."""


@dataclass(frozen=True)
class Feed:
    """One run of a session.

    inputs
        All inputs by formal name for a single node; for a graph of nodes, all its inputs and constants by their names.
    fed
        The inputs that are graph inputs.
    """

    inputs: Mapping[str, NDArray[Any]]
    fed: Mapping[str, NDArray[Any]]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain dictionaries, because read-only views cannot be pickled."""
        return Feed, (dict(self.inputs), dict(self.fed))


ABILITIES = {
    "weights": "weights that are fed and change between runs",
    "held": "outputs that are held while the session runs again",
    "several": "sessions of different weights at the same time",
    "many": "many runs of one session",
    "refusals": "a run after one that was refused",
    "sizes": "runs whose sizes go up, down and up again",
}
"""Descriptions of the abilities that a worker may report for its sessions, by their names in the protocol."""


class Step(NamedTuple):
    """One step of a course.

    does
        ``run``: run feed `number` in session `session`. ``try``: run attempt `number` there, which may be refused.
        ``look``: read the outputs of the earlier step `number` again.
    """

    does: Literal["run", "try", "look"]
    session: int
    number: int


class Course(Struct, frozen=True, dict=True):
    """Steps of a case's sessions, and their requirements in addition to model and feeds.

    needs
        Abilities of a worker without which the case is not tried.
    models
        Models of further sessions 1, 2, ...; the case's own model is session 0. They are the same node with other
        weights. Each is prepared at its first step, and lives until the end.
    attempts
        Feeds by the names of graph inputs that may be refused; their results are ignored.
    """

    needs: frozenset[str]
    steps: tuple[Step, ...]
    models: tuple[bytes, ...] = ()
    attempts: tuple[Mapping[str, NDArray[Any]], ...] = ()

    @cached_property
    def runs(self) -> Counter[int]:
        """Number of times that each feed is run."""
        return Counter(step.number for step in self.steps if step.does == "run")


@dataclass(frozen=True)
class Trial:
    """One session of a case: a model, its node, and its runs in order.

    node
        The single node, or the first of a graph of nodes.
    graded
        Whether it tests accuracy only, one step from exact states: its errors count for a target's grade and bias.
    violation
        The violation of an invalid model; None for a valid one. The node of an invalid model is unchecked: creating it
        anew, or configuring it with its inputs, raises IllegalNode.
    alone
        Whether it runs in its own process, because it may corrupt an implementation's memory.
    graph
        The nodes and their connections, the first being `node`; None for a single node.
    course
        The steps of its sessions; None if one session runs the feeds in turn. The inputs of a feed that runs in a
        further session have that session's weights.
    """

    key: str
    model: bytes
    node: Node
    feeds: tuple[Feed, ...]
    graded: bool = False
    violation: Violation | None = None
    alone: bool = False
    graph: Subject | None = None
    course: Course | None = None

    @property
    def subject(self) -> Subject:
        return self.graph or Subject.lone(self.node)

    @cached_property
    def first(self) -> Trial:
        """The trial of its first node as a single node; the first node gets no input from another one."""
        if self.graph is None:
            return self
        bound = self.graph.nodes[0]
        feeds = tuple(Feed(bound.inputs_from(f.inputs), bound.fed_from(f.fed)) for f in self.feeds)
        return replace(self, node=self.graph.showing(bound), feeds=feeds, graph=None)

    @cached_property
    def open_questions(self) -> frozenset[str]:
        """The interpretations on which some runs of its first node depend."""
        first = self.first
        return frozenset().union(*(open_questions_of(first.node, feed.inputs) for feed in first.feeds))

    @cached_property
    def type(self) -> str:
        """Name of its tensors' type. Raise IllegalNode for an invalid trial."""
        return resolve(self.first.node, self.first.feeds[0].inputs).format.name


@dataclass(frozen=True)
class Case:
    """Sessions of a case: its own and, if it does not ask for Y, its companion with all outputs.

    Outputs must not depend on which of them are requested, and every step can only be judged if Y is reported.

    The companion of an invalid model is the same model without its violation: a refusal proves something only if the
    companion runs.
    """

    spec: Spec
    trial: Trial
    companion: Trial | None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Its own session, and the companion if there is one."""
        return (self.trial,) if self.companion is None else (self.trial, self.companion)

    def changed(self, change: Callable[[Trial], Trial]) -> Case:
        """Return the case with each of its sessions changed."""
        return Case(self.spec, change(self.trial), None if self.companion is None else change(self.companion))
