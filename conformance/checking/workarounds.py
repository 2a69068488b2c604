"""Workarounds: what to change in a model where a target gets something wrong or does not support it."""

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
    return tomllib.loads(Path(__file__).with_name("workarounds.toml").read_text(encoding="utf-8"))


@cache
def _features() -> Mapping[str, str]:
    """Return features by the words that reports have for them."""
    return {words: feature for feature, words in WORDS.items()}


def workaround(finding: Finding, op: str) -> str:
    """Return the change of a model that helps nodes of an operator with a finding; empty where none is known."""
    prefix = f"{operator_of(op).document.prefix}."
    clauses = [clause.removeprefix(prefix) for clause in finding["clauses"] if clause.startswith(prefix)]
    conditions = finding["conditions"].partition(" (")[0].split(" and ")
    return workaround_for([*conditions, *clauses])


def workaround_for(topics: Iterable[str]) -> str:
    """Return the change that helps with the first of some topics that is known; empty where none is.

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
