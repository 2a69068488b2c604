"""Two recordings of all that onnxspec does, compared field by field: what a change of the inside must leave as it was.

``python -m benchmarks.comparison record --out DIR`` makes one, ``compare BEFORE AFTER`` says what differs.
"""
