"""Comparison of two recordings of onnxspec's outputs, field by field: an internal change must not alter them.

``python -m benchmarks.comparison record --out DIR`` makes a recording, ``compare BEFORE AFTER`` prints the differences.
"""
