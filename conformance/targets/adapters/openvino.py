"""Adapter for OpenVINO, which reads the ONNX model from its bytes. Package: openvino.

Options:

``device`` (default CPU)
``precision`` (default "accuracy")
    The hint EXECUTION_MODE_HINT. With "accuracy" a device computes in the model's types. With "performance", OpenVINO's
    default, it may compute in lower precision: CPUs with bfloat16 instructions run float32 in bfloat16. Such a target
    declares ``accuracy = "bf16-math"``, or the class of its device.
``config`` (table)
    Further properties to compile with, as OpenVINO names them.

Tested: openvino 2025.4.1 and 2026.4.1, on CPU.
"""

from __future__ import annotations

import importlib
import re
from typing import Any

import numpy as np

ov: Any = importlib.import_module("openvino")

OPTION_DEFAULTS: dict[str, Any] = {"device": "CPU", "precision": "accuracy", "config": {}}
_MODES = ("accuracy", "performance")

# Outputs are the request's own memory, which the next run writes to: OpenVINO's documents say so.
SESSIONS = ("weights", "several", "many", "refusals", "sizes")


class Adapter:
    """OpenVINO on one device."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.device: str = options["device"]
        if options["precision"] not in _MODES:
            raise ValueError("precision {!r}; one of {}".format(options["precision"], ", ".join(_MODES)))
        self.config: dict[str, Any] = {"EXECUTION_MODE_HINT": options["precision"].upper(), **options["config"]}
        self.core = ov.Core()
        there = self.core.available_devices
        if not any(self.device.split(".")[0].split(":")[0] in (name.split(".")[0], "AUTO", "HETERO") for name in there):
            raise RuntimeError("OpenVINO has no device {}; it has {}".format(self.device, ", ".join(there) or "none"))

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "openvino",
            "version": ov.__version__.split("-")[0],
            "build": ov.__version__,
            "provider": "",
            "device": self.device,
            "device_name": str(self._property("FULL_DEVICE_NAME")),
            "capabilities": [str(name) for name in self._property("OPTIMIZATION_CAPABILITIES") or ()],
            "config": {key: str(value) for key, value in self.config.items()},
        }

    def _property(self, name: str) -> Any:
        try:
            return self.core.get_property(self.device, name)
        except RuntimeError:  # AUTO and its like have none of their own
            return ""

    def prepare(self, model: bytes) -> Session:
        """Convert `model` and compile it."""
        try:
            converted = self.core.read_model(model, b"")
            compiled = self.core.compile_model(converted, self.device, self.config)
        except RuntimeError as error:
            raise RuntimeError(_reason(str(error))) from None
        return Session(compiled, _constants(converted))


class Session:
    """A compiled model."""

    def __init__(self, compiled: Any, constants: frozenset[str]) -> None:
        self._constants = constants
        # Constants have no port, even if the ONNX graph has them as inputs, nor have inputs that the conversion drops.
        self._ports = {name: port for port in compiled.inputs for name in port.get_names()}
        self._outputs = list(compiled.outputs)
        self._request = compiled.create_infer_request()

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        for name, array in feeds.items():
            if name in self._ports:
                self._request.set_tensor(self._ports[name], _tensor(array))
            elif name in self._constants:
                raise RuntimeError(f"the compiled model has no input {name}, which is a constant in it")
        try:
            self._request.infer()
        except RuntimeError as error:
            raise RuntimeError(_reason(str(error))) from None
        return [_array(self._request.get_tensor(port)) for port in self._outputs]


def _reason(text: str) -> str:
    """Return a message of OpenVINO without positions in its sources and names of its nodes, which differ between
    cases."""
    message = re.sub(r"END: node: .*? CALLBACK HAS THROWN:\s*", "", text, flags=re.DOTALL)
    lines = [line.strip() for line in message.splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("Exception from ")) or text


def _constants(converted: Any) -> frozenset[str]:
    """Return names of the tensors that are constants of a converted model."""
    constants = (node for node in converted.get_ops() if node.get_type_name() == "Constant")
    return frozenset(name for node in constants for name in node.output(0).get_names())


def _tensor(array: np.ndarray) -> Any:
    """Return an array as a tensor of OpenVINO, with bfloat16 as bits. OpenVINO itself refuses a wrong type."""
    if getattr(array, "element", None) == "bfloat16":
        return ov.Tensor(np.asarray(array, order="C").view(np.ndarray), list(array.shape), ov.Type.bf16)
    return ov.Tensor(np.asarray(array, order="C"))


def _array(tensor: Any) -> Any:
    """Return a result as a copy; bfloat16, which NumPy does not have, as bits."""
    if tensor.get_element_type() != ov.Type.bf16:
        return np.array(tensor.data)
    return np.array(tensor.data).view([("bfloat16", np.uint16)])
