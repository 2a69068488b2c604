"""A case made ready to run: models, inputs, and what its clauses and features are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from ..reference import Node
from .data import inputs_of
from .model import CONSTANTS, build_model
from .spec import CaseSpec

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
    """

    key: str
    model: bytes
    node: Node
    feeds: tuple[Feed, ...]
    graded: bool = False


@dataclass(frozen=True)
class Case:
    """A case's sessions: its own, and where it does not ask for Y, its twin with all outputs.

    Outputs must not depend on which of them are asked for, and only where Y is reported can every step be judged.
    """

    spec: CaseSpec
    trial: Trial
    twin: Trial | None


def build_case(spec: CaseSpec) -> Case:
    """The models and inputs of a case; the same bytes every time."""
    runs = [0] if spec.reruns == "none" else [1, 0]
    tensors = [inputs_of(spec, run) for run in runs]
    constant = set(CONSTANTS) if spec.weights == "initializer" else set()
    feeds = tuple(Feed(t, {n: a for n, a in t.items() if n not in constant}) for t in tensors)
    trial = Trial(spec.id, build_model(spec, tensors[-1]), spec.node, feeds, spec.data == "numerics")
    twin = None
    if "Y" not in spec.outputs:
        everything = spec.node.operator.outputs
        model = build_model(spec, tensors[-1], everything)
        twin = Trial(f"{spec.id}~twin", model, replace(spec.node, outputs=everything), feeds)
    return Case(spec, trial, twin)
