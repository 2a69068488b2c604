"""A small node like one of a model. Its features, and whether it shows a fault, do not depend on sizes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import family_of
from ...cases.axes.generator import uniform
from ...reference import FORMATS, Fault, IllegalNode, Node, Operator
from ...reference.operators.asking import kill_margin
from ..models.content import NotConstant
from ..probes.probe import traits_of
from .general import shapes_of
from .subject import NodeSubject

_SIZES = {"seq_length": 3, "batch_size": 2, "input_size": 2, "hidden_size": 2, "num_directions": 1}
_OTHER_SIZE = 2

_OF_SIZES = frozenset({"size-one", "size-zero", "no-rows", "no-steps", "several-rows", "unsorted"})
_OF_SIZES |= frozenset({"falling-lengths", "first-row-longest", "zero-elements", "zero-tensor"})
"""Features that depend on sizes, and would describe only the sample."""


@dataclass(frozen=True)
class SampleNode:
    """A small node like one of a model, with its own numbers.

    operator
        The operator by its name here.
    element
        The type of its numbers in the model.
    """

    node: Node
    inputs: dict[str, NDArray[Any]]
    operator: str
    element: str

    @cached_property
    def features(self) -> frozenset[str]:
        """Features by which clauses select their cases; none for a node that violates its document."""
        try:
            return family_of(self.operator).node_features(self.node, self.inputs) - _OF_SIZES
        except (IllegalNode, KeyError, TypeError, ValueError):
            return frozenset()

    @property
    def traits(self) -> frozenset[str]:
        """Traits that a case of this node would have."""
        return traits_of(self.node, self.features, self.element)

    def shows(self, fault: Fault) -> bool:
        """Return whether a target with a fault is wrong on it; False if that is unknown."""
        if not fault.applies(self.node.op_type, self.node.since_version):
            return False
        try:
            return kill_margin(fault, self.node, [(self.inputs, self.inputs)], enough=1.0) > 1
        except (IllegalNode, KeyError, TypeError, ValueError):
            return False


def sample_node(subject: NodeSubject, operator: Operator) -> SampleNode | None:
    """Return a sample of a node that violates no rule; None if none can be made.

    It has the node's attributes and inputs and, if they are constant, the lengths.
    """
    version = subject.operator
    values = {name: subject.given(name) for name in subject.attributes}
    if values.get("hidden_size") is not None:
        values["hidden_size"] = _SIZES["hidden_size"]
    named = {extent.size for form in version.tensors.values() for shape in form.shapes for extent in shape}
    sizes = dict.fromkeys(named, _OTHER_SIZE) | _SIZES
    sizes |= {size: entry.value for size, entry in operator.stated_sizes(subject).items()}
    arrays: dict[str, NDArray[Any]] = {}
    formal = shapes_of(subject)
    for name, source in subject.inputs.items():
        shape = tuple(extent.value(sizes) for extent in formal[name])
        allowed = version.types_of(name)
        element = source.element if source.element in allowed else allowed[0]
        if element in FORMATS:
            form = FORMATS[element]
            arrays[name] = uniform(f"stand-in/{name}", shape, form.precision, 0).astype(form.dtype)
        else:
            arrays[name] = np.zeros(shape, element)
    if "sequence_lens" in arrays:
        arrays["sequence_lens"] = _lengths_like(subject)
    asked = [formal for formal, name in zip(version.outputs, subject.outputs, strict=False) if name]
    first = subject.inputs.get(version.sequence)
    try:
        node = Node(version.op_type, version.since_version, values, tuple(asked), version.domain)
    except (IllegalNode, KeyError, TypeError, ValueError):
        return None
    return SampleNode(node, arrays, operator.document.name, (first.element if first is not None else None) or "")


def _lengths_like(subject: NodeSubject) -> NDArray[np.int32]:
    """Return two lengths of at most three like the node's: short if the node's may be, zero if one of them is."""
    try:
        bounds = subject.lengths()
    except NotConstant:
        return np.array([3, 1], np.int32)
    if bounds is not None and bounds[0] == 0:
        return np.array([3, 0], np.int32)
    return np.array([3, 3 if bounds in (None, (subject.steps,) * 2) else 1], np.int32)
