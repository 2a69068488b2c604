"""Sizes of the example with which a model was traced, fixed in the model although its inputs leave them open."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Set
from dataclasses import dataclass

from ...reference.documents.tensors import sizes_known
from ..models.content import NotConstant
from ..models.scope import Scope, domain_of
from ..models.tensor_type import Dimension, type_from
from ..text import listed
from .general import shapes_of
from .sizes import fits, in_words, is_named, printed_extents, swapped_states
from .subject import Broken, Input, NodeSubject, operator_judged, subject_at

_MOST_NODES = 1000
"""Limit of the nodes that one search through the graph visits."""


@dataclass(frozen=True)
class Reshaped:
    """Effect of a Reshape or Expand in words, and the open sizes that it fixes or merges."""

    words: str
    fixed: frozenset[str]
    merged: frozenset[str]


def is_batch_name(extent: object) -> bool:
    """Return whether the name of an open extent contains "batch"."""
    return is_named(extent) and "batch" in str(extent).lower()


def reshaped_before(X: Input, extents: Set[Dimension]) -> Iterator[Reshaped]:
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
    words = f"{node.op_type} {scope.path_of(number)} makes {in_words(out.shape)} of {in_words(into.shape)}"
    return Reshaped(words, fixed, merged) if fixed or merged else None


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
    subjects = filter(None, (subject_at(scope, number) for number in range(len(scope.nodes))))
    symbols = {subject.sequence[1] for subject in subjects}
    declared = {d.dim_param for value in scope.declared.values() for d in value.type.tensor_type.shape.dim}
    return frozenset(str(s) for s in symbols if is_named(s)) | {s for s in declared if is_batch_name(s)}


def fixed_sizes(subject: NodeSubject) -> Iterator[Broken]:
    """Yield the sizes around a node that are fixed while the model's inputs leave them open, and outdated ones."""
    yield from _stale_claims(subject)
    steps, batch = subject.sequence
    if steps is None and batch is None:
        return
    swapped = swapped_states(subject)
    for name, message in swapped.items():
        if is_named(batch):
            advice = f"Swap the first two axes of {name}, and read those of the last states in the same order."
            yield Broken("model.batch-fixed", f"{message}. As it is, only a batch of one fits", advice=advice)
    for name, state in subject.inputs.items():
        if name in swapped or not (name == "sequence_lens" or name.startswith("initial_")) or state.shape is None:
            continue
        axis = 0 if name == "sequence_lens" else 1 - subject.layout
        extent = state.shape[axis] if axis < len(state.shape) else None
        if is_named(batch) and isinstance(extent, int):
            message = f"{name} is for a batch of {extent}, while the batch size of X is open ({batch})"
            yield Broken("model.batch-fixed", message)
    yield from _lengths(subject, steps)
    yield from _around(subject, batch, steps)


def _lengths(subject: NodeSubject, steps: Dimension) -> Iterator[Broken]:
    if not is_named(steps) or "sequence_lens" not in subject.inputs:
        return
    try:
        lengths = subject.lengths()
    except NotConstant:
        return
    if lengths is not None:
        least, most = lengths
        length = str(least) if least == most else f"{least} to {most}"
        message = f"sequence_lens is always {length}, while the seq_length of X is open ({steps})"
        yield Broken("model.time-frozen", message)


def _around(subject: NodeSubject, batch: Dimension, steps: Dimension) -> Iterator[Broken]:
    """Yield sizes that a Reshape or Expand in front of X or behind the node fixes, and batches that become time."""
    in_text = {f"{steps} steps": steps, f"a batch of {batch}": batch}
    sizes = {text: size for text, size in in_text.items() if isinstance(size, int)}
    for reshaped in reshaped_before(subject.inputs["X"], {*sizes.values()}):
        if reshaped.fixed:
            left_open = f"the model leaves {listed(sorted(reshaped.fixed))} open"
            message = f"X always has {' and '.join(sizes)}: {reshaped.words}, while {left_open}"
            yield Broken("model.shape-fixed", message)
            break
        if reshaped.merged and isinstance(batch, int):
            rows = f"rows of {listed(sorted(reshaped.merged))} become one sequence"
            yield Broken("model.batch-in-time", f"X always has a batch of {batch}: {reshaped.words}, so {rows}")
            break
    if is_batch_name(steps) and not is_batch_name(batch):
        message = (
            f"the time axis of X is called {steps}: if it is a batch, its rows are computed as steps of one sequence"
        )
        yield Broken("model.batch-in-time", message)
    for formal, reshaped in reshaped_behind(subject):
        if reshaped.fixed & {steps, batch}:
            left_open = f"the model leaves {listed(sorted(reshaped.fixed))} open"
            message = f"{formal} is used with fixed sizes: {reshaped.words}, while {left_open}"
            yield Broken("model.shape-fixed", message)


def _stale_claims(subject: NodeSubject) -> Iterator[Broken]:
    """Yield the contradictions between the declared shapes of a node's outputs and the shapes of its inputs."""
    formal = shapes_of(subject)
    certain = {name: shape for name, shape in formal.items() if name in subject.inputs}
    certain = {name: shape for name, shape in certain.items() if subject.inputs[name].type.certain}
    sizes = sizes_known(printed_extents(subject, certain), {})
    for name, output in zip(subject.operator.outputs, subject.outputs, strict=False):
        claims, form = subject.scope.claims, subject.operator.tensors.get(name)
        claimed = type_from(claims[output], False).shape if output in claims else None
        if claimed is None or form is None:
            continue
        layout = subject.layout
        printed = (form.shape(layout),) if layout == 1 or len(form.shapes) == 1 else form.shapes
        if not any(fits(claimed, shape, sizes) for shape in printed):
            follows = in_words(tuple(extent.known(sizes) for extent in printed[0]))
            has = f"by its inputs it has {follows}, [{', '.join(map(str, printed[0]))}]"
            message = f"the file declares {in_words(claimed)} as the shape of {name}, while {has}"
            yield Broken("model.sizes-claimed", message)
