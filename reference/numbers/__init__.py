"""Formats, accuracy classes, activation functions, and the arithmetics that a computation can run in."""

# Documented in docs/operators.md.
from .accuracy import Budget as Budget
from .bounded import Bounded as Bounded
from .bounding import Bounding as Bounding
