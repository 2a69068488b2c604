"""Advice on models: a remedy for each rule, and workarounds for failures of targets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ...cases.specs.features import WORDS
from ...reference import operator_of
from ..results.records import Finding

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return the table of that name beside this module."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def entry(name: str, topic: str) -> Any:
    """Return the entry of a table on a topic, or on the nearest wider topic that has one; None without one."""
    while topic not in table(name) and "." in topic:
        topic = topic.rpartition(".")[0]
    return table(name).get(topic)


def workaround(finding: Finding, op: str) -> str:
    """Return the change of a model that avoids a finding in nodes of an operator; empty if none is known."""
    prefix = f"{operator_of(op).document.prefix}."
    clauses = [clause.removeprefix(prefix) for clause in finding["clauses"] if clause.startswith(prefix)]
    topics = [*finding["conditions"].partition(" (")[0].split(" and "), *clauses]
    features = {description: feature for feature, description in WORDS.items()}
    found = (entry("workarounds", features.get(topic, topic).replace(" ", "-")) for topic in topics)
    return next(filter(None, found), "")
