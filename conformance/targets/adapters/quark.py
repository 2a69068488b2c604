"""Adapter for AMD Quark's custom operators (``com.amd.quark`` and the old ``com.vai.quantize``) in onnxruntime on the
CPU. Package: amd-quark.

Options: ``library`` (path of the custom-op library; else it is taken from the installed package amd-quark, or built
once from its sources), ``package`` (folder of the package, where it is not installed), ``compiler`` (command of a C++
compiler), ``cache`` (folder for built libraries), and those of the adapter ``onnxruntime``.

It travels bundled with two parts (:data:`.PARTS`): the adapter ``onnxruntime`` and ``quark_library``.

Tested: amd-quark 0.13 with onnxruntime 1.31.1, built by g++ 12.2.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

runtime: Any = importlib.import_module("onnxspec_part_onnxruntime")
quark_library: Any = importlib.import_module("onnxspec_part_quark_library")

OWN = {"library": "", "package": "", "compiler": "", "cache": ""}
OPTION_DEFAULTS = {**OWN, **runtime.OPTION_DEFAULTS}
TANHF_ARGUMENTS = 144
"""Number of arguments, 1/16, 2/16, ... 9, whose values identify the C library's tanhf."""

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """onnxruntime with AMD Quark's custom operators."""

    def __init__(self, options: dict[str, Any]) -> None:
        settings = dict(options)
        if settings["provider"] != runtime.CPU:
            message = "AMD Quark's kernels for the CPU are what this target runs, not those of {}"
            raise ValueError(message.format(settings["provider"]))
        self.library = quark_library.quark_library(**{key: settings.pop(key) for key in OWN})
        # A library for another onnxruntime may crash the process here: then this line is among its last output.
        print(f"registering {self.library.path} in onnxruntime {runtime.ort.__version__}")
        settings["custom_op_libraries"] = [*settings["custom_op_libraries"], self.library.path]
        self._runtime = runtime.Adapter(settings)

    def describe(self) -> dict[str, Any]:
        """Describe the runtime; JSON values only."""
        below = self._runtime.describe()
        own = {"runtime": "amd-quark", "version": self.library.version, "build": f"onnxruntime {below['version']}"}
        library = {"library": self.library.path, "library_origin": self.library.origin}
        return {**below, **own, **library, "compiler": self.library.compiler, "tanhf": tanhf_bits()}

    def prepare(self, model: bytes) -> Any:
        """Create a session, as the adapter ``onnxruntime`` does."""
        return self._runtime.prepare(model)


def tanhf_bits() -> str:
    """Return the values of this process's tanhf for fixed arguments, as hexadecimal floats: results of the kernel rest
    on its last bit, in which C libraries differ. Empty where it cannot be asked."""
    try:
        tanhf = ctypes.CDLL(None).tanhf
    except (OSError, AttributeError, TypeError):
        return ""
    tanhf.argtypes, tanhf.restype = (ctypes.c_float,), ctypes.c_float
    return " ".join(float(tanhf(k / 16)).hex() for k in range(1, TANHF_ARGUMENTS + 1))
