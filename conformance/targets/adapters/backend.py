"""Adapter for any module that implements the interface of ``onnx.backend.base.Backend``.

Options: ``module`` (its dotted name), ``device`` (default "CPU"). The functions may stand in the module itself, as
onnx's convention has it, or in the one subclass of ``Backend`` that the module holds.

Tested: onnxruntime.backend of onnxruntime 1.31.1.
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend

OPTION_DEFAULTS = {"module": "", "device": "CPU"}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """One ONNX backend."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.name: str = options["module"]
        self.device: str = options["device"]
        if not self.name:
            raise ValueError("option 'module' is missing")
        # A module that is not installed may be in the current folder, which comes last.
        if os.getcwd() not in sys.path:
            sys.path.append(os.getcwd())
        module = importlib.import_module(self.name)
        self.backend = _find_backend(module)
        supports = getattr(self.backend, "supports_device", None)
        if supports is not None and not supports(self.device):
            raise RuntimeError(f"{self.name} does not support device {self.device}")
        self.version = str(getattr(importlib.import_module(self.name.split(".")[0]), "__version__", ""))

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": self.name,
            "version": self.version,
            "provider": "",
            "device": self.device,
            "onnx": onnx.__version__,
        }

    def prepare(self, model: bytes) -> Session:
        """Prepare `model`."""
        return prepared(self.backend, onnx.load_model_from_string(model), self.device)


def prepared(backend: Any, model: onnx.ModelProto, *device: str) -> Session:
    """Prepare a model, by default on the backend's device. Without a working `prepare`, runs call `run_model`."""
    prepare = _own(backend, "prepare")
    result = failure = None
    if prepare is not None:
        try:
            result = prepare(model, *device)
        except (NotImplementedError, AttributeError) as error:
            failure = error
    if result is not None:
        return Session(model, result.run, accepted=True)
    run_model = _own(backend, "run_model")
    if run_model is None:
        raise failure or NotImplementedError(f"{backend} has neither prepare nor run_model")
    return Session(model, lambda inputs: run_model(model, inputs, *device), failure)


class Session:
    """A model that a backend prepared, or will run by `run_model`."""

    def __init__(self, model: Any, run: Any, failure: Exception | None = None, accepted: bool = False) -> None:
        self._inputs = [value.name for value in model.graph.input]
        listed = [tensor for tensor in model.graph.initializer if tensor.name in self._inputs]
        self._defaults = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in listed}
        self._outputs = [value.name for value in model.graph.output]
        self._run = run
        self._failure = failure
        self._accepted = accepted

    def run(self, feeds: dict[str, np.ndarray]) -> Any:
        """Return the results of the backend; a mapping is put into the graph's order."""
        # A list has no names: if one default is fed, all are, so that each has its position.
        given = {**self._defaults, **feeds} if feeds.keys() & self._defaults.keys() else feeds
        inputs = [_native(given[name]) for name in self._inputs if name in given]
        try:
            results = self._run(inputs)
        except Exception as error:
            if self._accepted:
                raise
            failure = self._failure or error  # the message of `prepare` counts, if it has raised one
            failure.phase = "load"  # type: ignore[attr-defined]
            if failure is error:
                raise
            raise failure from None
        self._accepted = True
        return [results.get(name) for name in self._outputs] if isinstance(results, dict) else results


def _find_backend(module: Any) -> Any:
    if callable(getattr(module, "prepare", None)) or callable(getattr(module, "run_model", None)):
        return module
    classes = {
        value
        for value in vars(module).values()
        if inspect.isclass(value) and issubclass(value, Backend) and value is not Backend
    }
    if len(classes) != 1:
        raise RuntimeError(
            "{} has neither prepare nor run_model, and {} classes derived from onnx.backend.base.Backend".format(
                module.__name__, len(classes) or "no"
            )
        )
    return classes.pop()


def _own(backend: Any, name: str) -> Any:
    """Return a function of the backend, unless it inherits that of onnx's base class, which does nothing."""
    function = getattr(backend, name, None)
    if not callable(function):
        return None
    inherited = getattr(getattr(Backend, name), "__func__", None)
    return None if getattr(function, "__func__", function) is inherited else function


def _native(array: np.ndarray) -> np.ndarray:
    """Return bfloat16 bits with the type of ml_dtypes."""
    if getattr(array, "element", None) != "bfloat16":
        return array
    import ml_dtypes

    return array.view(np.ndarray).view(ml_dtypes.bfloat16)
