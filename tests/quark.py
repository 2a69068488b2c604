"""Nodes of ExtendedLSTM, and the outputs of AMD Quark 0.13's real CPU kernel for them, recorded.

The recording lets tests judge the real kernel on machines that cannot build its library. To record the outputs of a
new case, install the library (``pip install --no-deps amd-quark==0.13``, with a C++ compiler) and run the test by
``ONNXSPEC_RECORD_QUARK=1 pytest -p no:xdist TEST``. The recorded machine was x86-64 with glibc.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper

from onnxspec.conformance.targets.adapters.quark_library import quark_library

Array = NDArray[Any]

RECORDING = Path(__file__).with_name("quark_recording.npz")
DOMAIN, OP_TYPE = "com.amd.quark", "ExtendedLSTM"


@dataclass(frozen=True)
class QuarkNode:
    """A node's attributes, and its inputs by name, float32."""

    attributes: Mapping[str, Any]
    inputs: Mapping[str, Array]

    def model(self, domain: str = DOMAIN, op_type: str = OP_TYPE) -> bytes:
        """Return a model of this node alone; its inputs and its output have the formal names."""
        node = helper.make_node(op_type, list(self.inputs), ["Y"], domain=domain, **self.attributes)
        T, N, _ = self.inputs["X"].shape
        shape = (T, 2, N, self.attributes["hidden_size"])
        graph = helper.make_graph(
            [node],
            "g",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in self.inputs.items()],
            [helper.make_tensor_value_info("Y", TensorProto.FLOAT, shape)],
        )
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(domain, 1)]
        made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
        return made


def quark_node(seed: int = 0, reach: float = 1.0, **changed: Any) -> QuarkNode:
    """Return a node whose states stay well inside [-1, 1], with symmetric parameters except for `changed` ones."""
    rng = np.random.default_rng(seed)
    T, I, H = 20, 11, 9
    sizes = {"X": (2 * reach, (T, 1, I)), "W": (0.5, (2, 4 * H, I)), "R": (0.5, (2, 4 * H, H)), "B": (0.5, (2, 8 * H))}
    inputs = {n: rng.uniform(-size, size, shape).astype(np.float32) for n, (size, shape) in sizes.items()}
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": H}
    for name, (size, _) in {**sizes, "Y": (1.0, ())}.items():
        attributes[f"{name.lower()}_scale"] = float(np.float32(2 * size / 65535))
        attributes[f"{name.lower()}_zero_point"] = 32768
    return QuarkNode({**attributes, **changed}, inputs)


def shipped_kernel(node: QuarkNode) -> Array:
    """Return the real kernel's Y (T, 2, N, H) for a node, from the recording.

    Raises KeyError if the node is not recorded.
    """
    key = _digest(node)
    if key not in _recorded():
        if not os.environ.get("ONNXSPEC_RECORD_QUARK"):
            raise KeyError(f"no recorded output of AMD Quark's kernel for this node; see {__name__}")
        _recorded()[key] = run_library(node)
        np.savez_compressed(RECORDING, **dict(sorted(_recorded().items())))
    return _recorded()[key].copy()


def run_library(node: QuarkNode) -> Array:
    """Return Y from the library itself. Raises NoLibrary if it cannot be built."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.register_custom_ops_library(quark_library(package=os.environ.get("ONNXSPEC_QUARK_PACKAGE", "")).path)
    session = onnxruntime.InferenceSession(node.model(), options, providers=["CPUExecutionProvider"])
    (Y,) = session.run(None, dict(node.inputs))
    return np.asarray(Y)


@cache
def _recorded() -> dict[str, Array]:
    if not RECORDING.exists():
        return {}
    with np.load(RECORDING) as arrays:
        return dict(arrays)


def _digest(node: QuarkNode) -> str:
    digest = hashlib.sha256(repr(sorted(node.attributes.items())).encode())
    for name, array in sorted(node.inputs.items()):
        digest.update(f"{name} {array.shape} {array.dtype}".encode() + array.tobytes())
    return digest.hexdigest()[:16]
