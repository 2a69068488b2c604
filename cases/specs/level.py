"""Levels: nested parts of what an operator version can do, for certificates to speak of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Level(Struct, frozen=True):
    """The demands of a level on a target.

    name
        One word.
    about
        What it comes to, in words for whoever buys the runtime.
    holds
        Whether a legal case belongs to it. Every one of those must pass.
    requires
        Features of cases, as clause tables name them, each of which some passing case must have.
    """

    name: str
    about: str
    holds: Callable[[Any], bool]
    requires: tuple[str, ...] = ()
