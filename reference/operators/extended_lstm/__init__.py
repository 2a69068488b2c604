"""com.amd.quark::ExtendedLSTM: its document, its faults, and the kernel that AMD Quark ships."""

from .operator import EXTENDED_LSTM

__all__ = ["EXTENDED_LSTM"]
