"""The axes of X and of states, and states that have them in the order of the other layout."""

from __future__ import annotations

from collections.abc import Mapping

from ..models.tensor_type import Dimension
from .sizes import in_words
from .subject import NodeSubject


def batch_of(subject: NodeSubject) -> Dimension:
    """Return the extent of the batch axis of X, None where it or the layout is not known."""
    X, layout = subject.inputs.get("X"), subject.chosen("layout") or 0
    known = X is not None and X.shape is not None and len(X.shape) == 3 and layout in (0, 1)
    return X.shape[1 - layout] if known else None  # type: ignore[union-attr, index]


def swapped_states(subject: NodeSubject) -> Mapping[str, str]:
    """Return a message for each state whose first two axes are swapped, by X and the number of directions in W."""
    batch, W, layout = batch_of(subject), subject.inputs.get("W"), subject.chosen("layout") or 0
    if batch is None or W is None or not W.shape or W.shape[0] in (None, batch):
        return {}
    swapped = (W.shape[0], batch) if layout == 1 else (batch, W.shape[0])
    messages = {}
    for name, given in subject.inputs.items():
        form = subject.operator.tensors.get(name)
        shape = given.shape or ()
        if name.startswith("initial_") and form is not None and len(shape) == 3 and shape[:2] == swapped:
            printed = f"[{', '.join(map(str, form.shape(layout)))}]"
            where = f" in layout {layout}" if "layout" in subject.operator.attributes else ""
            messages[name] = f"the first two axes of {name} {in_words(shape)} are swapped: {printed}{where}"
    return messages
