"""A kernel of the zoo as an adapter, to be run, diagnosed and named as any target is.

Options ``batch``: the path of its module; ``fault``: which of its faults it has, none for the right kernel.

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
        sys.modules[path.stem] = self.batch  # where dataclasses look for it
        spec.loader.exec_module(self.batch)
        self.fault: str | None = options.get("fault")
        if self.fault is not None and self.fault not in self.batch.FAULTS:
            raise ValueError(f"no fault {self.fault!r} in {path.stem}")

    def describe(self) -> dict[str, Any]:
        """What runs here; JSON values only."""
        name = f"{self.batch.__name__}:{self.fault or 'right'}"
        return {"runtime": name, "version": self.batch.WRITTEN, "provider": "", "device": "CPU"}

    def prepare(self, model: bytes) -> Any:
        """A session of a model."""
        return _Session(self.batch.prepare(model, self.fault))


class _Session:
    """A kernel's session, which is fed bfloat16 as ml_dtypes has it."""

    def __init__(self, session: Any) -> None:
        self._session = session

    def run(self, feeds: dict[str, Any]) -> Any:
        """Outputs in the order of the graph's."""
        return self._session.run({name: _typed(array) for name, array in feeds.items()})


def _typed(array: Any) -> Any:
    if getattr(array, "element", None) != "bfloat16":
        return array
    import ml_dtypes

    return array.view(np.ndarray).view(ml_dtypes.bfloat16)
