"""The rules: one for every clause that a model alone can decide, and a few for mistakes of exporters.

``advice.toml`` has the remedy for each rule, ``workarounds.toml`` those for failures of targets.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ...cases.specs.features import WORDS
from ...reference import Clause, Operator, clauses_of, operator_of, versions_of
from ...reference.documents.clauses import ILLEGAL
from ..results.records import Finding
from .problem import Level
from .subject import judged_operators

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MEASURED = "model.measured"


@dataclass(frozen=True)
class Rule:
    """One rule.

    id
        That of its clause; of a rule without one, ``model.`` and its topic.
    clause
        None if no document has a clause on it.
    text
        The requirement, or the open question.
    advice
        The remedy for a node that breaks it.
    runtimes
        Measured behaviour of runtimes where the document leaves it open.
    """

    id: str
    level: Level
    clause: Clause | None
    text: str
    advice: str
    runtimes: str = ""


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule, by id."""
    table: dict[str, Rule] = {}
    for operator in dict.fromkeys(judged_operators().values()):
        for clause in clauses_of(operator.document.name):
            if _illegal(clause) or _open(operator, clause):
                table[clause.id] = _of_clause(operator, clause)
    for topic, entry in _table("advice").items():
        if "level" in entry:
            table[f"model.{topic}"] = Rule(f"model.{topic}", Level(entry["level"]), None, entry["text"], entry["do"])
    return table


@cache
def _table(name: str) -> Mapping[str, Any]:
    """Return the table of that name beside this module."""
    return tomllib.loads(Path(__file__).with_name(f"{name}.toml").read_text(encoding="utf-8"))


def _entry(name: str, topic: str) -> Any:
    """Return the entry of a table on a topic, or on the nearest wider topic that has one; None without one."""
    while topic not in _table(name) and "." in topic:
        topic = topic.rpartition(".")[0]
    return _table(name).get(topic)


def _advice_about(topic: str) -> Mapping[str, str]:
    """Return the advice on a rule of a topic."""
    found: Mapping[str, str] = _entry("advice", topic) or _table("advice")["any"]
    return found


def workaround(finding: Finding, op: str) -> str:
    """Return the change of a model that avoids a finding in nodes of an operator; empty if none is known."""
    prefix = f"{operator_of(op).document.prefix}."
    clauses = [clause.removeprefix(prefix) for clause in finding["clauses"] if clause.startswith(prefix)]
    topics = [*finding["conditions"].partition(" (")[0].split(" and "), *clauses]
    features = {description: feature for feature, description in WORDS.items()}
    found = (_entry("workarounds", features.get(topic, topic).replace(" ", "-")) for topic in topics)
    return next(filter(None, found), "")


def _illegal(clause: Clause) -> bool:
    """Return whether a model can violate it, so that runtimes must refuse the model."""
    return any(feature.startswith(ILLEGAL) for feature in clause.needs | clause.or_needs)


def _open(operator: Operator, clause: Clause) -> bool:
    """Return whether a clause leaves the behaviour of some nodes, or of some versions, open.

    A question that is open for all nodes is not worth a warning on one.
    """
    only_some = clause.needs or (clause.interpretation and clause.versions != versions_of(operator.document.name))
    return clause.status in ("undefined", "convention") and bool(only_some)


def _of_clause(operator: Operator, clause: Clause) -> Rule:
    about = _advice_about(clause.id.removeprefix(f"{operator.document.prefix}."))
    # Runtimes were measured with ONNX's own operators.
    runtimes = ("" if operator.document.domain else about.get("runtimes", "")) or "; ".join(clause.implementers)
    level = Level.ERROR if clause.may_fail else Level.WARNING
    return Rule(clause.id, level, clause, clause.text, clause.advice or about["do"], runtimes)


@cache
def rule_broken(operator: Operator, topic: str) -> Rule:
    """Return the rule that a node breaks by a violation of a topic.

    A topic is the rule's id, that of the clause, or the name that clause tables have for a model that violates one.
    """
    if topic in rules():
        return rules()[topic]
    document = operator.document
    id = f"{document.prefix}.{topic}"
    if id in rules():
        return rules()[id]
    by_feature = [c for c in clauses_of(document.name) if f"{ILLEGAL}{topic}" in c.needs | c.or_needs]
    if by_feature:
        return rules()[by_feature[0].id]
    wider = topic.rpartition(".")[0]
    if wider:
        return rule_broken(operator, wider)
    # Its clause table has no clause for this rule of its description.
    described = f"{document.title} has inputs, outputs and attributes as they are described."
    return Rule(id, Level.ERROR, None, described, _advice_about(topic)["do"])


def rules_open(operator: Operator, since_version: int, features: frozenset[str]) -> list[Rule]:
    """Return the rules of clauses that leave open the behaviour of a node with these features."""
    return [
        rules()[clause.id]
        for clause in clauses_of(operator.document.name, since_version, features)
        if _open(operator, clause) and not _illegal(clause)
    ]
