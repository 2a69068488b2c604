"""A node that is like one of a model, with sizes of two: what it contains does not hang on sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases import family_of
from ...reference import IllegalNode, Node, Operator
from ..models.folding import NotConstant
from .general import shapes_of, steps_of
from .subject import Subject

__all__ = ["open_features"]

_SIZES = {"seq_length": 3, "batch_size": 2, "input_size": 2, "hidden_size": 2, "num_directions": 1}

_OF_SIZES = frozenset({"size-one", "size-zero", "no-rows", "no-steps", "several-rows", "unsorted"})
"""Features that would be those of the stand-in."""


def open_features(subject: Subject, operator: Operator) -> frozenset[str]:
    """The features by which the document's open clauses know their cases, of a node that breaks none.

    They come from the attributes, from what is given and, where they are constant, from the lengths.
    """
    version = subject.operator
    values = {name: subject.given(name) for name in subject.attributes}
    if values.get("hidden_size") is not None:
        values["hidden_size"] = _SIZES["hidden_size"]
    sizes = _SIZES | {size: said.value for size, said in operator.sizes_said(subject).items()}
    arrays: dict[str, NDArray[Any]] = {}
    formal = shapes_of(subject)
    for name, given in subject.inputs.items():
        shape = tuple(extent.times * sizes[extent.size] for extent in formal[name])
        allowed = version.types_of(name)
        # NumPy has no bfloat16: what a node contains is the same in float32.
        kind = given.element if given.element in allowed else allowed[0]
        arrays[name] = np.zeros(shape, np.float32 if version.kind_of(name) == "T" else kind)
    if "sequence_lens" in arrays:
        arrays["sequence_lens"] = _lengths_like(subject)
    asked = [formal for formal, name in zip(version.outputs, subject.outputs, strict=False) if name]
    try:
        node = Node(version.op_type, version.since_version, values, tuple(asked), version.domain)
        return family_of(operator.document.name).node_features(node, arrays) - _OF_SIZES
    except (IllegalNode, KeyError, TypeError, ValueError):
        return frozenset()


def _lengths_like(subject: Subject) -> NDArray[np.int32]:
    """Two lengths of at most three that are like the node's own: short if those are or may be, zero if one is."""
    steps = steps_of(subject)
    try:
        own = subject.lengths()
    except NotConstant:
        return np.array([3, 1], np.int32)
    if own is not None and own[0] == 0:
        return np.array([3, 0], np.int32)
    return np.array([3, 3 if own in (None, (steps, steps)) else 1], np.int32)
