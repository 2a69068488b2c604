"""Costs of onnxspec, and their goals: ``python -m benchmarks``."""

import os

# Threads that wait for each other use processor time and distort figures; set before NumPy is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
