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
        Of an invalid model, before its violation.
    illegal
        Id of the violation by which the model breaks its document; empty for a valid one.
    size
        Smaller is simpler to look at.
    graded
        Whether it is about accuracy alone, so that its errors count for a target's bias.
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
        """Specs are values."""

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as plain values."""


@dataclass(frozen=True)
class Feed:
    """One run of a session.

    inputs
        All inputs of a lone node by formal name; of a graph of nodes all its inputs and constants by their names.
    fed
        Those of them that are graph inputs.
    """

    inputs: Mapping[str, NDArray[Any]]
    fed: Mapping[str, NDArray[Any]]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as plain dictionaries: views that cannot be written to are not."""
        return Feed, (dict(self.inputs), dict(self.fed))


ABILITIES = {
    "weights": "weights that are fed and change between runs",
    "held": "outputs that are held while the session runs again",
    "several": "sessions of different weights at the same time",
    "many": "many runs of one session",
    "refusals": "a run after one that was refused",
    "sizes": "runs whose sizes go up, down and up again",
}
"""Words that a worker may say that its sessions can do, by the word it uses in the protocol."""


class Step(NamedTuple):
    """One step of a course.

    does
        ``run`` feed `number` in session `session`; ``try`` attempt `number` there, which may be refused; ``look`` at
        the outputs of the earlier step `number` again.
    """

    does: Literal["run", "try", "look"]
    session: int
    number: int


class Course(Struct, frozen=True, dict=True):
    """Steps of a case's sessions, and their needs beside its model and feeds.

    needs
        Abilities of a worker without which it is not tried.
    models
        Those of further sessions: the case's own model is session 0, these are 1, 2, ... They are the same node with
        other weights. Each is prepared at its first step, and lives until the end.
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
        The one node, or the first of a graph of nodes.
    graded
        Whether it is about accuracy alone, one step from exact states: its errors count for a target's grade and bias.
    violation
        The violation of an invalid model; None for a valid one. The node of an invalid one has not been checked: making
        it anew, or configuring it with its inputs, raises IllegalNode.
    alone
        Whether it runs in a process of its own, since it may corrupt an implementation's memory.
    graph
        The nodes and their connections, the first being `node`; None for a lone node.
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
        """Its first node as if it were alone: that gets nothing from another one."""
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
        """Name of its tensors' type. Raises IllegalNode for an invalid one."""
        return resolve(self.first.node, self.first.feeds[0].inputs).format.name


@dataclass(frozen=True)
class Case:
    """A case's sessions: its own, and where it does not ask for Y, its companion with all outputs.

    Outputs must not depend on which of them are asked for, and only where Y is reported can every step be judged.

    The companion of a forbidden model is the same without its violation: to refuse the one shows something only where
    the other runs.
    """

    spec: Spec
    trial: Trial
    companion: Trial | None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Its sessions: its own, and the companion if there is one."""
        return (self.trial,) if self.companion is None else (self.trial, self.companion)

    def changed(self, change: Callable[[Trial], Trial]) -> Case:
        """Return the case with each of its sessions changed."""
        return Case(self.spec, change(self.trial), None if self.companion is None else change(self.companion))
