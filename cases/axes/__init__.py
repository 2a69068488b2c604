"""Axes of the space of cases: the fields of a case, with their values, rules and effects."""

# Documented in docs/operators.md.
from .generator import uniform as uniform
from .violation import set_to as set_to
from .violation import without_input as without_input
