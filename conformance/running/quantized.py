"""The cost of quantizing an LSTM: a case in float, quantized as AMD Quark's producer does it, and as a QDQ model.

The producer calibrates each tensor's range on data (here the case's own), which gives scale = range/65535 and a uint16
zero point; a QDQ model has the LSTM between QuantizeLinear and DequantizeLinear nodes with these; converting it gives
one ExtendedLSTM with the same parameters as attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ...cases import CaseSpec, Spec, build_case
from ...cases.operators.extended_lstm import HIGHEST, calibrated, extended
from ...cases.specs.model import build_model
from ...reference import WIDER_PRESETS, Node, compare, evaluate_in_order, expect
from ...reference.operators.extended_lstm.document import evaluate_extended, resolve
from ...reference.operators.extended_lstm.kernel import Parameters, run_kernel
from ..targets.target import Target
from ..workers.process import Job, Outcome, TargetProcess

__all__ = ["Form", "NotQuantizable", "Quantized", "measure", "quantize"]

Array = NDArray[Any]

_OPSET = 21  # the first whose QuantizeLinear takes uint16
_DROPPED = ("clip", "input_forget", "activations", "activation_alpha", "activation_beta")


class NotQuantizable(ValueError):
    """A case that the producer makes no sound ExtendedLSTM of; the text says why, in one line."""


@dataclass(frozen=True)
class Quantized:
    """A case quantized.

    inputs
        X (T, N, I), W, R and B, float32 as the case has them.
    attributes
        Of the ExtendedLSTM.
    dropped
        What the case has and the producer leaves out, in words.
    exact
        Y (T, 2, N, H) of the float LSTM, without what is dropped, in float64.
    changed
        By how much that differs from the case with what is dropped.
    """

    case: str
    inputs: Mapping[str, Array]
    attributes: Mapping[str, Any]
    dropped: tuple[str, ...]
    exact: NDArray[np.float64]
    changed: float

    @property
    def unit(self) -> float:
        """y_scale."""
        return float(self.attributes["y_scale"])


@dataclass(frozen=True)
class Form:
    """The numbers of one way of computing.

    largest, mean, rms
        Of |Y - exact Y|.
    radii
        By accuracy class of float32 how many radii Y is off by at most, each step from the Y before.
    """

    name: str
    Y: Array
    largest: float
    mean: float
    rms: float
    radii: Mapping[str, float]


def quantize(spec: Spec) -> Quantized:
    """A case's LSTM with the parameters that calibration on its own data gives. Raises NotQuantizable."""
    if not isinstance(spec, CaseSpec) or spec.op != "LSTM" or spec.illegal or spec.type != "float32":
        raise NotQuantizable(f"{spec.id} is no float32 LSTM")
    if spec.direction != "bidirectional":
        raise NotQuantizable(
            f"{spec.id} is {spec.direction}: ExtendedLSTM is bidirectional only, and the producer would write a model "
            "whose weights are read past their end"
        )
    feed = build_case(spec).trial.feeds[-1].inputs
    if not all(np.isfinite(a).all() for a in feed.values()) or not (spec.T and spec.N):
        raise NotQuantizable(f"{spec.id} has numbers that are not finite, or none: no range can be calibrated")
    X = feed["X"].swapaxes(0, 1) if spec.layout else feed["X"]
    B = feed.get("B", np.zeros((2, 8 * spec.H), np.float32))
    inputs = {"X": np.ascontiguousarray(X), "W": feed["W"], "R": feed["R"], "B": B}
    dropped = [f"{name}={spec.node.attributes[name]!r}" for name in _DROPPED if spec.node.attributes.get(name)]
    dropped += [f"input {name}" for name in feed if name not in inputs]
    dropped += ["layout 1 (X is transposed)"] if spec.layout else []
    dropped += ["no B (the producer demands one: zeros)"] if "B" not in feed else []
    exact = evaluate_in_order(_lstm(spec.H), inputs)["Y"]
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": spec.H}
    for name, array in {**inputs, "Y": exact}.items():
        affine = calibrated(float(array.min(initial=0.0)), float(array.max(initial=0.0)))
        attributes[f"{name.lower()}_scale"], attributes[f"{name.lower()}_zero_point"] = affine
    asked = evaluate_in_order(replace(spec.node, outputs=("Y",)), feed)["Y"]
    asked = asked.transpose(1, 2, 0, 3) if spec.layout else asked
    return Quantized(spec.id, inputs, attributes, tuple(dropped), exact, float(np.abs(asked - exact).max()))


def _lstm(H: int) -> Node:
    return Node("LSTM", 14, {"direction": "bidirectional", "hidden_size": H})


def as_extended(q: Quantized) -> bytes:
    """The model of one ExtendedLSTM, for one row."""
    row = {name: array[:, :1] if name == "X" else array for name, array in q.inputs.items()}
    T, N, I = row["X"].shape
    spec = extended("quantized", T=T, N=N, I=I, H=q.attributes["hidden_size"])
    node = Node("ExtendedLSTM", 1, q.attributes, ("Y",), "com.amd.quark")
    return build_model(spec, node, row, node.outputs)


def as_qdq(q: Quantized) -> bytes:
    """The QDQ model, for one row: constants are uint16 with a DequantizeLinear, X and Y pass through both."""
    nodes, constants = [], []
    for name in "XWRBY":
        scale, zero_point = (q.attributes[f"{name.lower()}_{part}"] for part in ("scale", "zero_point"))
        constants.append(numpy_helper.from_array(np.asarray(scale, np.float32), f"{name}_scale"))
        constants.append(numpy_helper.from_array(np.asarray(zero_point, np.uint16), f"{name}_zero_point"))
        parameters = [f"{name}_scale", f"{name}_zero_point"]
        if name in "WRB":
            levels = np.clip(np.rint(q.inputs[name].astype(np.float64) / scale) + zero_point, 0, HIGHEST)
            constants.append(numpy_helper.from_array(levels.astype(np.uint16), f"{name}_levels"))
        else:
            source = "X" if name == "X" else "Y_float"
            nodes.append(helper.make_node("QuantizeLinear", [source, *parameters], [f"{name}_levels"]))
        result = "Y" if name == "Y" else f"{name}_dequantized"
        nodes.append(helper.make_node("DequantizeLinear", [f"{name}_levels", *parameters], [result]))
    hidden_size = q.attributes["hidden_size"]
    lstm = helper.make_node(
        "LSTM",
        [f"{name}_dequantized" for name in "XWRB"],
        ["Y_float"],
        "lstm",
        direction="bidirectional",
        hidden_size=hidden_size,
    )
    order = [*nodes[:-2], lstm, *nodes[-2:]]
    T, _, I = q.inputs["X"].shape
    graph = helper.make_graph(
        order,
        "qdq",
        [helper.make_tensor_value_info("X", TensorProto.FLOAT, (T, 1, I))],
        [helper.make_tensor_value_info("Y", TensorProto.FLOAT, (T, 2, 1, hidden_size))],
        constants,
    )
    made: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=10
    ).SerializeToString()
    return made


def run_rows(q: Quantized, model: bytes, target: Target) -> Array | Outcome:
    """Y (T, 2, N, H) of a model that takes one row, run for each; the outcome where that does not work."""
    X = q.inputs["X"]
    feeds = tuple({"X": np.ascontiguousarray(X[:, n : n + 1])} for n in range(X.shape[1]))
    with TargetProcess(target, repeats=1) as process:
        process.start()
        outcome = next(iter(process.run([Job(q.case, model, feeds)])))
    if outcome.status != "ran":
        return outcome
    return np.concatenate([np.asarray(lists[0][0]) for lists in outcome.outputs], axis=2)


def kernel_rows(q: Quantized) -> Array:
    """Y as the model of the shipped kernel computes it, row by row."""
    X, parameters = q.inputs["X"], Parameters.of(q.attributes)
    W, R, B = (q.inputs[name] for name in "WRB")
    rows = [run_kernel(X[:, n : n + 1], W, R, B, parameters) for n in range(X.shape[1])]
    return np.concatenate(rows, axis=2)


def documented(q: Quantized) -> Array:
    """Y as the document has it, exact but for the quantization."""
    return evaluate_extended(resolve(q.attributes, q.inputs)).astype(np.float32)


def measure(q: Quantized, name: str, Y: Array) -> Form:
    """The distance of Y from the float LSTM's, also in radii of class ``standard`` and of float32's wider presets."""
    error = np.abs(Y.astype(np.float64) - q.exact)
    node, radii = _lstm(int(q.attributes["hidden_size"])), {}
    for accuracy in ("standard", *WIDER_PRESETS["float32"]):
        agreements = [compare(e, Y) for e in expect(node, q.inputs, {"Y": Y}, accuracy) if e.output == "Y"]
        radii[accuracy] = max((agreement.worst for agreement in agreements), default=0.0)
    return Form(name, Y, float(error.max()), float(error.mean()), float(np.sqrt((error**2).mean())), radii)
