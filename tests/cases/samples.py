"""Cases for tests of wraps and graphs, which together have every operator, type, direction and layout."""

from __future__ import annotations

from typing import Any

from onnxspec.cases import CaseSpec

RICH: dict[str, Any] = {"T": 4, "N": 3, "I": 2, "H": 5, "bias": True, "initial": "all", "lengths": "ragged"}
SAMPLES = (
    CaseSpec("LSTM", 14, peepholes=True, outputs=("Y", "Y_h", "Y_c"), **RICH),
    CaseSpec("LSTM", 14, weights="initializer", reruns="data", layout=1, **RICH),
    CaseSpec("LSTM", 7, direction="bidirectional", data="large", outputs=("Y", "", "Y_c"), **RICH),
    CaseSpec("LSTM", 1, "float64", opset="last", data="small", **RICH),
    CaseSpec("LSTM", 22, "float16", data="small", weights="initializer", **RICH),
    CaseSpec("LSTM", 22, "bfloat16", weights="initializer", **RICH),
    CaseSpec("GRU", 14, "float16", direction="bidirectional", layout=1, outputs=("", "Y_h"), **RICH),
    CaseSpec("GRU", 7, direction="bidirectional", weights="initializer", dimensions="symbolic", reruns="sizes", **RICH),
    CaseSpec("GRU", 1, output_sequence=1, outputs=("Y", "Y_h"), **RICH),
    CaseSpec("RNN", 14, data="exact", **RICH),
    CaseSpec("RNN", 22, "float16", direction="reverse", **RICH),
    CaseSpec("RNN", 22, "bfloat16", direction="bidirectional", **RICH),
    CaseSpec("RNN", 14, T=0, N=2, H=3),
)
