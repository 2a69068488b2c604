"""Conformance test-suite and spec-checker for the recurrent operators of ONNX and AMD Quark."""
