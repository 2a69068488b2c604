"""Adapter for ``onnx.reference.ReferenceEvaluator``, the evaluator that ships with onnx. Package: onnx. No options.

Tested: onnx 1.17.0 to 1.23.2.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

OPTION_DEFAULTS: dict[str, Any] = {}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """onnx's reference evaluator."""

    def __init__(self, options: dict[str, Any]) -> None:
        pass

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "onnx-reference",
            "version": onnx.__version__,
            "provider": "",
            "device": "CPU",
        }

    def prepare(self, model: bytes) -> Session:
        """Build an evaluator for `model`."""
        return Session(ReferenceEvaluator(onnx.load_model_from_string(model)))


class Session:
    """A model held by the evaluator."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        results = self._evaluator.run(None, {name: _native(array) for name, array in feeds.items()})
        return list(results)


def _native(array: np.ndarray) -> np.ndarray:
    """bfloat16 bits as the type that this onnx uses for them."""
    if getattr(array, "element", None) != "bfloat16":
        return array
    dtype: Any = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    if np.dtype(dtype).itemsize != 2:  # onnx before 1.19 maps it to float32 and has a type of its own for values
        dtype = importlib.import_module("onnx._custom_element_types").bfloat16
    return array.view(np.ndarray).view(dtype)
