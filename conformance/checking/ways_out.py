"""Ways out for a model that a target gets wrong or does not support: what to change in it, by what it has."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from ...cases.specs.features import WORDS
from ...reference import operator_of
from ..results.records import Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def _table() -> Mapping[str, str]:
    table: dict[str, str] = tomllib.loads(Path(__file__).with_name("ways_out.toml").read_text(encoding="utf-8"))
    return table


@cache
def _features() -> Mapping[str, str]:
    """Features by the words that readers are told."""
    return {words: feature for feature, words in WORDS.items()}


def way_out(finding: Finding, op: str) -> str:
    """The change of a model that helps nodes of an operator with what a finding says; empty where none is known."""
    prefix = f"{operator_of(op).document.prefix}."
    clauses = [clause.removeprefix(prefix) for clause in finding["clauses"] if clause.startswith(prefix)]
    conditions = finding["conditions"].partition(" (")[0].split(" and ")
    return way_out_of([*conditions, *clauses])


def way_out_of(topics: Iterable[str]) -> str:
    """The change of a model that helps with the first of these that is known; empty where none is.

    A topic is a feature or its words, or a clause without its operator; of one that the table lacks the wider one
    counts.
    """
    for topic in topics:
        topic = _features().get(topic, topic).replace(" ", "-")
        while topic not in _table() and "." in topic:
            topic = topic.rpartition(".")[0]
        if topic in _table():
            return _table()[topic]
    return ""
