"""Write models and results of data/ with real Keras layers: ``python make_keras_data.py DIR`` (Keras 3, any backend).

Each NAME.onnx is built by hand from the weights of the layer; NAME.npz has its inputs under ``in.`` and Keras's results
under ``out.``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import keras
import numpy as np
import onnx
from onnx import helper, numpy_helper

N, T, I, H = 3, 6, 4, 5

LAYERS = {
    "keras-lstm": lambda: keras.layers.LSTM(H, return_sequences=True, return_state=True),
    "keras-lstm-hard": lambda: keras.layers.LSTM(
        H, return_sequences=True, return_state=True, recurrent_activation="hard_sigmoid"
    ),
    "keras-gru": lambda: keras.layers.GRU(H, return_sequences=True, return_state=True),
    "keras-gru-v1": lambda: keras.layers.GRU(H, return_sequences=True, return_state=True, reset_after=False),
}


def in_onnx_order(op: str, kernel: np.ndarray) -> np.ndarray:
    """Reorder blocks along the last axis to ONNX's order: Keras has i, f, c, o for LSTM and z, r, h for GRU."""
    if op == "GRU":
        return kernel
    i, f, c, o = np.split(kernel, 4, axis=-1)
    return np.concatenate([i, o, f, c], axis=-1)


def model_of(layer: keras.layers.Layer) -> onnx.ModelProto:
    """Return the layer as an ONNX model: batch first, with Y and its states."""
    op = type(layer).__name__
    kernel, recurrent, bias = (in_onnx_order(op, np.asarray(weight)) for weight in layer.get_weights())
    both = bias if bias.ndim == 2 else np.stack([bias, np.zeros_like(bias)])  # input and recurrent
    weights = {"W": kernel.T[None], "R": recurrent.T[None], "B": both.reshape(1, -1)}
    attributes = {"hidden_size": H}
    if op == "GRU":
        attributes["linear_before_reset"] = int(layer.reset_after)
    if layer.recurrent_activation is keras.activations.hard_sigmoid:
        attributes |= {"activations": ["HardSigmoid", "Tanh", "Tanh"], "activation_alpha": [1 / 6]}
    states = ["h", "c"] if op == "LSTM" else ["h"]
    nodes = [
        helper.make_node("Transpose", ["x"], ["X"], perm=[1, 0, 2]),
        helper.make_node(op, ["X", "W", "R", "B"], ["Y", *(f"Y_{s}" for s in states)], name=op.lower(), **attributes),
        helper.make_node("Squeeze", ["Y", "one"], ["y"]),
        helper.make_node("Transpose", ["y"], ["output"], perm=[1, 0, 2]),
        *(helper.make_node("Squeeze", [f"Y_{s}", "zero"], [s]) for s in states),
    ]
    constants = {**weights, "one": np.array([1]), "zero": np.array([0])}
    shapes = {"output": ["batch", "time", H], **{state: ["batch", H] for state in states}}
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", "time", I])],
        [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in shapes.items()],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


if __name__ == "__main__":
    for name, make in LAYERS.items():
        keras.utils.set_random_seed(len(name))
        layer = make()
        layer.build((N, T, I))
        random = np.random.default_rng(len(name))
        layer.set_weights([random.uniform(-0.9, 0.9, w.shape).astype(np.float32) for w in layer.get_weights()])
        x = random.normal(size=(N, T, I)).astype(np.float32)
        results = zip(("output", "h", "c"), layer(x), strict=False)
        arrays = {f"out.{n}": keras.ops.convert_to_numpy(array) for n, array in results}
        onnx.save(model_of(layer), Path(sys.argv[1]) / f"{name}.onnx")
        np.savez(Path(sys.argv[1]) / f"{name}.npz", **{"in.x": x}, **arrays)
