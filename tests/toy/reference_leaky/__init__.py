"""Document of Leaky, a leaky integrator: Y_t = decay Y_{t-1} + X_t."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference import (
    IllegalNode,
    Interpretations,
    Node,
    Operator,
    OperatorVersion,
    budget,
    fault,
    register,
)
from onnxspec.reference.documents import Document, Extent, TensorForm
from onnxspec.reference.faults import Computed
from onnxspec.reference.numbers import Bounded, Budget
from onnxspec.reference.operators import Conforming
from onnxspec.reference.recurrent import Steps

DOMAIN = "toy.example"
_T, _N, _I = Extent("seq_length"), Extent("batch_size"), Extent("input_size")

VERSION = OperatorVersion(
    domain=DOMAIN,
    op_type="Leaky",
    since_version=1,
    attributes={"decay": "FLOAT"},
    defaults={},
    inputs=("X",),
    required=frozenset({"X"}),
    outputs=("Y",),
    required_outputs=frozenset({"Y"}),
    types=("float32",),
    tensors={"X": TensorForm("X", ((_T, _N, _I),)), "Y": TensorForm("Y", ((_T, Extent("num_directions"), _N, _I),))},
)


@dataclass(frozen=True)
class Leak(Computed):
    """A node with its input, resolved, and the point that an implementation may get wrong: where it starts."""

    X: NDArray[Any]
    decay: float
    start: float = 0.0
    directions: tuple[str, ...] = ("forward",)
    operator = VERSION

    def bounded(self, accuracy: str, observed: Mapping[str, Any]) -> dict[str, Bounded]:
        Y = observed.get("Y")
        reported = self.run() if Y is None else Y.astype(np.float64)
        before = np.concatenate([np.full_like(reported[:1], self.start), reported[:-1]])
        value = self.decay * before + self.X[:, np.newaxis]
        allowed = budget(accuracy, "float32")
        radius = self.radius(before, self.X[:, np.newaxis], allowed, free=Y is None)
        return {"Y": Bounded(value, radius, allowed)}

    def radius(self, before: NDArray[Any], X: NDArray[Any], allowed: Budget, *, free: bool) -> NDArray[Any]:
        """Return the error bound of each step.

        A step has a product and a sum, each rounded once, and a state that may be wider than its output. If `free`, the
        bounds accumulate from the start, because the errors of earlier states are unknown.
        """
        radius: NDArray[Any] = 3 * (allowed.unit * (np.abs(self.decay * before) + np.abs(X)) + allowed.floor)
        radius += (1 + abs(self.decay)) * allowed.input_floor
        for t in range(1, len(radius) if free else 0):
            radius[t] += abs(self.decay) * radius[t - 1]
        return radius

    def run(self) -> NDArray[np.float64]:
        states, y = np.zeros(self.X.shape), np.full(self.X.shape[1:], self.start)
        for t, x in enumerate(self.X):
            y = states[t] = self.decay * y + x
        return states[:, np.newaxis]


class Leaky(Operator):
    document = Document("Leaky", DOMAIN, Path(__file__).with_name("clauses.toml"), {1: VERSION})

    def __init__(self) -> None:
        self.conforming = {"float32": Conforming(lambda node, inputs: self.answer(node, inputs))}

    def resolve(self, node: Node, inputs: Mapping[str, Any], interpretations: Interpretations | None = None) -> Leak:
        if "decay" not in node.attributes:
            raise IllegalNode(f"{self.document.prefix}.attributes", "decay is missing")
        return Leak(inputs["X"], float(np.float32(node.attributes["decay"])))

    def steps(
        self,
        node: Node,
        inputs: Mapping[str, Any],
        reported: Any = None,
        interpretations: Interpretations | None = None,
    ) -> tuple[Steps, ...]:
        leak = self.resolve(node, inputs)
        positions = np.broadcast_to(np.arange(leak.T)[:, np.newaxis], (leak.T, leak.N))
        return (Steps("forward", positions, leak.lengths, {"kept": leak.decay * leak.run()[:, 0]}),)


register(Leaky())
leaky = partial(fault, operators=("Leaky",), types=("float32",))

leaky("leaky.start.one", "equations", "Starts from one.", lambda leak: replace(leak, start=1.0))
leaky("leaky.decay.ignored", "equations", "Keeps all of the state.", lambda leak: replace(leak, decay=1.0))
leaky("leaky.accepts.decay", "attributes", "Takes a node without decay.", lambda leak: leak, kind="accepts")
