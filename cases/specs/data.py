"""The tensors of a case, phase by phase as its axes draw them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ..axes.axis import acting
from ..axes.tensors.draft import TensorDraft, gain
from .spec import RecurrentSpec


def inputs_of(spec: RecurrentSpec, run: int = 0) -> Mapping[str, NDArray[Any]]:
    """Return the inputs of a case by formal name, in its types. The arrays are read-only.

    run
        0 for the case's own inputs; other numbers for earlier runs of its session.
    """
    # Of a call without 0 and one with it the stores would keep two.
    return (_drawn if spec.elements > _SMALL else _drawn_small)(spec, run)


_SMALL = 4096
"""Elements up to which the inputs of a case are kept for as long as a run may ask for them: some tens of megabytes."""


@lru_cache(maxsize=256)  # cases are built that far ahead of their results, which ask again
def _drawn(spec: RecurrentSpec, run: int) -> Mapping[str, NDArray[Any]]:
    draft = TensorDraft(spec, run)
    axes = spec.axes
    for act in (*acting(axes, "resize"), *acting(axes, "scale")):
        act(spec, draft)
    draft.draw("X", draft.of_sequence, draft.of_x)
    draft.hold("W", (draft.D, draft.G * draft.H, draft.I), gain(draft.I) + draft.of_weights)
    draft.hold("R", (draft.D, draft.G * draft.H, draft.H), gain(draft.H) + draft.of_weights)
    for act in (*acting(axes, "tensors"), *acting(axes, "spoil")):
        act(spec, draft)
    for array in draft.inputs.values():
        array.setflags(write=False)
    return MappingProxyType(draft.inputs)


_drawn_small = lru_cache(maxsize=4096)(_drawn.__wrapped__)
