"""Adapter for onnxruntime with any of its execution providers.

Options: ``provider`` (default CPUExecutionProvider), ``provider_options`` (table), ``session_options`` (table of
session config entries), ``threads`` (default 1, both within and between operators), ``optimize`` (default false: graph
optimizations off; true: all of them).

With a provider other than the CPU's named, nothing counts as run without proof that every node ran there:
``get_providers()`` only tells what was registered. The proof is the session's own record of the assignment (onnxruntime
1.24 and later) or, before that, the profile of the runs.
"""

from __future__ import annotations

import ctypes
import difflib
import importlib
import json
import os
import platform
import shutil
import tempfile
from typing import Any

import numpy as np

ort: Any = importlib.import_module("onnxruntime")

CPU = "CPUExecutionProvider"
BFLOAT16 = 16  # TensorProto.BFLOAT16
DEFAULTS = {"provider": CPU, "provider_options": {}, "session_options": {}, "threads": 1, "optimize": False}


class FellBackError(Exception):
    """The model would run, or cannot be shown not to run, somewhere else than on the provider asked for."""

    status = "fell-back"

    def __init__(self, message: str, proof: str = "") -> None:
        super().__init__(message)
        self.proof = proof


class Bits(np.ndarray):
    """bfloat16 results as uint16 bits."""

    element = "bfloat16"


class Adapter:
    """onnxruntime in one configuration."""

    def __init__(self, options: dict[str, Any]) -> None:
        unknown = sorted(set(options) - set(DEFAULTS))
        if unknown:
            raise ValueError("unknown option {!r}; known: {}".format(unknown[0], ", ".join(sorted(DEFAULTS))))
        settings: dict[str, Any] = dict(DEFAULTS, **options)
        self.provider: str = settings["provider"]
        self.provider_options = {key: _text(value) for key, value in settings["provider_options"].items()}
        self.entries = {key: _text(value) for key, value in settings["session_options"].items()}
        self.threads = int(settings["threads"])
        self.optimize = bool(settings["optimize"])
        available = ort.get_available_providers()
        if self.provider not in available:
            near = difflib.get_close_matches(self.provider, available, 1, 0.8)
            raise RuntimeError(
                "this onnxruntime {} has no {}; it has {}{}".format(
                    ort.__version__, self.provider, ", ".join(available), "; meant: " + near[0] if near else ""
                )
            )
        self.recorded = hasattr(ort.InferenceSession, "get_provider_graph_assignment_info")
        self._session_options = self._make_session_options()

    def describe(self) -> dict[str, Any]:
        """What runs here; JSON values only."""
        return {
            "runtime": "onnxruntime",
            "version": ort.__version__,
            "build": ort.get_build_info() if hasattr(ort, "get_build_info") else "",
            "device": ort.get_device(),
            "provider": self.provider,
            "provider_options": self.provider_options,
            "session_options": self.entries,
            "available_providers": list(ort.get_available_providers()),
            "threads": self.threads,
            "optimize": self.optimize,
            "placement": self._placement(),
            "numpy": np.__version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "machine": platform.machine(),
        }

    def prepare(self, model: bytes) -> Session:
        """Create a session on the provider asked for, and on nothing else."""
        if self.provider == CPU:
            return Session(self._create(model, self._session_options))
        if self.recorded:
            return Session(self._create(model, self._session_options)).prove_by_record(self.provider)
        folder = tempfile.mkdtemp(prefix="onnxspec-")
        try:
            options = self._make_session_options()
            options.enable_profiling = True
            options.profile_file_prefix = os.path.join(folder, "profile")
            return ProfiledSession(self._create(model, options), self.provider, folder)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _create(self, model: bytes, options: Any) -> Any:
        try:
            # enable_fallback=0: otherwise a provider that fails is replaced by the CPU's without a word.
            session = ort.InferenceSession(
                model, options, providers=[(self.provider, self.provider_options)], enable_fallback=0
            )
        except Exception as error:
            if "fallback to CPU EP has been explicitly disabled" in str(error):
                raise FellBackError(f"some node is not taken by {self.provider}: {error}", str(error)) from None
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
        if self.provider != CPU:
            options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
            if self.recorded:
                options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        return options

    def _placement(self) -> str:
        if self.provider == CPU:
            return "no proof needed"
        return "proved by the graph assignment record" if self.recorded else "proved by the profile"


def _text(value: Any) -> str:
    """An option as onnxruntime takes it: switches are "0" and "1"."""
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
        """Outputs in the graph's order."""
        if self._raw:
            return self._run_raw(feeds)
        outputs: list[Any] = self._session.run(None, feeds)
        return outputs

    def prove_by_record(self, provider: str) -> Session:
        """Keep the assignment that the session recorded; `FellBackError` unless it gives every node to `provider`."""
        assigned = [
            (part.ep_name, f"{node.op_type} {node.name}".strip())
            for part in self._session.get_provider_graph_assignment_info()
            for node in part.get_nodes()
        ]
        self.proof = _judge_placement(provider, assigned, "assignment record")
        return self

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

    def __init__(self, session: Any, provider: str, folder: str) -> None:
        super().__init__(session)
        self._provider = provider
        self._folder = folder

    def finish(self) -> None:
        """Read the profile; `FellBackError` unless every node ran on the provider asked for."""
        try:
            with open(self._session.end_profiling(), encoding="utf-8") as file:
                events = json.load(file)
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)
        ran = {
            (event["args"]["provider"], "{} {}".format(event["args"].get("op_name", ""), event.get("name", "")).strip())
            for event in events
            if event.get("cat") == "Node" and event.get("args", {}).get("provider")
        }
        self.proof = _judge_placement(self._provider, sorted(ran), "profile")


def _judge_placement(provider: str, nodes: list[tuple[str, str]], source: str) -> str:
    proof = "{}: {}".format(source, "; ".join(where + ": " + node for where, node in nodes) or "no node")
    elsewhere = sorted({where for where, _ in nodes} - {provider})
    if elsewhere:
        raise FellBackError("not all on {}: some node ran on {}".format(provider, ", ".join(elsewhere)), proof)
    if not nodes:
        raise FellBackError(f"nothing shows that a node ran on {provider}", proof)
    return proof


def _array(value: Any) -> Any:
    """A result as an array of its own; bfloat16 is read from memory, since `OrtValue.numpy` does not know it."""
    if value.data_type() != "tensor(bfloat16)":
        return value.numpy()
    shape = tuple(value.shape())
    bits = np.empty(shape, np.uint16)
    if bits.size:
        ctypes.memmove(bits.ctypes.data, value.data_ptr(), bits.nbytes)
    return bits.view(Bits)
