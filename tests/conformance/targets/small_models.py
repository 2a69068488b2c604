"""Models of one node, as bytes, and inputs for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.parser

STEPS, BATCH, WIDTH, HIDDEN = 3, 2, 4, 5
SIZES = {"X": (STEPS, BATCH, WIDTH), "W": (1, 4 * HIDDEN, WIDTH), "R": (1, 4 * HIDDEN, HIDDEN)}


def lstm(element: str = "float", version: int = 14) -> bytes:
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": {version}]>
        g ({", ".join(f"{element}{list(shape)} {name}" for name, shape in SIZES.items())}) => (
            {element}[{STEPS}, 1, {BATCH}, {HIDDEN}] Y,
            {element}[1, {BATCH}, {HIDDEN}] Y_h,
            {element}[1, {BATCH}, {HIDDEN}] Y_c
        ) {{ Y, Y_h, Y_c = LSTM <hidden_size = {HIDDEN}> (X, W, R) }}""")
    model.graph.node[0].name = "the_lstm"
    return bytes(model.SerializeToString())


def identity(element: str) -> bytes:
    text = f'<ir_version: 8, opset_import: ["": 16]> g ({element}[2, 3] X) => ({element}[2, 3] Y) {{ Y = Identity(X) }}'
    return bytes(onnx.parser.parse_model(text).SerializeToString())


def feed(dtype: Any = np.float32) -> dict[str, np.ndarray]:
    """Return inputs of :func:`lstm`."""
    random = np.random.default_rng(5)
    return {name: random.uniform(-1, 1, shape).astype(dtype) for name, shape in SIZES.items()}
