"""Named, executable faults, and observations that they explain."""

# Documented in docs/operators.md.
from .computing import Computed as Computed
