"""com.amd.quark::ExtendedLSTM: its document, its faults, and the kernel that AMD Quark ships."""

from ...._face import face
from .operator import EXTENDED_LSTM

__all__ = ["EXTENDED_LSTM"]

__getattr__, __dir__ = face(
    __name__,
    arithmetic="ARITHMETICS STATES",
    computation="ExtendedComputation evaluate_extended",
    document="ExtendedLSTM resolve",
    kernel="Factor KernelAttributes foundations levels_of run_kernel",
    operator="arithmetic_of",
    tanhf="TANHF fdlibm nearest",
)
