"""Scaled, an operator without steps: output = gain[channel] * input, and the total of each channel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.reference import Interpretations, Node, Operator, OperatorVersion, budget, fault, register
from onnxspec.reference.documents import Document, Extent, TensorForm
from onnxspec.reference.faults import Computed
from onnxspec.reference.numbers import Bounded

from ..leaky import DOMAIN

_N, _C, _L = Extent("batch_size"), Extent("channels"), Extent("length")
_FORMS = (
    TensorForm("input", ((_N, _C, _L),)),
    TensorForm("gain", ((_C,),)),
    TensorForm("output", ((_N, _C, _L),), axes=("row", "channel", "position")),
    TensorForm("total", ((_N, _C),)),
)
VERSION = OperatorVersion(
    DOMAIN,
    "Scaled",
    1,
    attributes={},
    defaults={},
    inputs=("input", "gain"),
    required=frozenset({"input", "gain"}),
    outputs=("output", "total"),
    required_outputs=frozenset({"output"}),
    types=("float32",),
    tensors={form.name: form for form in _FORMS},
)


@dataclass(frozen=True)
class Scaling(Computed):
    """A node with its inputs."""

    input: NDArray[Any]
    gain: NDArray[Any]
    operator = VERSION

    def bounded(self, accuracy: str, observed: Mapping[str, Any]) -> dict[str, Bounded]:
        allowed = budget(accuracy, "float32")
        value = self.input.astype(np.float64) * self.gain.astype(np.float64)[:, np.newaxis]
        radius = allowed.unit * np.abs(value) + allowed.floor + allowed.input_floor
        total, sizes = value.sum(axis=2), np.abs(value).sum(axis=2)
        count = value.shape[2] + 1
        return {
            "output": Bounded(value, radius, allowed),
            "total": Bounded(total, count * (allowed.unit * sizes + allowed.floor + allowed.input_floor), allowed),
        }


class Scaled(Operator):
    document = Document("Scaled", DOMAIN, Path(__file__).with_name("clauses.toml"), {1: VERSION})

    def resolve(self, node: Node, inputs: Mapping[str, Any], interpretations: Interpretations | None = None) -> Scaling:
        return Scaling(inputs["input"], inputs["gain"])


register(Scaled())

fault(
    "scaled.gain.ignored",
    "equations",
    "Ignores gain.",
    lambda scaling: Scaling(scaling.input, np.ones_like(scaling.gain)),
    operators=("Scaled",),
    types=("float32",),
)
