"""Computations of ExtendedLSTM: a node and the stages that it goes through, which faults change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...faults.fault import fault
from ...numbers.affine import Affine
from ...numbers.bounded import Bounded
from ...numbers.formats import Format
from .document import OP_TYPE, ExtendedLSTM, expect_extended
from .free import expect_free
from .stages import Operand, Stages

__all__ = ["ExtendedComputation", "of"]

of = partial(fault, operators=(OP_TYPE,), types=("float32",))
"""Registers a fault of it."""


@dataclass(frozen=True)
class ExtendedComputation(Stages):
    """See :class:`...faults.computing.Computable`.

    fed_back
        What goes from step to step where Y is quantized, one of :data:`.document.STATES`.
    """

    node: ExtendedLSTM = field(kw_only=True)
    fed_back: str = "quantized"

    @property
    def format(self) -> Format:
        """Of all tensors."""
        return self.node.format

    @property
    def directions(self) -> tuple[str, ...]:
        """Both, always."""
        return self.node.directions

    def direction_axis(self, output: str) -> int:
        """That of Y."""
        return 1

    def with_input(self, name: str, altered: Any) -> ExtendedComputation:
        """What one tensor is quantized to, as another computation has it."""
        own, other = self.quantized, altered.quantized

        def quantized(tensor: str, affine: Affine, array: NDArray[Any]) -> Operand:
            return (other if tensor == name else own)(tensor, affine, array)

        return replace(self, quantized=quantized)

    def bounded(self, accuracy: str, observed: Mapping[str, NDArray[Any]]) -> dict[str, Bounded]:
        """Y in a kind of arithmetic, each step from what was reported; without that by the document alone."""
        Y = observed.get("Y")
        if Y is None:
            return {"Y": expect_free(self.node, accuracy, self.fed_back)}
        return {"Y": expect_extended(self.node, Y, accuracy, self.fed_back, self)}

    def plain(self, observed: Any = None) -> dict[str, NDArray[Any]]:
        """Y in float32 as an implementation with these stages computes it from its own states, quantized where y_scale
        is given. Every step depends on the one before, so what is predicted from a Y is right for one step more."""
        node = self.node
        Y = np.zeros((node.T, 2, node.N, node.H), np.float32)
        for _ in range(node.T + 1):
            before = Y
            value = expect_extended(node, before, "float32", self.fed_back, self).value
            Y = (value if node.y is None else np.rint(value / node.y.scale) * node.y.scale).astype(np.float32)
            if np.array_equal(Y, before):
                break
        return {"Y": Y}
