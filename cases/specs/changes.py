"""Simpler values of the fields of a spec that is no more than a dataclass: its operator's family lists no axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any

from ..axes.session import RERUNS
from ..axes.tensors.size import SIZE

_SIZES = ("T", "N", "I", "H")

_FIXED = frozenset({"op", "version", "about", "illegal", "weights_seed", "x", "w", "r", "b", "fill"})
"""Fields that identify a case, or numbers that depend on others."""


def simpler_by_field(spec: Any, plainer: Sequence[tuple[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield (field, changes): for each field the plainer values of its family, then its default; for sizes smaller
    ones."""
    for field in fields(spec):
        name, value = field.name, getattr(spec, field.name)
        yield from ((name, {name: plain}) for of, plain in plainer if of == name)
        if name in _FIXED or (field.default is MISSING and name not in _SIZES):
            continue
        if name in _SIZES:
            yield from (change for change in SIZE.simpler(spec) if change[0] == name)
        elif name == "reruns":
            yield from RERUNS.simpler(spec)
        elif value != field.default:
            yield name, {name: field.default}
