"""The suite against faults and conforming kernels."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    power="least_rejected power_of",
    proof="Proof prove",
    staged="Implementation Stage judge_staged staged_outcome",
)
