"""The operators that turn numbers into levels and levels into numbers, by the names that they have in each domain.

They compute alike, and differ in the types that they take: ONNX's own have 16 bits from opset 21 on only.
"""

from __future__ import annotations

from collections.abc import Mapping

QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"

_PREFIXES: Mapping[str, str] = {
    "": "",
    "ai.onnx": "",
    "com.microsoft": "",
    "com.amd.quark": "Extended",
    "com.vai.quantize": "Vitis",
}
"""The prefix of ONNX's names in each domain."""


def quantizes(domain: str, op_type: str) -> str:
    """Return QUANTIZE or DEQUANTIZE for an operator that does one of them; empty for any other operator."""
    prefix = _PREFIXES.get(domain)
    if prefix is None or not op_type.startswith(prefix):
        return ""
    name = op_type.removeprefix(prefix)
    return name if name in (QUANTIZE, DEQUANTIZE) else ""


def quantizer_in(domain: str, name: str) -> str:
    """Return a domain's operator for QUANTIZE or DEQUANTIZE. Raise KeyError for a domain that has none."""
    return _PREFIXES[domain] + name
