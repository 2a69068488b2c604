"""A kernel of the zoo as an adapter, to be run, diagnosed and named like any target.

Options ``batch``: the path of its module; ``fault``: the id of its fault, none for the right kernel.

Tested: NumPy 2.3, onnx 1.23. Package: onnx.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np


class Adapter:
    """One kernel of a batch."""

    def __init__(self, options: dict[str, Any]) -> None:
        path = Path(options["batch"])
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise ValueError(f"{path} is no module")
        self.batch: Any = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = self.batch  # dataclasses look it up here
        spec.loader.exec_module(self.batch)
        self.fault: str | None = options.get("fault")
        if self.fault is not None and self.fault not in self.batch.FAULTS:
            raise ValueError(f"no fault {self.fault!r} in {path.stem}")

    def describe(self) -> dict[str, Any]:
        """Return a description of the runtime, as JSON data."""
        name = f"{self.batch.__name__}:{self.fault or 'right'}"
        return {"runtime": name, "version": self.batch.WRITTEN, "provider": "", "device": "CPU"}

    def prepare(self, model: bytes) -> Any:
        """Return a session of a model."""
        return _Session(self.batch.prepare(model, self.fault))


class _Session:
    """A kernel's session; it feeds bfloat16 as ml_dtypes arrays."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, feeds: dict[str, Any]) -> Any:
        """Return the outputs in the graph's order."""
        return self._session.run({name: _typed(array) for name, array in feeds.items()})


def _typed(array: Any) -> Any:
    if getattr(array, "element", None) != "bfloat16":
        return array
    import ml_dtypes

    return array.view(np.ndarray).view(ml_dtypes.bfloat16)
