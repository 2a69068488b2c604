"""Random nodes of AMD Quark's ExtendedLSTM with inputs, to hold the shipped kernel against its model.

What is pinned comes from profiles; these are for searching, and differ with NumPy's generator.
"""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from .tanhf import TANHF

KINDS = ("produced", "any", "wild")
"""``produced``: scales and zero points as the producer's calibration gives them. ``any``: zero points at the edges and
anywhere, scales that do not fit the data. ``wild``: scales over up to 60 binades, powers of two, zero, negative, NaN;
data with NaN and infinities: much of it where C++ defines nothing."""

EDGES = (0, 32767, 32768, 65535)
DOMAIN, OP_TYPE = "com.amd.quark", "ExtendedLSTM"


@dataclass(frozen=True)
class QuarkTrial:
    """A node's attributes, and its inputs by name, float32."""

    attributes: Mapping[str, Any]
    inputs: Mapping[str, NDArray[np.float32]]

    def model(self, domain: str = DOMAIN, op_type: str = OP_TYPE) -> bytes:
        """The node as a model of its own, whose graph's inputs and output have the formal names."""
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


def random_trial(kind: str, rng: np.random.Generator) -> QuarkTrial:
    """A trial of one of KINDS: T 1-80, I and H 1-128."""
    T, I, H = (int(rng.integers(1, top + 1)) for top in ((80, 128, 128) if rng.random() < 0.8 else (4, 4, 4)))
    shapes = {"X": (T, 1, I), "W": (2, 4 * H, I), "R": (2, 4 * H, H), "B": (2, 8 * H)}
    attributes: dict[str, Any] = {"direction": "bidirectional", "hidden_size": H}
    inputs = {}
    binades = float(rng.choice([4, 10, 30, 60]))
    for name, shape in shapes.items():
        scale, zero_point = _wild(rng, binades) if kind == "wild" else (0.0, 0)
        size = 2.0 ** rng.uniform(-2, 3)
        if kind == "wild" and 0 < abs(scale) < 2.0**80:
            size = abs(scale) * 2.0 ** rng.uniform(12, 17)
        data = rng.normal(size=shape) * (size / 3)
        if rng.random() < 0.3:
            data += size * rng.uniform(-1, 1)
        if kind == "wild" and rng.random() < 0.1:
            places = rng.integers(0, data.size, size=max(1, data.size // 20))
            data.flat[places] = rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38])
        inputs[name] = data.astype(np.float32)
        if kind == "produced":
            scale, zero_point = _calibrated(inputs[name])
        elif kind == "any":
            scale, zero_point = size * 2.0 ** rng.uniform(-16, -13), _zero_point(rng)
        attributes[f"{name.lower()}_scale"] = float(np.float32(scale))
        attributes[f"{name.lower()}_zero_point"] = zero_point
    attributes["y_scale"], attributes["y_zero_point"] = _output(kind, rng)
    return QuarkTrial(attributes, inputs)


def _calibrated(data: NDArray[np.float32]) -> tuple[float, int]:
    """Scale and zero point of the data's range, which holds 0."""
    low, high = min(0.0, float(data.min())), max(0.0, float(data.max()))
    scale = float(np.float32((high - low) / 65535)) or 1.0
    return scale, int(np.clip(np.rint(-low / scale), 0, 65535))


def _zero_point(rng: np.random.Generator) -> int:
    return int(rng.choice([*EDGES, int(rng.integers(0, 65536))]))


def _wild(rng: np.random.Generator, binades: float) -> tuple[float, int]:
    scale = 2.0 ** (rng.uniform(-binades / 2, binades / 2) - 13)
    if rng.random() < 0.2:
        scale = 2.0 ** np.round(np.log2(scale))
    if rng.random() < 0.02:
        scale = float(rng.choice([0, np.inf, -np.inf, np.nan, -1e-3, 1e-45, 3e38, -(2.0**-15)]))
    return scale, int(rng.choice([*EDGES, 1, 32769, 65536, -1, int(rng.integers(0, 65536))]))


def _output(kind: str, rng: np.random.Generator) -> tuple[float, int]:
    if kind == "produced":
        return float(np.float32(rng.uniform(0.3, 2) / 65535)), int(rng.choice([32768, 32767, 32900, 31000]))
    if kind == "any":
        return float(np.float32(2.0 ** rng.uniform(-19, -13))), _zero_point(rng)
    scale = 2.0 ** float(rng.choice([-40, -32, -20, -16, -15, -12, -9, -8, -7, 0, 5, int(rng.integers(-45, 20))]))
    scale *= float(rng.choice([1, 1.3, 0.99999994]))
    if rng.random() < 0.02:
        scale = float(rng.choice([0, np.inf, -np.inf, np.nan, -1e-3, 1e-45, 3e38]))
    return float(np.float32(scale)), int(rng.choice([*EDGES, -1, int(rng.integers(0, 65536))]))


@cache
def _library() -> ctypes.CDLL | None:
    """The C library's mathematics, as far as it can be loaded here."""
    for name in ("libm.so.6", "libSystem.dylib", "ucrtbase.dll", ctypes.util.find_library("m")):
        try:
            library = ctypes.CDLL(name) if name else None
            if library is not None:
                library.tanhf.argtypes, library.tanhf.restype = (ctypes.c_float,), ctypes.c_float
                return library
        except (OSError, AttributeError):
            continue
    return None


def libm_tanhf(x: NDArray[np.float32]) -> NDArray[np.float32]:
    """tanh of a float32 array by this machine's C library, one element at a time, which takes some 200 ns each.

    Raises OSError where no C library can be loaded.
    """
    library = _library()
    if library is None:
        raise OSError("no C library with tanhf can be loaded here")
    return np.fromiter((library.tanhf(v) for v in x.ravel().tolist()), np.float32, x.size).reshape(x.shape)


@cache
def system_tanhf() -> str | None:
    """The one of TANHF that this machine's C library computes, by 2048 arguments, on 120 of which they differ; None
    where it is neither, or cannot be asked."""
    arguments = np.linspace(2.0**-6, 9, 2048, dtype=np.float32)
    try:
        theirs = libm_tanhf(arguments)
    except OSError:
        return None
    return next((name for name, ours in TANHF.items() if np.array_equal(ours(arguments), theirs)), None)
