"""Leaky, a leaky integrator: Y_t = decay Y_{t-1} + X_t. What it says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference import (
    FORMATS,
    Expectation,
    Fault,
    IllegalNode,
    Interpretations,
    Node,
    Operator,
    OperatorVersion,
    budget,
    register,
)
from onnxspec.reference.documents import Document, Extent, TensorForm
from onnxspec.reference.faults.fault import fault
from onnxspec.reference.numbers import Bounded
from onnxspec.reference.operators import Conforming
from onnxspec.reference.recurrent import Steps

DOMAIN = "toy.example"
UNIT = 2.0**-24
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
class Leak:
    """A node with its input, resolved; and what an implementation may get wrong: where it starts."""

    X: NDArray[Any]
    decay: float
    start: float = 0.0
    directions = ("forward",)
    layout, ragged, states = 0, False, ()
    format = FORMATS["float32"]

    @property
    def T(self) -> int:
        return self.X.shape[0]

    @property
    def N(self) -> int:
        return self.X.shape[1]

    @property
    def I(self) -> int:  # noqa: E743
        return self.X.shape[2]

    H = I

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.full(self.N, self.T)

    def shape_of(self, output: str) -> tuple[int, ...]:
        return self.T, 1, self.N, self.H


class Leaky(Operator):
    document = Document("Leaky", DOMAIN, Path(__file__).with_name("clauses.toml"), {1: VERSION})

    def __init__(self) -> None:
        self.conforming = {"float32": Conforming(lambda node, inputs: self.answer(node, inputs))}

    def resolve(self, node: Node, inputs: Mapping[str, Any], interpretations: Interpretations | None = None) -> Leak:
        if "decay" not in node.attributes:
            raise IllegalNode("leaky.attributes", "Leaky-1: decay is missing")
        return Leak(inputs["X"], float(np.float32(node.attributes["decay"])))

    def _wrong(self, node: Node, inputs: Mapping[str, Any], faults: Sequence[Fault]) -> Leak:
        leak = self.resolve(node, inputs)
        for each in faults:
            leak = each.wrong(leak)
        return leak

    def expect(
        self,
        node: Node,
        inputs: Mapping[str, Any],
        observed: Mapping[str, Any],
        accuracy: str = "standard",
        interpretations: Interpretations | None = None,
        faults: Sequence[Fault] = (),
    ) -> list[Expectation]:
        leak, Y = self._wrong(node, inputs, faults), observed.get("Y")
        free = _run(leak)[:, np.newaxis]
        reported = free if Y is None else Y.astype(np.float64)
        before = np.concatenate([np.full_like(free[:1], leak.start), reported[:-1]]) if leak.T else reported
        value = leak.decay * before + leak.X[:, np.newaxis]
        # A product and a sum, each rounded once, and a state that may be held wider than it is shown.
        radius = 3 * UNIT * (np.abs(leak.decay * before) + np.abs(leak.X[:, np.newaxis])) + 1e-38
        radius = radius if Y is not None else radius * max(leak.T, 1)
        return [Expectation("Y", Bounded(value, radius, budget("standard", "float32")), "leaky.equations")]

    def evaluate(
        self, node: Node, inputs: Mapping[str, Any], interpretations: Interpretations | None = None
    ) -> dict[str, Any]:
        return {"Y": _run(self.resolve(node, inputs))[:, np.newaxis]}

    def answer(
        self,
        node: Node,
        inputs: Mapping[str, Any],
        faults: Sequence[Fault] = (),
        interpretations: Interpretations | None = None,
        *,
        fed: Mapping[str, Any] | None = None,
        memory: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        return {"Y": _run(self._wrong(node, inputs, faults))[:, np.newaxis].astype(np.float32)}

    def steps(
        self,
        node: Node,
        inputs: Mapping[str, Any],
        reported: Any = None,
        interpretations: Interpretations | None = None,
    ) -> tuple[Steps, ...]:
        leak = self.resolve(node, inputs)
        positions = np.broadcast_to(np.arange(leak.T)[:, np.newaxis], (leak.T, leak.N))
        return (Steps("forward", positions, leak.lengths, {"kept": leak.decay * _run(leak)}),)


def _run(leak: Leak) -> NDArray[np.float64]:
    states, y = np.zeros(leak.X.shape), np.full(leak.X.shape[1:], leak.start)
    for t, x in enumerate(leak.X):
        y = states[t] = leak.decay * y + x
    return states


register(Leaky())
leaky = partial(fault, operators=("Leaky",), types=("float32",))


@leaky("leaky.start.one", clause="equations")
def starts_from_one(leak: Leak) -> Leak:
    """Starts from one."""
    return replace(leak, start=1.0)


@leaky("leaky.decay.ignored", clause="equations")
def keeps_all(leak: Leak) -> Leak:
    """Keeps all of the state."""
    return replace(leak, decay=1.0)


@leaky("leaky.accepts.decay", clause="attributes", accepts=True)
def without_decay(leak: Leak) -> Leak:
    """Takes a node without decay."""
    return leak
