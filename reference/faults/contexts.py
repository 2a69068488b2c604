"""One run of a node by some interpretations: outputs of implementations with faults, quickly or with bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..numbers.accuracy import FORMATS, budget
from ..numbers.bounded import Bounded
from ..recurrent.computation import Computation
from ..recurrent.configuration import steps_first
from ..recurrent.node import Node
from .computing import Prediction, Remembering, layered, predicted, same
from .fault import Compute, Fault, Memory, Outputs, Sessions

Array = NDArray[Any]
Arrays = Mapping[str, Array]

# Least bound that measures how near a number is: levels and float32 are coarser.
_FINEST = 2.0**-40

# Share of a radius. Smaller differences come from other operations in float64, in runs where the fault has no effect.
_NOISE = 2.0**-20

# Bits of each element that are not counted in Fit.least, because all elements may be wrong for one reason.
_COMMON = 2.0

# Bits that are not counted for an element whose bounds contain 0: there are many reasons for small numbers.
_SMALL = 8.0


@dataclass(frozen=True)
class Run:
    """One run of a session: the node's inputs by formal name, the fed ones among them, and the target's outputs.

    session
        Number of the session, if several are alive.
    refused
        Whether the session has refused inputs before.
    overridden
        The model's own values of constants that were fed.
    """

    inputs: Arrays
    outputs: Arrays
    fed: Arrays = field(default_factory=dict)
    session: int = 0
    refused: bool = False
    overridden: Arrays = field(default_factory=dict)

    def memory(self, sessions: Sessions) -> Memory:
        """Return the memory that its session has kept until this run."""
        memory = sessions[self.session]
        memory.refused, memory.overridden = self.refused, self.overridden
        return memory


class Scan:
    """One run of a node with a cell: faults are equations and outputs of its scan, computed with bounds.

    observed
        The reported Y, if each step starts from it; else None.
    plain
        The computation with plain numbers, which costs little.
    """

    common, small = _COMMON, _SMALL

    def __init__(
        self,
        node: Node,
        run: Run,
        computation: Computation,
        observed: Array | None,
        accuracy: str,
        plain: Remembering,
    ) -> None:
        self.node, self.run, self.computation, self.plain = node, run, computation, plain
        self.observed, self._accuracy = observed, accuracy
        allowed = budget(accuracy, computation.configuration.format.name)
        self.tensor, self.unit, self.floor = allowed.tensor, allowed.unit, allowed.floor
        self._known: list[tuple[Computation, dict[str, Bounded]]] = []

    def _bounded(self, computation: Computation) -> dict[str, Bounded]:
        for other, numbers in self._known:
            if same(computation, other):
                return numbers
        numbers = computation.bounded(self._accuracy, self.observed)
        self._known[1:] = [(computation, numbers)]  # the conforming one and the latest
        return numbers

    @cached_property
    def right(self) -> Outputs:
        """Outputs of a conforming target, by plain numbers."""
        return self.plain(self.computation)

    @cached_property
    def conforming(self) -> Prediction:
        """Outputs of a conforming target, with radii."""
        return Prediction.of(self._bounded(self.computation))

    def dtype(self, output: str) -> np.dtype[Any]:
        """Return the type in which an output must be returned."""
        return self.tensor.dtype

    def numbers(self, faults: Sequence[Fault], sessions: Sessions) -> tuple[Outputs, bool]:
        """Return the outputs of a target with faults, by plain numbers, and whether the faults alter computed outputs,
        not only the operands."""
        compute = Compute(self.observed, self.run.fed, attributes=self.node.attributes, below=self.plain)
        numbers = layered(compute, faults, self.run.memory(sessions))(self.computation)
        altered = not all(_shown(array, self.plain.last.get(n), self.tensor.dtype) for n, array in numbers.items())
        return numbers, altered

    def unchanged(self, output: str, number: Array) -> bool:
        """Return whether an output by plain numbers is that of a conforming target."""
        right = self.right[output]
        equal = number.dtype == np.float64 and np.array_equal(number, right, equal_nan=True)
        return equal or _shown(number, right, self.tensor.dtype)

    def predicted(self, faults: Sequence[Fault], sessions: tuple[Sessions, Sessions]) -> Prediction:
        """Return the outputs of a target with faults, with radii."""
        first, second = (self.run.memory(kept) for kept in sessions)
        return predicted(
            self.computation, faults, self._bounded, (first, second),
            observed=self.observed, fed=self.run.fed, attributes=self.node.attributes,
        )  # fmt: skip


class Expecting:
    """One run of any other node: the operator's own expectations give the outputs of faults, with all roundings."""

    common = small = 0.0
    tensor, unit, floor = FORMATS["float64"], 0.0, _FINEST / 2

    def __init__(
        self, operator: Any, node: Node, run: Run, interpretations: Interpretations | None, accuracy: str
    ) -> None:
        self.node, self.run, self.worked = node, run, 0
        self._operator, self._interpretations, self._accuracy = operator, interpretations, accuracy
        self._known: dict[tuple[Fault, ...], Prediction] = {}

    def _prediction(self, faults: Sequence[Fault]) -> Prediction:
        key, run = tuple(faults), self.run
        if key not in self._known:
            self.worked += 1
            if self._formed:
                expected = self._operator.expect(
                    self.node, run.inputs, run.outputs, self._accuracy, self._interpretations, faults
                )
                self._known[key] = Prediction.expected(expected)
            else:
                arrays = self._operator.answer(self.node, run.inputs, faults, self._interpretations)
                self._known[key] = Prediction(arrays, {n: np.zeros(array.shape) for n, array in arrays.items()})
        return self._known[key]

    @cached_property
    def _formed(self) -> bool:
        """Whether all outputs have the expected shapes and types. If not, nothing is expected of them."""
        right, got = self._operator.answer(self.node, self.run.inputs), self.run.outputs
        return all(n in got and (got[n].shape, got[n].dtype) == (a.shape, a.dtype) for n, a in right.items())

    @property
    def right(self) -> Outputs:
        return self.conforming.values

    @cached_property
    def conforming(self) -> Prediction:
        return self._prediction(())

    def dtype(self, output: str) -> np.dtype[Any]:
        return self.run.outputs[output].dtype

    def numbers(self, faults: Sequence[Fault], sessions: Sessions) -> tuple[Outputs, bool]:
        return self._prediction(faults).values, False

    def unchanged(self, output: str, number: Array) -> bool:
        right, radius = self.conforming.values.get(output), self.conforming.radii.get(output)
        if right is None or radius is None or right.shape != number.shape or right.dtype != number.dtype:
            return False
        return not (np.abs(right - number) > _NOISE * np.where(np.isfinite(radius), radius, 0.0)).any()

    def predicted(self, faults: Sequence[Fault], sessions: tuple[Sessions, Sessions]) -> Prediction:
        return self._prediction(faults)


Context = Scan | Expecting


def _shown(array: Array, computed: Array | None, dtype: np.dtype[Any]) -> bool:
    """Return whether an output is the computed array, or its copy in the type of the tensors."""
    if array is computed or computed is None:
        return array is computed
    return array.dtype == dtype != computed.dtype and np.array_equal(array, computed.astype(dtype), equal_nan=True)


def reported_steps(computation: Computation, outputs: Arrays) -> NDArray[np.float64] | None:
    """Return the Y that a target reported, as (T, D, N, H), if its shape is right."""
    c, Y = computation.configuration, outputs.get("Y")
    if Y is None or Y.ndim != 4:
        return None
    Y = steps_first(Y.astype(np.float64), c.layout)
    return Y if Y.shape == (c.T, len(c.directions), c.N, c.H) else None
