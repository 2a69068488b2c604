"""Leaky, the operator of docs/operators.md, with few cases. Other invented operators extend it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .leaky_operator.cases import WITHOUT, LeakyFamily, LeakySpec  # type: ignore[import-not-found]
from .leaky_operator.document import DOMAIN, VERSION  # type: ignore[import-not-found]
from .leaky_operator.numbers import Leak, Leaky  # type: ignore[import-not-found]

__all__ = ["DOMAIN", "VERSION", "Leak", "Leaky", "LeakyFamily", "LeakySpec"]


def _few(self: LeakyFamily, name: str, op: str, version: int) -> Sequence[Any]:
    """Return cases of a few lengths, and one that is not legal."""
    legal = [self.spec(seq_length=T, seed=T) for T in (1, 2, 4, 7)]
    return [*legal, *([self.spec(illegal=WITHOUT.id)] if name != "smoke" else [])]


LeakyFamily.profile = _few
