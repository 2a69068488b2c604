"""Adapter for Rockchip's rknn-toolkit2, whose simulator runs programs of its NPUs on x86. Package: rknn-toolkit2.

Options:

``platform`` (default rk3588)
    Which NPU, by the toolkit's name for it. Tensors of numbers are float16 there, so a target declares
    ``accuracy = "f16-storage"``.
``calibrated`` (default false)
    Weights and what flows are held in int8, by a calibration of the toolkit's own on the first inputs that come. What
    is compared then is a model of the toolkit's making, so such a target declares ``accuracy = "graded"``.

The toolkit takes a model from a file, and compiles it anew for each. Shapes that a model leaves open it refuses.

Tested: rknn-toolkit2 2.5.0 (Python 3.11, NumPy 1.26, onnx 1.18, protobuf 4.25, PyTorch 2.4).
"""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import shutil
import tempfile
from typing import Any

import numpy as np
import onnx

api: Any = importlib.import_module("rknn.api")

OPTION_DEFAULTS: dict[str, Any] = {"platform": "rk3588", "calibrated": False}


class Adapter:
    """The simulator of one NPU."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.platform: str = options["platform"]
        self.calibrated: bool = options["calibrated"]

    def describe(self) -> dict[str, Any]:
        """Describe the runtime; JSON values only."""
        return {
            "runtime": "rknn-toolkit2",
            "version": importlib.metadata.version("rknn-toolkit2"),
            "provider": "",
            "device": f"simulator of {self.platform}",
            "calibrated": self.calibrated,
        }

    def prepare(self, model: bytes) -> Session:
        """Compile `model`, or keep it until there is something to calibrate on."""
        session = Session(model, self.platform)
        if not self.calibrated:
            session.build()
        return session


class Session:
    """A model in a folder of its own, compiled once."""

    def __init__(self, model: bytes, platform: str) -> None:
        graph = onnx.load_model_from_string(model).graph
        held = {tensor.name for tensor in graph.initializer}
        self._names = [value.name for value in graph.input if value.name not in held]
        self._kinds = [onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in graph.output]
        self._platform = platform
        self._folder = tempfile.mkdtemp(prefix="onnxspec-")
        self._compiled: Any = None
        with open(os.path.join(self._folder, "model.onnx"), "wb") as file:
            file.write(model)

    def build(self, calibrating: dict[str, np.ndarray] | None = None) -> None:
        """Compile, by a calibration on some inputs where there are any."""
        compiled = api.RKNN(verbose=False)
        data = None if calibrating is None else self._written(calibrating)
        try:
            _require(compiled.config(target_platform=self._platform), "config")
            _require(compiled.load_onnx(os.path.join(self._folder, "model.onnx")), "load_onnx")
            _require(compiled.build(do_quantization=data is not None, dataset=data), "build")
            _require(compiled.init_runtime(), "init_runtime")
        except Exception as error:
            compiled.release()
            self.finish()
            raise RuntimeError(_reason(str(error))) from None
        self._compiled = compiled

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Return outputs in the graph's order, in the types that the model declares: the simulator gives float32."""
        if set(feeds) - set(self._names):
            raise TypeError("the compiled model takes nothing in the place of a constant")
        if self._compiled is None:
            self.build(feeds)
        inputs = [np.ascontiguousarray(feeds[name]) for name in self._names]
        outputs = self._compiled.inference(inputs=inputs, data_format=["nchw"] * len(inputs))
        if outputs is None:
            raise RuntimeError("the simulator gives no outputs")
        return [array.astype(kind) for array, kind in zip(outputs, self._kinds, strict=True)]

    def finish(self) -> None:
        """Let go of it."""
        if self._compiled is not None:
            self._compiled.release()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _written(self, feeds: dict[str, np.ndarray]) -> str:
        """Return the toolkit's list of calibration data: one line of files for each set of inputs."""
        files = []
        for number, name in enumerate(self._names):
            files.append(os.path.join(self._folder, f"{number}.npy"))
            np.save(files[-1], feeds[name])
        path = os.path.join(self._folder, "dataset.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write(" ".join(files) + "\n")
        return path


def _require(code: Any, step: str) -> None:
    if code != 0:
        raise RuntimeError(f"{step} returned {code}")


def _reason(text: str) -> str:
    """Return the words of the toolkit without colours and places in its sources: of a traceback the last line."""
    lines = [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines() if line.strip()]
    return lines[-1] if lines else "the toolkit gives no reason"
