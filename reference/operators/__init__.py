"""Operators: what they have in common, and a sub-package for each."""

# Documented in docs/operators.md.
from .described import Described as Described
from .described import DescribedOperator as DescribedOperator
from .described import with_attributes as with_attributes
from .described import with_equations as with_equations
from .described import with_inputs as with_inputs
from .operator import Conforming as Conforming
from .written import Diagnostic as Diagnostic
