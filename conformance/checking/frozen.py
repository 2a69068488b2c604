"""Sizes that exporters freeze: those of the example that a model was traced with, beside an X that may have any."""

from __future__ import annotations

from collections.abc import Iterator

from ..models.folding import NotConstant
from ..models.tensor_type import Dimension
from .rule import BATCH_FIXED, TIME_FROZEN
from .subject import NodeSubject


def _named(extent: Dimension) -> bool:
    """Tell whether the model's own inputs leave an extent open; shape inference has names of its own for what it does
    not know."""
    return isinstance(extent, str) and not extent.startswith("unk__")


def frozen(subject: NodeSubject) -> Iterator[tuple[str, str]]:
    """Sizes that are fixed beside an X of open ones, as the rule's topic and what is wrong."""
    X, layout = subject.inputs.get("X"), subject.chosen("layout") or 0
    if X is None or X.shape is None or len(X.shape) != 3:
        return
    batch, steps = X.shape[1 - layout], X.shape[layout]
    for name, given in subject.inputs.items():
        axis = 0 if name == "sequence_lens" else 1 - layout
        if not (name == "sequence_lens" or name.startswith("initial_")) or given.shape is None:
            continue
        own = given.shape[axis] if axis < len(given.shape) else None
        if _named(batch) and isinstance(own, int):
            yield BATCH_FIXED, f"{name} is for a batch of {own}, while the batch size of X is open ({batch})"
    if _named(steps) and "sequence_lens" in subject.inputs:
        try:
            lengths = subject.lengths()
        except NotConstant:
            return
        if lengths is not None:
            least, most = lengths
            length = str(least) if least == most else f"{least} to {most}"
            yield TIME_FROZEN, f"sequence_lens is always {length}, while the seq_length of X is open ({steps})"
