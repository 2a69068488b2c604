"""Axes of the space of cases, each with all that is to be known of it."""

# Documented in docs/operators.md.
from .generator import uniform as uniform
from .violation import set_to as set_to
from .violation import without_input as without_input
