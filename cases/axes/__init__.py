"""Axes of the space of cases, each with all that is to be known of it."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    axis="Axis Domain Field Rule",
    condition="Condition",
    generator="uniform",
    recurrent="RECURRENT_AXES",
    violation="DUE changed set_to without_input",
)
