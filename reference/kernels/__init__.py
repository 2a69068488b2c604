"""Conforming kernels: the same equations with the roundings and orders of real implementations."""

from ..._face import face

__getattr__, __dir__ = face(
    __name__,
    activations="EVALUATIONS",
    kernel="Kernel rounded run_kernel",
    style="INTERPOLATIONS ORDERS RESETS STYLES Style",
)
