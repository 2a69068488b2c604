"""Adapter for Rockchip's rknn-toolkit2, whose simulator runs programs of its NPUs on x86. Package: rknn-toolkit2.

Option ``platform`` (default rk3588): the NPU, by the toolkit's name. Tensors of numbers are float16 there, so a target
declares ``accuracy = "f16-storage"``.

The toolkit reads a model from a file and compiles it. It refuses symbolic shapes.

Tested: rknn-toolkit2 2.5.0 (Python 3.11, NumPy 1.26, onnx 1.18, protobuf 4.25, PyTorch 2.4).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import tempfile
from typing import Any

import numpy as np
import onnx

api: Any = importlib.import_module("rknn.api")

OPTION_DEFAULTS: dict[str, Any] = {"platform": "rk3588"}


class Adapter:
    """The simulator of one NPU."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.platform: str = options["platform"]

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "rknn-toolkit2",
            "version": importlib.metadata.version("rknn-toolkit2"),
            "provider": "",
            "device": f"simulator of {self.platform}",
        }

    def prepare(self, model: bytes) -> Session:
        """Compile `model`."""
        return Session(model, self.platform)


class Session:
    """A compiled model, and the folder that it came from."""

    def __init__(self, model: bytes, platform: str) -> None:
        graph = onnx.load_model_from_string(model).graph
        held = {tensor.name for tensor in graph.initializer}
        self._names = [value.name for value in graph.input if value.name not in held]
        self._types = [onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in graph.output]
        self._folder = tempfile.TemporaryDirectory(prefix="onnxspec-")
        path = os.path.join(self._folder.name, "model.onnx")
        with open(path, "wb") as file:
            file.write(model)
        self._compiled = api.RKNN(verbose=False)
        try:
            _require(self._compiled.config(target_platform=platform), "config")
            _require(self._compiled.load_onnx(path), "load_onnx")
            _require(self._compiled.build(do_quantization=False), "build")
            _require(self._compiled.init_runtime(), "init_runtime")
        except Exception as error:
            self.finish()
            raise RuntimeError(_reason(str(error))) from None

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Return outputs in the graph's order, in the types that the model declares: the simulator gives float32."""
        if set(feeds) - set(self._names):
            raise TypeError("the compiled model takes nothing in the place of a constant")
        inputs = [np.ascontiguousarray(feeds[name]) for name in self._names]
        outputs = self._compiled.inference(inputs=inputs, data_format=["nchw"] * len(inputs))
        if outputs is None:
            raise RuntimeError("the simulator gives no outputs")
        return [array.astype(type_) for array, type_ in zip(outputs, self._types, strict=True)]

    def finish(self) -> None:
        """Release the compiled model."""
        self._compiled.release()
        self._folder.cleanup()


def _require(code: Any, step: str) -> None:
    if code != 0:
        raise RuntimeError(f"{step} returned {code}")


def _reason(text: str) -> str:
    """Return the last line of a message of the toolkit, without colours."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    return lines[-1] if lines else "the toolkit gives no reason"
