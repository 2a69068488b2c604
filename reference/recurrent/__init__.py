"""Nodes, the scan that all recurrent operators share, and expected outputs."""

# Documented in docs/operators.md.
from .node import Steps as Steps
