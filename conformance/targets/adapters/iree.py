"""Adapter for IREE, which compiles each model for this machine and runs it. Package:
iree-base-compiler iree-base-runtime onnx.

Options:

``backend`` (default "llvm-cpu"), ``driver`` (default "local-sync")
    Backend of the compiler and driver of the runtime, by IREE's names.
``flags`` (list)
    Further flags of the compiler.

IREE's importer and compiler run in this process; compiling a model takes seconds. bfloat16 is passed as bits.

Tested: iree-base-compiler and iree-base-runtime 3.13.0, on CPU.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import tempfile
from collections.abc import Iterator
from importlib import metadata
from typing import Any

import numpy as np
import onnx

api: Any = importlib.import_module("iree.compiler.api")
ir: Any = importlib.import_module("iree.compiler.ir")
importer: Any = importlib.import_module("iree.compiler.extras.onnx_importer")
rt: Any = importlib.import_module("iree.runtime")

OPTION_DEFAULTS: dict[str, Any] = {"backend": "llvm-cpu", "driver": "local-sync", "flags": []}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """IREE with one backend of its compiler and one driver of its runtime."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.driver: str = options["driver"]
        self.flags = [
            "--iree-input-type=onnx",
            "--iree-hal-target-backends={}".format(options["backend"]),
            *(["--iree-llvmcpu-target-cpu=host"] if options["backend"] == "llvm-cpu" else []),
            *map(str, options["flags"]),
        ]
        if self.driver not in rt.query_available_drivers():
            there = ", ".join(rt.query_available_drivers())
            raise RuntimeError(f"IREE has no driver {self.driver}; it has {there}")
        self.config = rt.Config(self.driver)

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "iree",
            "version": metadata.version("iree-base-compiler"),
            "runtime_version": metadata.version("iree-base-runtime"),
            "provider": "",
            "device": self.driver,
            "flags": self.flags,
        }

    def prepare(self, model: bytes) -> Session:
        """Import `model` and compile it."""
        proto = onnx.shape_inference.infer_shapes(onnx.load_model_from_string(model))
        info = importer.ModelInfo(proto)
        module = info.create_module(context=ir.Context()).operation
        try:
            importer.NodeImporter.define_function(info.main_graph, module).import_all()
        except importer.OnnxImportError as error:
            raise RuntimeError(f"importer: {error}") from None
        code = self._compiled(module.get_asm().encode())
        loaded = rt.load_vm_module(rt.VmModule.copy_buffer(self.config.vm_instance, code), self.config)
        names = [value.name for value in proto.graph.input if value.name in info.main_graph.input_map]
        return Session(self.config, loaded[proto.graph.name], names)

    def _compiled(self, text: bytes) -> bytes:
        """Return the compiled program of a module. The compiler prints its errors, so they are captured."""
        session = api.Session()
        session.set_flags(*self.flags)
        invocation = session.invocation()
        invocation.enable_console_diagnostics()
        with _caught() as printed:
            done = invocation.parse_source(api.Source.wrap_buffer(session, text)) and invocation.execute()
        if not done:
            raise RuntimeError(_reason("".join(printed)))
        output = api.Output.open_membuffer()
        invocation.output_vm_bytecode(output)
        return bytes(output.map_memory())


class Session:
    """A compiled model."""

    def __init__(self, config: Any, function: Any, names: list[str]) -> None:
        self._config = config
        self._function = function
        self._names = names

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if set(feeds) - set(self._names):
            raise RuntimeError("the compiled model takes nothing in the place of a constant")
        try:
            results = self._function(*[self._tensor(feeds[name]) for name in self._names])
        except (IndexError, ValueError, RuntimeError) as error:  # IREE reports the status of a call by these
            raise RuntimeError(re.sub(r"^.*?\.c:\d+: ", "", str(error)).partition("; while ")[0]) from None
        return [np.array(value.to_host()) for value in (results if isinstance(results, (tuple, list)) else [results])]

    def _tensor(self, array: np.ndarray) -> Any:
        if getattr(array, "element", None) != "bfloat16":
            return array
        bits = np.asarray(array, order="C").view(np.ndarray)
        view = self._config.device.allocator.allocate_buffer_copy(
            memory_type=rt.MemoryType.DEVICE_LOCAL,
            allowed_usage=rt.BufferUsage.DEFAULT | rt.BufferUsage.MAPPING,
            device=self._config.device,
            buffer=bits,
            element_type=rt.HalElementType.BFLOAT_16,
        )
        return rt.DeviceArray(self._config.device, view)


@contextlib.contextmanager
def _caught() -> Iterator[list[str]]:
    """Return a context with a list, which at the end gets the text that native code printed on standard error."""
    printed: list[str] = []
    kept = os.dup(2)
    with tempfile.TemporaryFile() as file:
        os.dup2(file.fileno(), 2)
        try:
            yield printed
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            file.seek(0)
            printed.append(file.read().decode(errors="replace"))


def _reason(text: str) -> str:
    """Return the first error of the compiler, without the types of this model, which differ between cases."""
    errors = re.findall(r"error: (.*)", text)
    return str(errors[0]).split(": %")[0] if errors else text.strip() or "the compiler gave up without a word"
