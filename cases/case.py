"""A case made ready to run: models, inputs, and what its clauses and features are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from ..reference import Node, readings_touched
from .data import inputs_of
from .illegal import break_case, violation_of
from .model import CONSTANTS, build_model
from .spec import CaseSpec
from .violations import Violation

__all__ = ["Case", "Feed", "Trial", "build_case"]


@dataclass(frozen=True)
class Feed:
    """One run of a session.

    inputs
        All inputs of the node by formal name.
    fed
        Those of them that are graph inputs.
    """

    inputs: Mapping[str, NDArray[Any]]
    fed: Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Trial:
    """One session of a case: a model, its node, and what it is run with, in order.

    graded
        Whether it is about accuracy alone, one step from exact states: its errors count for a target's grade and bias.
    violation
        What is forbidden about it; None for a legal model. The node of a forbidden one has not been checked: to make
        it anew raises IllegalNode, or to configure it with its inputs does.
    """

    key: str
    model: bytes
    node: Node
    feeds: tuple[Feed, ...]
    graded: bool = False
    violation: Violation | None = None

    @property
    def touched(self) -> frozenset[str]:
        """The readings on which some of its runs depend."""
        return frozenset().union(*(readings_touched(self.node, feed.inputs) for feed in self.feeds))


@dataclass(frozen=True)
class Case:
    """A case's sessions: its own, and where it does not ask for Y, its twin with all outputs.

    Outputs must not depend on which of them are asked for, and only where Y is reported can every step be judged.

    The twin of a forbidden model is the same without its violation: to refuse the one shows something only where the
    other runs.
    """

    spec: CaseSpec
    trial: Trial
    twin: Trial | None

    @property
    def trials(self) -> tuple[Trial, ...]:
        """Its sessions: its own, and the twin if there is one."""
        return (self.trial,) if self.twin is None else (self.trial, self.twin)


def build_case(spec: CaseSpec) -> Case:
    """The models and inputs of a case; the same bytes every time."""
    if spec.illegal:
        return _forbidden_case(spec)
    runs = [0] if spec.reruns == "none" else [1, 0]
    tensors = [inputs_of(spec, run) for run in runs]
    feeds = tuple(_feed(spec, t) for t in tensors)
    model = build_model(spec, spec.node, tensors[-1], spec.outputs)
    trial = Trial(spec.id, model, spec.node, feeds, spec.data == "numerics")
    twin = None
    if "Y" not in spec.outputs:
        everything = spec.node.operator.outputs
        model = build_model(spec, spec.node, tensors[-1], everything)
        twin = Trial(f"{spec.id}~twin", model, replace(spec.node, outputs=everything), feeds)
    return Case(spec, trial, twin)


def _feed(spec: CaseSpec, tensors: Mapping[str, NDArray[Any]]) -> Feed:
    constant = set(CONSTANTS) if spec.weights == "initializer" else set()
    return Feed(tensors, {name: array for name, array in tensors.items() if name not in constant})


def _forbidden_case(spec: CaseSpec) -> Case:
    """A forbidden model is run once: all that there is to see is whether it runs."""
    node, tensors = break_case(spec)
    model = build_model(spec, node, tensors, node.outputs)
    trial = Trial(spec.id, model, node, (_feed(spec, tensors),), violation=violation_of(spec))
    legal = build_case(replace(spec, illegal="")).trial
    return Case(spec, trial, replace(legal, key=f"{spec.id}~twin"))
