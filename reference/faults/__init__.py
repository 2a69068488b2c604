"""Named, executable faults, and what they explain or show."""

# Documented in docs/operators.md.
from .computing import Computed as Computed
