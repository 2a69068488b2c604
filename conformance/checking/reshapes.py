"""Reshape and Expand nodes around a recurrent node that fix, or merge, sizes which the model's inputs leave open."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

from ..models.scope import Scope, domain_of
from ..models.tensor_type import Dimension
from .layouts import sequence_axes
from .operators import operator_judged, version_of
from .subject import Input, NodeSubject

_MOST_NODES = 1000
"""Limit of the nodes that one search through the graph visits."""


@dataclass(frozen=True)
class Reshaped:
    """A Reshape or Expand, its input and output shapes, and the open sizes that it fixes or merges."""

    scope: Scope
    number: int
    before: tuple[Dimension, ...]
    after: tuple[Dimension, ...]
    fixed: frozenset[str]
    merged: frozenset[str]


def is_named(extent: object) -> bool:
    """Return whether the model's inputs leave an extent open; names made up by shape inference do not count."""
    return isinstance(extent, str) and not extent.startswith("unk__")


def is_batch_name(extent: object) -> bool:
    """Return whether the name of an open extent contains "batch"."""
    return is_named(extent) and "batch" in str(extent).lower()


def reshaped_before(X: Input, extents: Set[int]) -> Iterator[Reshaped]:
    """Yield the nodes in front of X, up to other recurrent nodes, that fix or merge open sizes.

    extents
        Sizes of X that are fixed: tensors without any of them are not followed.
    """
    pending, seen = [(X.scope, X.given)], set[tuple[int, int]]()
    while pending and len(seen) < _MOST_NODES:
        scope, name = pending.pop()
        shape, producer = scope.type_of(name).shape, scope.producer_of(name)
        if producer is None or (shape is not None and not extents & set(shape)):
            continue
        scope, number = producer
        node = scope.nodes[number]
        if (id(scope), number) in seen or operator_judged(node):
            continue
        seen.add((id(scope), number))
        if (reshaped := _reshaped(scope, number)) is not None:
            yield reshaped
        pending += [(scope, name) for name in node.input if name]


def reshaped_behind(subject: NodeSubject) -> Iterator[tuple[str, Reshaped]]:
    """Yield the nodes behind a node, with its output, that fix open sizes and lead to no other recurrent node."""
    for formal, name in zip(subject.operator.outputs, subject.outputs, strict=False):
        for number in _nodes_behind(subject.scope, name):
            reshaped = _reshaped(subject.scope, number)
            if reshaped is not None and reshaped.fixed:
                behind = _nodes_behind(subject.scope, subject.scope.nodes[number].output[0])
                if not any(operator_judged(subject.scope.nodes[later]) for later in behind):
                    yield formal, reshaped
                break


def _nodes_behind(scope: Scope, name: str) -> Iterator[int]:
    """Yield the numbers of the nodes that depend on a name, up to and including recurrent ones."""
    pending, seen = [name], set[int]()
    while pending and len(seen) < _MOST_NODES:
        for number in scope.consumers.get(pending.pop(), ()):
            if number not in seen:
                seen.add(number)
                yield number
                if operator_judged(scope.nodes[number]) is None:
                    pending += [output for output in scope.nodes[number].output if output]


def _reshaped(scope: Scope, number: int) -> Reshaped | None:
    """Return the effect of a Reshape or Expand on open sizes; None for other nodes, and without an effect."""
    node = scope.nodes[number]
    if node.op_type not in ("Reshape", "Expand") or domain_of(node.domain) or not (node.input and node.output):
        return None
    into, out = scope.type_of(node.input[0]), scope.type_of(node.output[0])
    if into.shape is None or out.shape is None or not (into.certain and out.certain):
        return None
    fixed, merged = (_by_expand if node.op_type == "Expand" else _by_reshape)(into.shape, out.shape)
    if merged:
        merged &= _batches(scope)
    return Reshaped(scope, number, into.shape, out.shape, fixed, merged) if fixed or merged else None


_Sizes = frozenset[str]


def _by_expand(into: tuple[Dimension, ...], out: tuple[Dimension, ...]) -> tuple[_Sizes, _Sizes]:
    pairs = zip(reversed(into), reversed(out), strict=False)
    return frozenset(str(i) for i, o in pairs if is_named(i) and isinstance(o, int)), frozenset()


def _by_reshape(into: tuple[Dimension, ...], out: tuple[Dimension, ...]) -> tuple[_Sizes, _Sizes]:
    """Return the open sizes for which only some values fit, and those that are merged with others.

    Both shapes have the same number of elements. If every output extent is known, the product of the open sizes that
    are not among them is fixed. If one is unknown, it holds all remaining elements.
    """
    left = Counter(e for e in into if not isinstance(e, int))
    left -= Counter(str(e) for e in out if is_named(e))
    named = frozenset(str(e) for e in left if is_named(e))
    unknown = sum(not isinstance(e, int) and not is_named(e) for e in out)
    if unknown == 0:
        return named, frozenset()
    before, after = (math.prod(e for e in shape if isinstance(e, int)) for shape in (into, out))
    if unknown > 1 or not before or not after:
        return frozenset(), frozenset()
    if len(left) == len(named) and before % after:
        return named, frozenset()
    return frozenset(), named if left.total() > 1 or before != after else frozenset()


def _batches(scope: Scope) -> frozenset[str]:
    """Return the open sizes that are batches: by their name, or because a recurrent node uses them as one."""
    symbols = set()
    for node in scope.nodes:
        version = version_of(scope, node)
        if version is not None and node.input:
            axes = sequence_axes(version.tensors, next((a.i for a in node.attribute if a.name == "layout"), 0))
            shape = scope.type_of(node.input[0]).shape
            if axes is not None and shape is not None and len(shape) == 3:
                symbols.add(shape[axes[1]])
    declared = {d.dim_param for value in scope.declared.values() for d in value.type.tensor_type.shape.dim}
    return frozenset(str(s) for s in symbols if is_named(s)) | {s for s in declared if is_batch_name(s)}
