"""MaskedLeaky, which extends Leaky: directions, a mask, a function, a second output, and an open question."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference import (
    IllegalNode,
    Interpretations,
    Node,
    OperatorVersion,
    budget,
    fault,
    register,
)
from onnxspec.reference.documents import Document, Extent, Question, TensorForm
from onnxspec.reference.numbers import Bounded, Budget
from onnxspec.reference.recurrent import Steps

from ..leaky import DOMAIN, Leak, Leaky

OP = "MaskedLeaky"
_T, _N, _I, _D = (Extent(name) for name in ("seq_length", "batch_size", "input_size", "num_directions"))
_FORMS = (
    TensorForm("X", ((_T, _N, _I),)),
    TensorForm("mask", ((_T, _N),), kind="M"),
    TensorForm("Y", ((_T, _D, _N, _I),)),
    TensorForm("Y_last", ((_D, _N, _I),)),
)
VERSION = OperatorVersion(
    DOMAIN,
    OP,
    1,
    attributes={"decay": "FLOAT", "direction": "STRING", "function": "STRING"},
    defaults={"direction": "forward", "function": "Identity"},
    inputs=("X", "mask"),
    required=frozenset({"X"}),
    outputs=("Y", "Y_last"),
    required_outputs=frozenset(),
    types=("float32",),
    kinds=MappingProxyType({"M": ("int32",)}),
    tensors={form.name: form for form in _FORMS},
)
_DIRECTIONS = {"forward": ("forward",), "reverse": ("reverse",), "bidirectional": ("forward", "reverse")}
_FUNCTIONS = {"Identity": lambda x: x, "Relu": lambda x: np.maximum(x, 0.0)}


@dataclass(frozen=True)
class MaskedLeak(Leak):
    """A node with its inputs, and further points that may go wrong: the direction through X, and the last step."""

    directions: tuple[str, ...] = ("forward",)
    mask: NDArray[Any] | None = None
    function: str = "Identity"
    masked_steps: str = "kept"
    backwards: bool = True
    last_in_time: bool = False
    operator = VERSION

    def way(self, direction: str) -> slice:
        """Return the slice from the positions of X to the steps of a direction, and back."""
        return slice(None, None, -1 if direction == "reverse" and self.backwards else 1)

    def step(self, before: NDArray[Any], X: NDArray[Any], mask: NDArray[Any]) -> NDArray[Any]:
        """Return the next Y from the one before."""
        after = _FUNCTIONS[self.function](self.decay * before + X)
        return np.where(mask[..., np.newaxis] != 0, after, before if self.masked_steps == "kept" else 0.0)

    def run(self) -> NDArray[np.float64]:
        """Return Y (T, D, N, I), each direction by itself."""
        Y = np.zeros(self.shape_of("Y"))
        mask = np.ones(self.X.shape[:2]) if self.mask is None else self.mask
        for d, direction in enumerate(self.directions):
            way, y = self.way(direction), np.full(self.X.shape[1:], self.start)
            for t in range(self.T):
                y = Y[way, d][t] = self.step(y, self.X[way][t], mask[way][t])
        return Y

    def bounded(self, accuracy: str, observed: Mapping[str, Any]) -> dict[str, Bounded]:
        free, Y = self.run(), observed.get("Y")
        reported = free if Y is None else Y.astype(np.float64)
        value, radius = np.zeros(free.shape), np.zeros(free.shape)
        allowed = budget(accuracy, "float32")
        mask = np.ones(self.X.shape[:2]) if self.mask is None else self.mask
        for d, direction in enumerate(self.directions):
            way = self.way(direction)
            start = np.full((1, *self.X.shape[1:]), self.start)
            before = np.concatenate([start, reported[way, d][:-1]]) if self.T else reported[:, d]
            value[way, d] = self.step(before, self.X[way], mask[way])
            radius[way, d] = self.radius(before, self.X[way], allowed, free=Y is None)
        last = Bounded(self.last(reported if Y is not None else value), self.last(radius), allowed)
        return {"Y": Bounded(value, radius, allowed), "Y_last": last}

    def radius(self, before: NDArray[Any], X: NDArray[Any], allowed: Budget, *, free: bool) -> NDArray[Any]:
        """Return the error bound of each step, as Leaky has it."""
        radius: NDArray[Any] = 3 * (allowed.unit * (np.abs(self.decay * before) + np.abs(X)) + allowed.floor)
        radius += (1 + abs(self.decay)) * allowed.input_floor
        for t in range(1, len(radius) if free else 0):
            radius[t] += abs(self.decay) * radius[t - 1]
        return radius

    def last(self, Y: NDArray[Any]) -> NDArray[Any]:
        """Return Y_last of a Y."""
        first = self.backwards and not self.last_in_time
        ends = [0 if direction == "reverse" and first else -1 for direction in self.directions]
        return np.stack([Y[end, d] for d, end in enumerate(ends)]) if self.T else np.full(Y.shape[1:], self.start)


class MaskedLeaky(Leaky):
    document = Document(
        OP, DOMAIN, Path(__file__).with_name("clauses.toml"), {1: VERSION},
        questions=(Question("masked_steps", ("kept", "reset")),),
    )  # fmt: skip
    topics = MappingProxyType({"Y_last": "last"})

    def resolve(
        self, node: Node, inputs: Mapping[str, Any], interpretations: Interpretations | None = None
    ) -> MaskedLeak:
        def illegal(topic: str, words: str) -> IllegalNode:
            return IllegalNode(f"maskedleaky.{topic}", f"MaskedLeaky-1: {words}")

        given = {**VERSION.defaults, **node.attributes}
        if "decay" not in given:
            raise illegal("attributes", "decay is missing")
        if given["direction"] not in _DIRECTIONS or given["function"] not in _FUNCTIONS:
            raise illegal("attributes", "there is no such direction, or function")
        decay, directions = float(np.float32(given["decay"])), _DIRECTIONS[given["direction"]]
        masked = (interpretations or Interpretations()).masked_steps
        return MaskedLeak(inputs["X"], decay, 0.0, directions, inputs.get("mask"), given["function"], masked)

    def open_questions(self, node: Node, inputs: Mapping[str, Any]) -> frozenset[str]:
        mask = inputs.get("mask")
        return frozenset({"masked_steps"} if mask is not None and not np.asarray(mask).all() else ())

    def steps(
        self,
        node: Node,
        inputs: Mapping[str, Any],
        reported: Any = None,
        interpretations: Interpretations | None = None,
    ) -> tuple[Steps, ...]:
        leak = self.resolve(node, inputs, interpretations)
        Y, shown = leak.run(), []
        for d, direction in enumerate(leak.directions):
            way = leak.way(direction)
            positions = np.broadcast_to(np.arange(leak.T)[way][:, np.newaxis], (leak.T, leak.N))
            shown.append(Steps(direction, positions, leak.lengths, {"kept": leak.decay * Y[way, d]}))
        return tuple(shown)


register(MaskedLeaky())
masked = partial(fault, operators=(OP,), types=("float32",))

masked(
    "maskedleaky.mask.ignored", "mask", "Lets every row take part in every step.", lambda leak: replace(leak, mask=None)
)
masked(
    "maskedleaky.reverse.forward",
    "direction",
    "Goes forward in the reverse direction.",
    lambda leak: replace(leak, backwards=False),
)
masked(
    "maskedleaky.last.in-time",
    "last",
    "Returns Y of the last position of X for Y_last of the reverse direction.",
    lambda leak: replace(leak, last_in_time=True),
)
