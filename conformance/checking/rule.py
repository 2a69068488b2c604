"""The rules: one for every clause that a look at a model can decide, and a few for what exporters get wrong."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...reference import Clause, clauses_of, versions_of
from ...reference.documents.clauses import ILLEGAL
from . import quantization
from .operators import CheckedOperator, judged_operators
from .problem import Level

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BATCH_FIXED, TIME_FROZEN, SIZES_CLAIMED, MEASURED = "batch-fixed", "time-frozen", "sizes-claimed", "measured"
SHAPE_FIXED, BATCH_IN_TIME = "shape-fixed", "batch-in-time"

_OF_NO_CLAUSE = {
    **dict.fromkeys((BATCH_FIXED, TIME_FROZEN, SHAPE_FIXED, BATCH_IN_TIME, SIZES_CLAIMED), Level.WARNING),
    **dict.fromkeys(quantization.BROKEN, Level.ERROR),
    **dict.fromkeys(quantization.OPEN, Level.WARNING),
    MEASURED: Level.NOTE,
}


@dataclass(frozen=True)
class Rule:
    """One rule.

    id
        That of its clause; of a rule without one, ``model.`` and its topic.
    clause
        None for what no document says anything about.
    text
        What must hold, or what is open.
    advice
        What to do about a node that breaks it.
    runtimes
        What runtimes were measured to do where the document leaves it open.
    examples
        Ways to break it, in words of which the model is the subject.
    """

    id: str
    level: Level
    clause: Clause | None
    text: str
    advice: str
    runtimes: str = ""
    examples: tuple[str, ...] = ()


@cache
def _advice() -> Mapping[str, Mapping[str, str]]:
    table: dict[str, dict[str, str]] = tomllib.loads(
        Path(__file__).with_name("advice.toml").read_text(encoding="utf-8")
    )
    return table


def _advice_about(topic: str) -> Mapping[str, str]:
    """Return the advice on a rule of a topic, or on the next wider topic that has some."""
    while topic not in _advice() and "." in topic:
        topic = topic.rpartition(".")[0]
    return _advice().get(topic, _advice()["any"])


@cache
def rules() -> Mapping[str, Rule]:
    """Return every rule, by id."""
    table: dict[str, Rule] = {}
    for judged in dict.fromkeys(judged_operators().values()):
        for clause in clauses_of(judged.name):
            if _illegal(clause) or _open(judged, clause):
                table[clause.id] = _of_clause(judged, clause)
    for topic, level in _OF_NO_CLAUSE.items():
        advice = _advice()[topic]
        examples = (advice["example"],) if "example" in advice else ()
        table[f"model.{topic}"] = Rule(f"model.{topic}", level, None, advice["text"], advice["do"], examples=examples)
    return table


def _illegal(clause: Clause) -> bool:
    """Tell whether a model can break it, so that it must be refused."""
    return any(feature.startswith(ILLEGAL) for feature in clause.needs | clause.or_needs)


def _open(judged: CheckedOperator, clause: Clause) -> bool:
    """Tell whether it leaves open what some nodes do, of some versions: what is open for all of them is no news of
    one."""
    some = clause.needs or (clause.interpretation and clause.versions != versions_of(judged.name))
    return clause.status in ("undefined", "convention") and bool(some)


def _of_clause(judged: CheckedOperator, clause: Clause) -> Rule:
    topic = clause.id.removeprefix(f"{judged.prefix}.")
    advice = _advice_about(topic)
    # Runtimes were measured with ONNX's own operators.
    runtimes = ("" if judged.domain else advice.get("runtimes", "")) or "; ".join(clause.implementers)
    level = Level.ERROR if clause.may_fail else Level.WARNING
    topics = {topic, *(f.removeprefix(ILLEGAL) for f in clause.needs | clause.or_needs if f.startswith(ILLEGAL))}
    examples = [e for t in sorted(topics) for e in judged.broken.get(f"{judged.prefix}.{t}", ())]
    return Rule(
        clause.id, level, clause, clause.text, clause.advice or advice["do"], runtimes, tuple(dict.fromkeys(examples))
    )


@cache
def rule_broken(judged: CheckedOperator, topic: str) -> Rule:
    """Return the rule that a node breaks by a violation of a topic.

    A topic is that of the clause, or of what clause tables call a model that breaks one.
    """
    own = f"{judged.prefix}.{topic}"
    if own in rules():
        return rules()[own]
    by_feature = [c for c in clauses_of(judged.name) if f"{ILLEGAL}{topic}" in c.needs | c.or_needs]
    if by_feature:
        return rules()[by_feature[0].id]
    wider = topic.rpartition(".")[0]
    if wider:
        return rule_broken(judged, wider)
    # Its clause table says nothing of what its description has.
    described = f"{judged.operator.document.title} has inputs, outputs and attributes as they are described."
    return Rule(own, Level.ERROR, None, described, _advice_about(topic)["do"])


def rules_open(judged: CheckedOperator, since_version: int, features: frozenset[str]) -> list[Rule]:
    """Return the rules of clauses that leave open what a node with these features does."""
    return [
        rules()[clause.id]
        for clause in clauses_of(judged.name, since_version, features)
        if _open(judged, clause) and not _illegal(clause)
    ]
