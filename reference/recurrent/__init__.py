"""Nodes, the scan that all recurrent operators share, and expected outputs."""

# Documented in docs/operators.md.
from .computation import Steps as Steps
