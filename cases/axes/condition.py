"""Conditions: words that are true or false of any case, for the value of a field."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Condition:
    """Words that are true or false of any case."""

    words: str
    holds: Callable[[Any], bool] = field(compare=False)


def of_values(words: str, name: str, *values: Any) -> Condition:
    """Return the condition of a case whose field has one of some values."""
    return Condition(words, lambda spec: getattr(spec, name, None) in values)
