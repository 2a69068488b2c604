"""Shards: parts of a run for several machines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

from msgspec import Struct

from ...reference.errors import UserError

T = TypeVar("T")

_MOST = 100_000


class Shard(Struct, frozen=True):
    """Part `number` of `count`, counted from 1."""

    number: int
    count: int

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def of(self, items: Sequence[T]) -> tuple[T, ...]:
        """Return every `count`-th item. Neighbours are similar, so all shards get similar cases."""
        return tuple(items[self.number - 1 :: self.count])


def parse_shard(text: str) -> Shard:
    """Return the shard of a text like ``2/8``. Raise UserError."""
    match = re.fullmatch(r"([0-9]{1,6})/([0-9]{1,6})", text)
    shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
    if not 1 <= shard.number <= shard.count <= _MOST:
        raise UserError(f"no shard {text[:40]!r}: it is K/N with K from 1 to N, like 2/8")
    return shard
