"""Adapter for the module dnn of OpenCV, which imports ONNX models and runs them. Package: opencv-python-headless
onnx. No options.

It refuses bfloat16 and float64.

Tested: opencv-python-headless 5.0.0, on CPU.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np
import onnx

cv2: Any = importlib.import_module("cv2")
cv2.setNumThreads(1)

OPTION_DEFAULTS: dict[str, Any] = {}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """OpenCV's own engine on the CPU."""

    def __init__(self, options: dict[str, Any]) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "opencv",
            "version": cv2.__version__,
            "provider": "",
            "device": "CPU",
        }

    def prepare(self, model: bytes) -> Session:
        """Import `model`."""
        proto = onnx.load_model_from_string(model)  # OpenCV has its own order of outputs
        try:
            net = cv2.dnn.readNetFromONNX(np.frombuffer(model, np.uint8))
        except cv2.error as error:
            raise RuntimeError(_reason(str(error))) from None
        return Session(net, [value.name for value in proto.graph.output])


class Session:
    """An imported model."""

    def __init__(self, net: Any, outputs: list[str]) -> None:
        self._net = net
        self._outputs = outputs

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        try:
            for name, array in feeds.items():
                if getattr(array, "element", None) == "bfloat16":
                    raise TypeError("OpenCV takes no bfloat16 from Python")
                self._net.setInput(np.asarray(array, order="C"), name)
            results = self._net.forward(self._outputs)
        except cv2.error as error:
            raise RuntimeError(_reason(str(error))) from None
        return [np.array(result) for result in results]


def _reason(text: str) -> str:
    """Return a message of OpenCV without positions in its sources and names of this model."""
    lines = [line.strip("> ").strip() for line in text.splitlines() if line.strip("> ")]
    return re.sub(r"OpenCV\([\d.a-z-]+\) \S+: error: ", "", " ".join(lines))
