"""Adapter for onnxruntime with any of its execution providers. Package: onnxruntime.

Options:

``provider`` (default CPUExecutionProvider), ``provider_options`` (table)
    ``{digest}`` in a value stands for the SHA-256 of the model: providers that keep compiled models under a name of the
    user's choice (``cache_key`` of VitisAIExecutionProvider, ``migraphx_save_model_path``) would otherwise run one
    case's with the next.
``session_options`` (table of session config entries), ``custom_op_libraries`` (list of paths)
``threads`` (default 1, both within and between operators)
``optimize`` (default false: graph optimizations off; true: all of them)
``provider_library``, ``provider_library_name``, ``device``
    A provider that is a plug-in (onnxruntime 1.23 and later): path of its library, or name of the Python package that
    brings one (it has ``get_library_path`` or ``library_path``); the name to register it under (default: the
    provider's; one that ends in ``.virtual`` lets it offer devices that are not there); "CPU", "GPU" or
    "NPU" where not its first device is meant.
``surroundings`` (default false)
    The model has other nodes around the one under test (a *wrap* lane), and the provider need not take those.

With a provider other than the CPU's named, nothing counts as run without proof that every node ran there:
``get_providers()`` only lists the registered ones. The proof is the session's own record of the assignment (onnxruntime
1.24 and later) or, before that and where the record has none of the nodes, the profile of the runs.

Tested: onnxruntime 1.19.0, 1.24.4 and 1.32.0; onnxruntime-openvino 1.22.0 (profile) and 1.24.1 (record);
onnxruntime-ep-openvino 1.8.1 (plug-in; registered, no device of Intel's at hand); onnxruntime-qnn 2.7.0 (plug-in;
record); onnxruntime-ggml 0.2.0 (plug-in; record); onnxruntime-webgpu 1.27.0 (profile).
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import json
import os
import shutil
import sys
import tempfile
from typing import Any

import numpy as np

# From 1.31 on, the import starts a thread for telemetry. Without it, a process that has only loaded onnxruntime has no
# further thread and can be forked (1.19 to 1.32).
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
ort: Any = importlib.import_module("onnxruntime")

FORKS = True
SESSIONS = ("weights", "held", "several", "many", "refusals", "sizes")

CPU = "CPUExecutionProvider"
BFLOAT16 = 16  # TensorProto.BFLOAT16
SURROUNDINGS = ("Cast", "QuantizeLinear", "DequantizeLinear", "Neg", "Add", "Squeeze", "Transpose", "Reshape")
"""Operators that a wrap puts around a node."""
OPTION_DEFAULTS: dict[str, Any] = {
    "provider": CPU,
    "provider_options": {},
    "session_options": {},
    "custom_op_libraries": [],
    "threads": 1,
    "optimize": False,
    "provider_library": "",
    "provider_library_name": "",
    "device": "",
    "surroundings": False,
}


class FellBackError(Exception):
    """Error for a model that did not run, or is not shown to have run, on the requested provider."""

    status = "fell-back"

    def __init__(self, message: str, proof: str = "") -> None:
        super().__init__(message)
        self.proof = proof


class Adapter:
    """onnxruntime in one configuration."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.provider: str = options["provider"]
        self.provider_options = {key: _text(value) for key, value in options["provider_options"].items()}
        self.entries = {key: _text(value) for key, value in options["session_options"].items()}
        self.threads: int = options["threads"]
        self.optimize: bool = options["optimize"]
        self.custom_op_libraries = [str(path) for path in options["custom_op_libraries"]]
        self.apart = SURROUNDINGS if options["surroundings"] else ()
        self.devices: list[Any] = []
        self.provider_version = ""
        available = ort.get_available_providers()
        if options["provider_library"]:
            self.devices = _plug_in(self.provider, options)
            package = sys.modules.get(options["provider_library"])  # none for the path of a library
            self.provider_version = str(getattr(package, "__version__", ""))
        elif self.provider not in available:
            raise RuntimeError(
                f"this onnxruntime {ort.__version__} has no {self.provider}; it has {', '.join(available)}"
            )
        self.recorded = hasattr(ort.InferenceSession, "get_provider_graph_assignment_info")
        if self.provider in ("CUDAExecutionProvider", "TensorrtExecutionProvider") and hasattr(ort, "preload_dlls"):
            ort.preload_dlls()  # CUDA's libraries may come from Python packages
        self._session_options = self._make_session_options()

    def describe(self) -> dict[str, Any]:
        return {
            "runtime": "onnxruntime",
            "version": ort.__version__,
            "build": ort.get_build_info() if hasattr(ort, "get_build_info") else "",
            "device": ort.get_device(),
            "provider": self.provider,
            "provider_version": self.provider_version,
            "provider_options": self.provider_options,
            "session_options": self.entries,
            "custom_op_libraries": self.custom_op_libraries,
            "devices": [_device_text(device) for device in self.devices],
            "available_providers": list(ort.get_available_providers()),
            "threads": self.threads,
            "optimize": self.optimize,
        }

    def prepare(self, model: bytes) -> Session:
        """Create a session on the requested provider, and on no other."""
        if self.provider == CPU:
            return Session(self._create(model, self._session_options))
        if self.recorded:
            session = Session(self._create(model, self._session_options))
            nodes = session.assigned_nodes()
            if any(operator not in self.apart for _, operator, _ in nodes):
                session.proof = _judge_placement(self.provider, nodes, "assignment record", self.apart)
                return session
            del session  # some providers record nothing about nodes that they have compiled; the profile has them
        folder = tempfile.mkdtemp(prefix="onnxspec-")
        try:
            options = self._make_session_options()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, "profile")
            return ProfiledSession(self._create(model, options), self.provider, folder, self.apart)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _create(self, model: bytes, options: Any) -> Any:
        chosen = self.provider_options
        if any("{digest}" in value for value in chosen.values()):
            digest = hashlib.sha256(model).hexdigest()
            chosen = {key: value.replace("{digest}", digest) for key, value in chosen.items()}
        try:
            if self.devices:
                options = self._make_session_options()
                options.add_provider_for_devices(self.devices, chosen)
                session = ort.InferenceSession(model, options)
            else:
                # enable_fallback=0: otherwise the CPU's provider silently replaces one that fails.
                session = ort.InferenceSession(model, options, providers=[(self.provider, chosen)], enable_fallback=0)
        except Exception as error:
            if "fallback to CPU EP has been explicitly disabled" in str(error):
                raise FellBackError(f"{self.provider} does not take it", str(error)) from None
            raise
        session.disable_fallback()
        if self.provider not in session.get_providers():
            raise FellBackError(
                "{} did not start; the session has {}".format(self.provider, ", ".join(session.get_providers()))
            )
        return session

    def _make_session_options(self) -> Any:
        options = ort.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.inter_op_num_threads = self.threads
        options.log_severity_level = 4
        level = ort.GraphOptimizationLevel
        options.graph_optimization_level = level.ORT_ENABLE_ALL if self.optimize else level.ORT_DISABLE_ALL
        for key, value in self.entries.items():
            options.add_session_config_entry(key, value)
        for path in self.custom_op_libraries:
            options.register_custom_ops_library(path)
        if self.provider != CPU:
            # With nodes around it, the session would fail for those; then only the record can prove the placement.
            if not self.apart:
                options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
            if self.recorded:
                options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        return options


def _plug_in(provider: str, settings: dict[str, Any]) -> list[Any]:
    """Register the library of a plug-in and return its device. Raise RuntimeError if there is none."""
    if not hasattr(ort, "register_execution_provider_library"):
        raise RuntimeError(f"this onnxruntime {ort.__version__} has no plug-in providers; 1.23 and later have")
    library = settings["provider_library"]
    if not any(mark in library for mark in ("/", "\\", ".")):
        package = importlib.import_module(library)
        library = (getattr(package, "get_library_path", None) or package.library_path)()
    ort.register_execution_provider_library(settings["provider_library_name"] or provider, library)
    every = ort.get_ep_devices()
    own = [device for device in every if device.ep_name == provider]
    kind = settings["device"].upper()
    fitting = [device for device in own if kind in ("", device.device.type.name)]
    if not fitting:
        there = ", ".join(_device_text(device) for device in own or every)
        raise RuntimeError("{} offers no {}device here; there is {}".format(provider, kind and kind + " ", there))
    return fitting[:1]


def _device_text(device: Any) -> str:
    return f"{device.ep_name} on {device.device.type.name}"


def _text(value: Any) -> str:
    """Return an option as onnxruntime takes it: switches are "0" and "1"."""
    return str(int(value)) if isinstance(value, bool) else str(value)


class Session:
    """A model loaded by onnxruntime."""

    def __init__(self, session: Any) -> None:
        self.proof = ""
        self._session = session
        self._inputs = {value.name: value.type for value in session.get_inputs()}
        self._outputs = [value.name for value in session.get_outputs()]
        types = list(self._inputs.values()) + [value.type for value in session.get_outputs()]
        self._raw = "tensor(bfloat16)" in types
        if self._raw and not hasattr(ort.OrtValue, "ortvalue_from_numpy_with_onnx_type"):
            raise RuntimeError(f"onnxruntime {ort.__version__} cannot be handed bfloat16 from Python")

    def run(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        if self._raw:
            return self._run_raw(feeds)
        outputs: list[Any] = self._session.run(None, feeds)
        return outputs

    def assigned_nodes(self) -> list[tuple[str, str, str]]:
        """Return provider, operator and name of every node in the session's record."""
        return [
            (part.ep_name, node.op_type, node.name)
            for part in self._session.get_provider_graph_assignment_info()
            for node in part.get_nodes()
        ]

    def _run_raw(self, feeds: dict[str, np.ndarray]) -> list[Any]:
        """Run with bound values: NumPy has no bfloat16, and `run` would refuse the bits."""
        binding = self._session.io_binding()
        for name, array in feeds.items():
            if self._inputs.get(name) == "tensor(bfloat16)":
                value = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(np.ndarray), BFLOAT16)
            else:
                value = ort.OrtValue.ortvalue_from_numpy(array)
            binding.bind_ortvalue_input(name, value)
        for name in self._outputs:
            binding.bind_output(name, "cpu")
        self._session.run_with_iobinding(binding)
        return [_array(value) for value in binding.get_outputs()]


class ProfiledSession(Session):
    """A session whose profile, once the runs are over, shows which provider ran each node."""

    def __init__(self, session: Any, provider: str, folder: str, apart: tuple[str, ...] = ()) -> None:
        super().__init__(session)
        self._provider = provider
        self._apart = apart
        self._folder = folder

    def finish(self) -> None:
        """Read the profile. Raise FellBackError unless every node ran on the requested provider."""
        try:
            with open(self._session.end_profiling(), encoding="utf-8") as file:
                events = json.load(file)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        ran = {
            (event["args"]["provider"], str(event["args"].get("op_name", "")), str(event.get("name", "")))
            for event in events
            if event.get("cat") == "Node" and event.get("args", {}).get("provider")
        }
        self.proof = _judge_placement(self._provider, sorted(ran), "profile", self._apart)


def _judge_placement(provider: str, nodes: list[tuple[str, str, str]], source: str, apart: tuple[str, ...] = ()) -> str:
    """Return the proof from (provider, operator, name) of nodes. Raise FellBackError if a node ran elsewhere."""
    shown = "; ".join(f"{where}: {operator} {name}".strip() for where, operator, name in nodes)
    proof = "{}: {}".format(source, shown or "no node")
    counting = [(where, operator) for where, operator, _ in nodes if operator not in apart]
    elsewhere = sorted({where for where, _ in counting} - {provider})
    if elsewhere:
        raise FellBackError("not all on {}: some node ran on {}".format(provider, ", ".join(elsewhere)), proof)
    if not counting:
        raise FellBackError(f"nothing shows that a node ran on {provider}", proof)
    return proof


def _array(value: Any) -> Any:
    """Return a result as a copy; bfloat16 is read from memory, since `OrtValue.numpy` does not support it."""
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape = tuple(value.shape())
    bits = np.empty(shape, np.uint16)
    if bits.size:
        ctypes.memmove(bits.ctypes.data, value.data_ptr(), bits.nbytes)
    return bits.view([("bfloat16", np.uint16)])  # onnx's own type before 1.19, which NumPy needs no package for
