"""Parts that only one operator has: a folder each."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    asking="readings",
    discrimination="discrimination_of",
    observation="Predicted",
    operator="Conforming",
    quantized="ceiling",
    written="Complaint",
)
