"""The axes of X and of states, and states whose axes are in the order of the other layout."""

from __future__ import annotations

from collections.abc import Mapping

from ...reference.documents.tensors import SEQ_LENGTH, Extent, TensorForm
from ..models.tensor_type import Dimension
from .sizes import in_words
from .subject import NodeSubject


def sequence_axes(forms: Mapping[str, TensorForm], layout: int) -> tuple[int, int] | None:
    """Return the axes of steps and of rows in X; None for an operator without such an input."""
    shape = forms["X"].shape(layout) if "X" in forms else ()
    steps, rows = Extent(SEQ_LENGTH), Extent("batch_size")
    return (shape.index(steps), shape.index(rows)) if steps in shape and rows in shape else None


def batch_of(subject: NodeSubject) -> Dimension:
    """Return the extent of the batch axis of X; None if it or the layout is unknown."""
    X, layout = subject.inputs.get("X"), subject.chosen("layout") or 0
    axes = sequence_axes(subject.operator.tensors, layout) if layout in (0, 1) else None
    if axes is None or X is None or X.shape is None or len(X.shape) != 3:
        return None
    return X.shape[axes[1]]


def swapped_states(subject: NodeSubject) -> Mapping[str, str]:
    """Return a message for each state whose first two axes are swapped, by X and the number of directions in W."""
    batch, W, layout = batch_of(subject), subject.inputs.get("W"), subject.chosen("layout") or 0
    if batch is None or W is None or not W.shape or W.shape[0] in (None, batch):
        return {}
    swapped = (W.shape[0], batch) if layout == 1 else (batch, W.shape[0])
    messages = {}
    for name, state in subject.inputs.items():
        form = subject.operator.tensors.get(name)
        shape = state.shape or ()
        if name.startswith("initial_") and form is not None and len(shape) == 3 and shape[:2] == swapped:
            printed = f"[{', '.join(map(str, form.shape(layout)))}]"
            where = f" in layout {layout}" if "layout" in subject.operator.attributes else ""
            messages[name] = f"the first two axes of {name} {in_words(shape)} are swapped: {printed}{where}"
    return messages
