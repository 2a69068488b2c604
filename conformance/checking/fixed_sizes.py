"""Sizes of the example with which a model was traced, fixed in the model although its inputs leave them open."""

from __future__ import annotations

from collections.abc import Iterator

from ..models.folding import NotConstant
from ..models.scope import domain_of, shown_name
from ..models.tensor_type import Dimension, type_from
from ..text import listed
from .general import layout_of, shapes_of
from .layouts import sequence_axes, swapped_states
from .reshapes import Reshaped, is_batch_name, is_named, reshaped_before, reshaped_behind
from .rule import BATCH_FIXED, BATCH_IN_TIME, SHAPE_FIXED, SIZES_CLAIMED, TIME_FROZEN
from .sizes import fits, in_words, sizes_known, value_of
from .subject import Broken, Input, NodeSubject

_MOVES = ("Slice", "Split", "Gather", "Squeeze", "Unsqueeze", "Transpose", "Reshape", "Identity", "Cast")
"""Operators through which exporters derive a state from an input of the model."""

_LONGEST_WAY = 100


def fixed_sizes(subject: NodeSubject) -> Iterator[Broken]:
    """Yield the sizes around a node that are fixed while the model's inputs leave them open, and outdated ones."""
    yield from _stale_claims(subject)
    X, layout = subject.inputs.get("X"), layout_of(subject)
    axes = sequence_axes(subject.operator.tensors, layout)
    if axes is None or X is None or X.shape is None or len(X.shape) != 3:
        return
    steps, batch = (X.shape[axis] for axis in axes)
    swapped = swapped_states(subject)
    for name, message in swapped.items():
        if is_named(batch):
            advice = f"Swap the first two axes of {name}, and read those of the last states in the same order."
            yield Broken(BATCH_FIXED, f"{message}. As it is, only a batch of one fits", advice=advice)
    for name, state in subject.inputs.items():
        if name in swapped or not (name == "sequence_lens" or name.startswith("initial_")) or state.shape is None:
            continue
        axis = 0 if name == "sequence_lens" else 1 - layout
        extent = state.shape[axis] if axis < len(state.shape) else None
        if is_named(batch) and isinstance(extent, int):
            message = f"{name} is for a batch of {extent}, while the batch size of X is open ({batch})"
            yield Broken(BATCH_FIXED, message, advice=_advice_on_state(state))
    yield from _lengths(subject, steps)
    yield from _around(subject, X, batch, steps)


def _advice_on_state(given: Input) -> str:
    """Return the advice on a state that is already an input of the model; empty for others."""
    scope, name = given.scope, given.given
    for _ in range(_LONGEST_WAY):
        producer = scope.producer_of(name)
        if producer is None:
            break
        scope, node = producer[0], producer[0].nodes[producer[1]]
        if node.op_type not in _MOVES or domain_of(node.domain) or not node.input:
            return ""
        name = node.input[0]
    origin = scope.origin_of(name)
    if origin is None or origin[0].owner is not None or origin[1] not in origin[0].declared:
        return ""
    if origin[1] in origin[0].initializers:
        return ""
    return f"Export with the batch axis of the model's input {shown_name(origin[1])} dynamic, as that of X is."


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
        yield Broken(TIME_FROZEN, message)


def _around(subject: NodeSubject, X: Input, batch: Dimension, steps: Dimension) -> Iterator[Broken]:
    """Yield sizes that a Reshape or Expand in front of X or behind the node fixes, and batches that become time."""
    fixed = {f"{steps} steps": steps, f"a batch of {batch}": batch}
    fixed = {text: extent for text, extent in fixed.items() if isinstance(extent, int)}
    for reshaped in reshaped_before(X, {extent for extent in fixed.values() if isinstance(extent, int)}):
        if reshaped.fixed:
            left_open = f"the model leaves {listed(sorted(reshaped.fixed))} open"
            yield Broken(SHAPE_FIXED, f"X always has {' and '.join(fixed)}: {_words(reshaped)}, while {left_open}")
            break
        if reshaped.merged and isinstance(batch, int):
            rows = f"rows of {listed(sorted(reshaped.merged))} become one sequence"
            yield Broken(BATCH_IN_TIME, f"X always has a batch of {batch}: {_words(reshaped)}, so {rows}")
            break
    if is_batch_name(steps) and not is_batch_name(batch):
        message = (
            f"the time axis of X is called {steps}: if it is a batch, its rows are computed as steps of one sequence"
        )
        yield Broken(BATCH_IN_TIME, message)
    for formal, reshaped in reshaped_behind(subject):
        if reshaped.fixed & {steps, batch}:
            left_open = f"the model leaves {listed(sorted(reshaped.fixed))} open"
            yield Broken(SHAPE_FIXED, f"{formal} is used with fixed sizes: {_words(reshaped)}, while {left_open}")


def _words(reshaped: Reshaped) -> str:
    op_type, path = reshaped.scope.nodes[reshaped.number].op_type, reshaped.scope.path_of(reshaped.number)
    return f"{op_type} {path} makes {in_words(reshaped.after)} of {in_words(reshaped.before)}"


def _stale_claims(subject: NodeSubject) -> Iterator[Broken]:
    """Yield the contradictions between the declared shapes of a node's outputs and the shapes of its inputs."""
    formal = shapes_of(subject)
    certain = {name: shape for name, shape in formal.items() if name in subject.inputs}
    certain = {name: shape for name, shape in certain.items() if subject.inputs[name].type.certain}
    sizes = sizes_known(subject, certain)
    for name, output in zip(subject.operator.outputs, subject.outputs, strict=False):
        claims, form = subject.scope.claims, subject.operator.tensors.get(name)
        claimed = type_from(claims[output], False).shape if output in claims else None
        if claimed is None or form is None:
            continue
        layout = layout_of(subject)
        printed = (form.shape(layout),) if layout == 1 or len(form.shapes) == 1 else form.shapes
        if not any(fits(claimed, shape, sizes) for shape in printed):
            follows = in_words(tuple(value_of(extent, sizes) for extent in printed[0]))
            has = f"by its inputs it has {follows}, [{', '.join(map(str, printed[0]))}]"
            message = f"the file declares {in_words(claimed)} as the shape of {name}, while {has}"
            yield Broken(SIZES_CLAIMED, message)
