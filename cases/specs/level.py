"""Levels: nested parts of an operator version's features, for certificates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Level(Struct, frozen=True):
    """Requirements of a level.

    name
        One word.
    about
        Description for people who buy the runtime.
    holds
        Whether a valid case belongs to it. All of those must pass.
    requires
        Features of cases, as clause tables name them, each of which some passing case must have.
    """

    name: str
    about: str
    holds: Callable[[Any], bool]
    requires: tuple[str, ...] = ()
