"""Adapter for AMD Quark's custom operators (``com.amd.quark`` and the old ``com.vai.quantize``) in onnxruntime on the
CPU. Package: amd-quark.

Options: ``library`` (path of the custom-op library; default: it is built once from the sources of the package
amd-quark, by the compiler that the environment names in CXX), ``package`` (folder of the package, where it is not
installed), and those of the adapter ``onnxruntime``.

Its source includes two parts (:data:`.PARTS`): the adapter ``onnxruntime`` and ``quark_library``.

Tested: amd-quark 0.13 with onnxruntime 1.31.1, built by g++ 12.2.
"""

from __future__ import annotations

import importlib
from typing import Any

runtime: Any = importlib.import_module("onnxspec_part_onnxruntime")
quark_library: Any = importlib.import_module("onnxspec_part_quark_library")

OWN = {"library": "", "package": ""}
OPTION_DEFAULTS = {**OWN, **runtime.OPTION_DEFAULTS}

SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")


class Adapter:
    """onnxruntime with AMD Quark's custom operators."""

    def __init__(self, options: dict[str, Any]) -> None:
        settings = dict(options)
        if settings["provider"] != runtime.CPU:
            message = "AMD Quark's kernels for the CPU are what this target runs, not those of {}"
            raise ValueError(message.format(settings["provider"]))
        self.library = quark_library.quark_library(**{key: settings.pop(key) for key in OWN})
        # A library for another onnxruntime may crash the process here; this line is then in its last output.
        print(f"registering {self.library.path} in onnxruntime {runtime.ort.__version__}")
        settings["custom_op_libraries"] = [*settings["custom_op_libraries"], self.library.path]
        self._runtime = runtime.Adapter(settings)

    def describe(self) -> dict[str, Any]:
        below = self._runtime.describe()
        own = {"runtime": "amd-quark", "version": self.library.version, "build": f"onnxruntime {below['version']}"}
        library = {"library": self.library.path, "library_origin": self.library.origin}
        return {**below, **own, **library, "compiler": self.library.compiler}

    def prepare(self, model: bytes) -> Any:
        """Create a session, as the adapter ``onnxruntime`` does."""
        return self._runtime.prepare(model)
