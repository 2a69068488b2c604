"""Conforming kernels: the same equations with the roundings and orders of real implementations."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    {
        "activations": ("EVALUATIONS",),
        "kernel": (
            "INTERPOLATIONS",
            "ORDERS",
            "RESETS",
            "STYLES",
            "Style",
            "rounded",
            "run_kernel",
        ),
    },
)
