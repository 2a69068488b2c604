"""Cases derived from an operator's form: defaults for a single node, its tensors and its session."""

# Documented in docs/operators.md.
from .family import SimpleFamily as SimpleFamily
from .spec import SimpleSpec as SimpleSpec
