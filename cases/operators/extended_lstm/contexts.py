"""Contexts of ExtendedLSTM: what its axes say may be there."""

from __future__ import annotations

from typing import Any

from ...specs.recurrent_contexts import RecurrentContexts
from .axes import EXTENDED_AXES

__all__ = ["EXTENDED_CONTEXTS"]

_LARGEST = 1500  # T*N*H and I*H of cases that are measured: larger ones are there for other reasons


class _Contexts(RecurrentContexts):
    """See :class:`...specs.contexts.ContextSpace`."""

    def measurable(self, spec: Any) -> bool:
        """Neither large nor with NaN."""
        small = 0 < spec.T * spec.N * spec.H <= _LARGEST and 0 < spec.I * spec.H <= _LARGEST
        return not spec.illegal and small and spec.data != "nan"


EXTENDED_CONTEXTS = _Contexts("ExtendedLSTM", EXTENDED_AXES)
