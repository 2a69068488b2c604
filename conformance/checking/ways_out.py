"""Ways out for a model that a target gets wrong or does not support: what to change in it, by what it has."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["way_out"]


@cache
def _table() -> Mapping[str, str]:
    table: dict[str, str] = tomllib.loads(Path(__file__).with_name("ways_out.toml").read_text(encoding="utf-8"))
    return table


def way_out(topics: Iterable[str]) -> str:
    """The change of the model that helps with the first of these that is known; empty where none is.

    A topic is a trait or a feature of a node, or a clause without its operator; of one that the table
    lacks the wider one counts.
    """
    for topic in topics:
        topic = topic.replace(" ", "-")
        while topic not in _table() and "." in topic:
            topic = topic.rpartition(".")[0]
        if topic in _table():
            return _table()[topic]
    return ""
