"""Two recordings of everything that onnxspec does, compared field by field: an internal change must not change them.

``python -m benchmarks.comparison record --out DIR`` makes one, ``compare BEFORE AFTER`` prints the differences.
"""
