"""Parts that only one operator's cases have: a folder each; and what leads from one operator to another."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    roads="Plan Road costs plans",
)
