"""An LSTM as AMD Quark's producer makes an ExtendedLSTM of it: with its ranges calibrated on data.

That gives scale = range/65535 and a uint16 zero point for each tensor, as attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from onnxspec.cases.operators.extended_lstm.codec import calibrated
from onnxspec.cases.operators.extended_lstm.spec import extended
from onnxspec.cases.specs.case import Spec
from onnxspec.cases.specs.family import build_case
from onnxspec.cases.specs.model import build_model
from onnxspec.cases.specs.spec import CaseSpec
from onnxspec.reference import Node, evaluate_in_order

Array = NDArray[Any]

_DROPPED = ("clip", "input_forget", "activations", "activation_alpha", "activation_beta")


class NotQuantizable(ValueError):
    """A case that the producer makes no sound ExtendedLSTM of; the text says why, in one line."""


@dataclass(frozen=True)
class QuantizedCase:
    """A case quantized.

    inputs
        X (T, N, I), W, R and B, float32 as the case has them.
    attributes
        Of the ExtendedLSTM.
    dropped
        What the case has and the producer leaves out, in words.
    exact
        Y (T, 2, N, H) of the float LSTM, without what is dropped, in float64.
    """

    inputs: Mapping[str, Array]
    attributes: Mapping[str, Any]
    dropped: tuple[str, ...]
    exact: NDArray[np.float64]

    @property
    def unit(self) -> float:
        """y_scale."""
        return float(self.attributes["y_scale"])


def quantize(spec: Spec) -> QuantizedCase:
    """A case's LSTM with the parameters that calibration on its own data gives. Raises NotQuantizable."""
    if not isinstance(spec, CaseSpec) or spec.illegal or spec.type != "float32":
        raise NotQuantizable(f"{spec.id} is no float32 LSTM")
    return quantized(spec.node, build_case(spec).trial.feeds[-1].inputs)


def quantized(node: Node, feed: Mapping[str, Array]) -> QuantizedCase:
    """A float32 LSTM with the parameters that calibration on its inputs gives. Raises NotQuantizable."""
    direction, layout = node.attributes.get("direction", "forward"), node.attributes.get("layout")
    if node.op_type != "LSTM" or node.domain:
        raise NotQuantizable(f"the producer takes LSTM, not {node.op_type}")
    if direction != "bidirectional":
        raise NotQuantizable(
            f"the node is {direction}: ExtendedLSTM is bidirectional only, and the producer would write a model "
            "whose weights are read past their end"
        )
    if not all(np.isfinite(a).all() for a in feed.values()) or not feed["X"].size:
        raise NotQuantizable("there are numbers that are not finite, or none: no range can be calibrated")
    X, H = feed["X"].swapaxes(0, 1) if layout else feed["X"], feed["R"].shape[-1]
    B = feed.get("B", np.zeros((2, 8 * H), np.float32))
    inputs = {"X": np.ascontiguousarray(X), "W": feed["W"], "R": feed["R"], "B": B}
    dropped = [f"{name}={node.attributes[name]!r}" for name in _DROPPED if node.attributes.get(name)]
    dropped += [f"input {name}" for name in feed if name not in inputs]
    dropped += ["layout 1 (X is transposed)"] if layout else []
    dropped += ["no B (the producer demands one: zeros)"] if "B" not in feed else []
    exact = evaluate_in_order(_lstm(H), inputs)["Y"]
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": H}
    for name, array in {**inputs, "Y": exact}.items():
        affine = calibrated(float(array.min(initial=0.0)), float(array.max(initial=0.0)))
        attributes[f"{name.lower()}_scale"], attributes[f"{name.lower()}_zero_point"] = affine
    return QuantizedCase(inputs, attributes, tuple(dropped), exact)


def _lstm(H: int) -> Node:
    return Node("LSTM", 14, {"direction": "bidirectional", "hidden_size": H})


def as_extended(q: QuantizedCase) -> bytes:
    """The model of one ExtendedLSTM, for one row."""
    row = {name: array[:, :1] if name == "X" else array for name, array in q.inputs.items()}
    T, N, I = row["X"].shape
    spec = extended("quantized", T=T, N=N, I=I, H=q.attributes["hidden_size"])
    node = Node("ExtendedLSTM", 1, q.attributes, ("Y",), "com.amd.quark")
    return build_model(spec, node, row, node.outputs)
