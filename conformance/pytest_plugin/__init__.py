"""onnxspec under pytest."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    assertion="RunningTarget",
    filling="Share",
    items="Following Group item_group",
)
