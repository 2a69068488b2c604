"""Cases of com.amd.quark::ExtendedLSTM."""

from .family import EXTENDED_FAMILY

__all__ = ["EXTENDED_FAMILY"]
