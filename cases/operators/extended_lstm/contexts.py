"""Contexts of ExtendedLSTM: what its axes say may be there."""

from __future__ import annotations

from ...specs.recurrent_contexts import RecurrentContexts
from .axes import EXTENDED_AXES

__all__ = ["EXTENDED_CONTEXTS"]

EXTENDED_CONTEXTS = RecurrentContexts("ExtendedLSTM", EXTENDED_AXES)
