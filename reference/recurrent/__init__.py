"""A node, the scan that all recurrent operators share, and what outputs must be."""

# Documented in docs/operators.md.
from .gates import Steps as Steps
