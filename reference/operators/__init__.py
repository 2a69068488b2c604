"""Operators: what they have in common, and a sub-package for each."""

from typing import TYPE_CHECKING

# Documented in docs/operators.md.
from .operator import Conforming as Conforming
from .written import Diagnostic as Diagnostic

if TYPE_CHECKING:
    from .described import Described as Described
    from .described import DescribedOperator as DescribedOperator
    from .described import with_attributes as with_attributes
    from .described import with_equations as with_equations
    from .described import with_inputs as with_inputs
else:

    def __getattr__(name: str) -> object:
        """Return a name for operators that follow from a description; it is loaded with the first of them."""
        if name not in ("Described", "DescribedOperator", "with_attributes", "with_equations", "with_inputs"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import described

        return getattr(described, name)
