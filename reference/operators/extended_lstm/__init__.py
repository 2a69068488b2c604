"""com.amd.quark::ExtendedLSTM: its document, its faults, and the kernel that AMD Quark ships."""

from ...._face import face
from .operator import EXTENDED_LSTM

__all__ = ["EXTENDED_LSTM"]

__getattr__, __dir__ = face(
    __name__,
    {
        "arithmetic": ("ARITHMETICS", "STATES"),
        "computation": ("evaluate_extended", "expect_extended"),
        "document": ("ExtendedLSTM", "resolve"),
        "kernel": (
            "Factor",
            "Parameters",
            "foundations",
            "levels_of",
            "run_kernel",
        ),
        "operator": ("arithmetic_of",),
        "tanhf": (
            "TANHF",
            "fdlibm",
            "libm_tanhf",
            "nearest",
            "system_tanhf",
        ),
    },
)
