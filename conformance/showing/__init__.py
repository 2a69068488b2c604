"""Numbers as people look at them, and scripts that show a case."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    evidence="evidence_of",
    script="ratios script_of",
)
