"""Cases of com.amd.quark::ExtendedLSTM."""

from ...._face import face
from .family import EXTENDED_FAMILY

__all__ = ["EXTENDED_FAMILY"]

__getattr__, __dir__ = face(
    __name__,
    {
        "contexts": ("EXTENDED_CONTEXTS",),
        "dense": (
            "DESIGN",
            "dense_extended",
            "fresh_extended",
        ),
        "profile": (
            "B",
            "R",
            "W",
            "X",
            "extended_profile",
        ),
        "spec": (
            "DOMAIN",
            "ExtendedSpec",
            "calibrated",
        ),
        "violations": ("extended_violation",),
    },
)
