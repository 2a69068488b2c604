"""A node with its inputs, as features are tested on it: one of a case, or one of a model that was made elsewhere."""

from __future__ import annotations

import itertools
from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import Configuration, Node


class Magnitudes(Struct, frozen=True):
    """The sizes of numbers, but for lengths, which are none of these.

    finite, infinite
        Whether all are finite, and whether one is infinite.
    largest
        The largest finite magnitude of each tensor.
    least
        The least magnitude of each tensor that has elements; NaN where one of them is.
    """

    finite: bool
    infinite: bool
    largest: Mapping[str, float]
    least: Mapping[str, float]


class Observed(Struct, frozen=True, dict=True):
    """Legal node with its inputs by formal name, and its configuration."""

    node: Node
    inputs: Mapping[str, NDArray[Any]]
    configuration: Configuration

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes that the node carries."""
        return self.node.attributes

    @cached_property
    def functions(self) -> frozenset[str]:
        """The names of the functions that it computes with."""
        return frozenset(function.name for own in self.configuration.activations for function in own)

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """The sizes of its numbers."""
        finite, infinite, largest, least = True, False, {}, {}
        for name, array in self.inputs.items():
            if name == "sequence_lens":
                continue
            numbers = np.abs(array.astype(np.float64))
            largest[name] = float(numbers.max(initial=0.0))
            if numbers.size:
                least[name] = float(numbers.min())
            if not isfinite(largest[name]):
                finite, infinite = False, infinite or bool(np.isinf(numbers).any())
                largest[name] = float(numbers.max(initial=0.0, where=np.isfinite(numbers)))
        return Magnitudes(finite, infinite, largest, least)


def skips(formal: Sequence[str], given: Container[str]) -> bool:
    """Tell whether one that is not given stands before one that is."""
    there = [name in given for name in formal]
    return any(not before and after for before, after in itertools.pairwise(there))
