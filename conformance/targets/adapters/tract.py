"""Adapter for tract, the inference engine in Rust, through its Python package. Package: tract.

Option ``runtime`` (default "default", which is the CPU; "cuda" and "metal" where the build has them).

tract reads a model from a temporary file. It has float16, float32 and float64, and refuses bfloat16.

Tested: tract 0.23.9.
"""

from __future__ import annotations

import importlib
import os
import re
import tempfile
from typing import Any

import numpy as np

os.environ["RUST_BACKTRACE"] = "0"  # tract puts the trace into the text of every refusal
tract: Any = importlib.import_module("tract")

TENSOR: Any = getattr(tract, "Tensor", None) or tract.Value  # as it is called up to 0.22

OPTION_DEFAULTS: dict[str, Any] = {"runtime": "default"}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """tract on one of its runtimes."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.name: str = options["runtime"]
        self.runtime = None if self.name == "default" else tract.runtime_for_name(self.name)
        # Up to 0.22 the same steps have other names.
        onnx = tract.onnx()
        self.load = onnx.load if hasattr(onnx, "load") else onnx.model_for_path

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "tract",
            "version": tract.version(),
            "provider": "",
            "device": "CPU" if self.runtime is None else self.name,
        }

    def prepare(self, model: bytes) -> Session:
        """Read `model`, infer its shapes, optimize it."""
        descriptor, path = tempfile.mkstemp(suffix=".onnx", prefix="onnxspec-")
        try:
            with open(descriptor, "wb") as file:
                file.write(model)
            inference = self.load(path)
        finally:
            os.unlink(path)
        names = [inference.input_name(number) for number in range(inference.input_count())]
        try:
            typed = inference.into_model() if hasattr(inference, "into_model") else inference.into_typed()
            return Session(typed.into_runnable() if self.runtime is None else self.runtime.prepare(typed), names)
        except tract.TractError as error:
            raise RuntimeError(_reason(str(error))) from None


class Session:
    """A model that is ready to run."""

    def __init__(self, runnable: Any, names: list[str]) -> None:
        self._runnable = runnable
        self._names = names

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if set(feeds) - set(self._names):
            raise TypeError("tract takes nothing in the place of a constant")
        inputs = [_tensor(feeds[name]) for name in self._names]
        try:
            return [value.to_numpy() for value in self._runnable.run(inputs)]
        except tract.TractError as error:
            raise RuntimeError(_reason(str(error))) from None


def _tensor(array: np.ndarray) -> Any:
    if getattr(array, "element", None) == "bfloat16":
        raise TypeError("tract has no bfloat16")
    return TENSOR.from_numpy(np.asarray(array, order="C"))


def _reason(text: str) -> str:
    """Return a message of tract without the numbers of its nodes, which differ between cases."""
    return re.sub(r"#\d+ ", "", text)
