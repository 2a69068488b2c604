"""Parts that only one operator has: a folder each."""

# Documented in docs/operators.md.
from .operator import Conforming as Conforming
from .written import Diagnostic as Diagnostic
