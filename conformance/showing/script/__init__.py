"""A case as a script of its own."""

from ...._face import face

__getattr__, __dir__ = face(
    __name__,
    parts="ratios",
    script="script_of",
)
