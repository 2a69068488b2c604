"""Recurrent nodes taken out of their models: each with its own weights as a case that can be run anywhere."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    capture="CaptureError",
    cases="NodeCase ForeignFolder cases_of_model read_nodes",
)
