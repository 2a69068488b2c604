"""Cases ready to run: models and inputs of any operator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, Protocol

from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Node, open_questions_of, resolve
from ..axes.violation import Violation
from .subject import Subject


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
        """Its nodes and their connections."""
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
