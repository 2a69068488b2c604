"""Adapter for MNN, which converts ONNX models to its own form and runs that. Package: MNN onnx.

Option ``precision`` (default "high"; "normal" and "low" let a device compute in less than the model's types).

The library of the converter is called in this process. The program mnnconvert is not used, because it installs a
package from the network and reports its use to its makers.

Tested: MNN 3.6.1, on CPU.
"""

from __future__ import annotations

import importlib
import os
import tempfile
from importlib import metadata
from typing import Any

import numpy as np
import onnx

MNN: Any = importlib.import_module("MNN")
converter: Any = importlib.import_module("_tools")

OPTION_DEFAULTS: dict[str, Any] = {"precision": "high"}
_PRECISIONS = ("high", "normal", "low")

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """MNN on the CPU, with one thread."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.precision: str = options["precision"]
        if self.precision not in _PRECISIONS:
            raise ValueError("precision {!r}; one of {}".format(self.precision, ", ".join(_PRECISIONS)))
        settings = {"backend": "CPU", "precision": self.precision, "numThread": 1}
        self.manager = MNN.nn.create_runtime_manager((settings,))

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "mnn",
            "version": metadata.version("MNN"),
            "provider": "",
            "device": "CPU",
            "precision": self.precision,
        }

    def prepare(self, model: bytes) -> Session:
        """Convert and load `model`."""
        proto = onnx.load_model_from_string(model)
        given = {value.name for value in proto.graph.initializer}
        inputs = [value.name for value in proto.graph.input if value.name not in given]
        outputs = [value.name for value in proto.graph.output]
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as folder:
            source, converted = os.path.join(folder, "model.onnx"), os.path.join(folder, "model.mnn")
            with open(source, "wb") as file:
                file.write(model)
            # It always returns True; only the file shows whether it succeeded.
            words = ["", "-f", "ONNX", "--modelFile", source, "--MNNModel", converted, "--bizCode", "onnxspec"]
            converter.mnnconvert(words)
            if not os.path.exists(converted):
                raise RuntimeError("the converter gave up")
            module = MNN.nn.load_module_from_file(converted, inputs, outputs, runtime_manager=self.manager)
        return Session(module, inputs, len(outputs))


class Session:
    """A converted model."""

    def __init__(self, module: Any, inputs: list[str], outputs: int) -> None:
        self._module = module
        self._inputs = inputs
        self._outputs = outputs

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if set(feeds) - set(self._inputs):
            raise RuntimeError("MNN takes nothing in the place of a constant")
        results = self._module.forward([_tensor(feeds[name]) for name in self._inputs])
        if len(results) != self._outputs:
            raise RuntimeError(f"the model cannot be run: it gives {len(results)} of {self._outputs} outputs")
        return [np.array(value.read()) for value in results]


def _tensor(array: np.ndarray) -> Any:
    types = {"float32": MNN.expr.float, "int32": MNN.expr.int}
    if getattr(array, "element", None) or array.dtype.name not in types:
        raise TypeError("MNN takes no {} from Python".format(getattr(array, "element", array.dtype.name)))
    return MNN.expr.const(np.asarray(array, order="C"), list(array.shape), MNN.expr.NCHW, types[array.dtype.name])
