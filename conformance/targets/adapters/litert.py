"""Adapter for LiteRT, the runtime of TensorFlow Lite, behind the converter onnx2tf. Package: onnx2tf onnx. No options.

onnx2tf converts LSTM and RNN to LiteRT's own nodes, and GRU to plain operators, without TensorFlow. The variables of
LiteRT's nodes are reset before each run, as its documents require at the start of a sequence.

Tested: ai-edge-litert 2.1.2 with onnx2tf 2.6.9 (Python 3.12), on CPU.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import onnx

os.environ["TQDM_DISABLE"] = "1"
onnx2tf: Any = importlib.import_module("onnx2tf")
interpreter: Any = importlib.import_module("ai_edge_litert.interpreter")

OPTION_DEFAULTS: dict[str, Any] = {}

SESSIONS = ("held", "several", "many", "refusals", "sizes")


class Adapter:
    """LiteRT on the CPU, with one thread."""

    def __init__(self, options: dict[str, Any]) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "litert",
            "version": version("ai-edge-litert"),
            "converter": "onnx2tf {}".format(version("onnx2tf")),
            "provider": "",
            "device": "CPU",
        }

    def prepare(self, model: bytes) -> Session:
        """Convert and load `model`."""
        proto = onnx.load_model_from_string(model)
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as name:
            folder = Path(name)
            (folder / "model.onnx").write_bytes(model)
            try:
                onnx2tf.convert(
                    input_onnx_file_path=str(folder / "model.onnx"),
                    output_folder_path=str(folder),
                    tflite_backend="flatbuffer_direct",
                    copy_onnx_input_output_names_to_tflite=True,
                    not_use_onnxsim=True,
                    verbosity="error",
                )
            except SystemExit:
                raise RuntimeError("onnx2tf gave up") from None
            (converted,) = folder.glob("*_float32.tflite")
            loaded = interpreter.Interpreter(model_content=converted.read_bytes(), num_threads=1)
        return Session(loaded, [value.name for value in proto.graph.output])


class Session:
    """A converted model."""

    def __init__(self, loaded: Any, outputs: list[str]) -> None:
        self._interpreter = loaded
        self._inputs = {detail["name"]: detail for detail in loaded.get_input_details()}
        named = {detail["name"]: detail["index"] for detail in loaded.get_output_details()}
        if set(outputs) - named.keys():
            raise RuntimeError(f"the converted model has no output {min(set(outputs) - named.keys())}")
        self._outputs = [named[name] for name in outputs]

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if feeds.keys() != self._inputs.keys():
            raise TypeError("the converted model takes other inputs: {}".format(", ".join(sorted(self._inputs))))
        for name, array in feeds.items():
            if list(array.shape) != self._inputs[name]["shape"].tolist():
                self._interpreter.resize_tensor_input(self._inputs[name]["index"], array.shape, strict=True)
        self._interpreter.allocate_tensors()
        self._interpreter.reset_all_variables()
        for name, array in feeds.items():
            self._interpreter.set_tensor(self._inputs[name]["index"], array)
        self._interpreter.invoke()
        return [self._interpreter.get_tensor(index) for index in self._outputs]
