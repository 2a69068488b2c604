"""Named, executable faults, and observations that they explain."""

# Documented in docs/operators.md.
from .computed import Computed as Computed
