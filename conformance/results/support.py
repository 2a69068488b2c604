"""Support of a target, from its results: operators, types and versions, and other features that refusals name.

Refusals with the same message are one line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from typing import Any

from msgspec import Struct

from ...reference import FORMATS
from ..judging.judgement import DECLINED, OF_FORBIDDEN, UNTRIED, Verdict
from ..text import listed, plural
from .records import Finding
from .result import Result

# The target returned nothing, or the model need not be supported.
_SAYS_NOTHING = frozenset({*UNTRIED, Verdict.NOT_TRIED, Verdict.CRASHED, Verdict.TIMED_OUT, Verdict.NOT_REJECTED})


class Lack(Struct, frozen=True):
    """An unsupported feature; ``problem`` is the index of its finding, None without one."""

    text: str
    problem: int | None


def verdict_of(finding: Finding) -> str:
    return finding["verdict"] or finding["kind"]


def support_of(results: Iterable[Result], findings: Sequence[Finding]) -> tuple[tuple[str, ...], tuple[Lack, ...]]:
    """Return (parts of the supported: operators, types, versions; the unsupported features)."""
    tried = {(r.op, r.type, r.version, r.verdict in DECLINED) for r in results if _tells_of_support(r)}
    ran = {place[:3] for place in tried if not place[3]}
    alive = sorted({op for op, *_ in ran})
    order = list(FORMATS)
    types = sorted({t for _, t, *_ in tried}, key=lambda t: (order.index(t) if t in order else len(order), t))
    versions = {f"version {v}": v for v in sorted({version for _, _, version, _ in tried})}

    def operators_of(name: str, places: Iterable[tuple[Any, ...]]) -> set[str]:
        """Return the operators in places of a type or a version."""
        return {place[0] for place in places if name in (place[1], f"version {place[2]}")}

    refusals = [finding for finding in findings if verdict_of(finding) in DECLINED]

    def refused(name: str, operators: Iterable[str]) -> list[str]:
        """Return the operators that refuse these conditions, according to findings."""
        named = {op for finding in refusals if finding["conditions"] == name for op in finding["operators"]}
        return [op for op in operators if op in named]

    explained = {op for f in refusals if f["conditions"] for op in f["operators"]}
    without = sorted({op for op, *_ in tried} - set(alive))
    lacks = {op: op for op in without if op not in explained or refused(f"{op} altogether", [op])}
    running = {name: operators_of(name, ran) for name in (*types, *versions)}
    for name, operators in running.items():
        missing = [op for op in alive if op in operators_of(name, tried) - operators]
        # Perhaps no case with a type ran because of other features: findings, if there are any, tell the cause.
        if lacking := refused(name, missing) if refusals else missing:
            lacks[name] = _narrowed(name, {*operators, *missing} - {*lacking}, lacking)
    supports = (
        listed(alive),
        ", ".join(name for name in types if running[name]),
        _span([version for name, version in versions.items() if running[name] and version], [*versions.values()]),
    )
    in_part = running.keys() - lacks.keys()
    plain = [Lack(text, _refusal_of(name, findings)) for name, text in lacks.items()]
    return tuple(filter(None, supports)), (*plain, *_other_lacks(findings, lacks.keys(), in_part, alive))


def _tells_of_support(result: Result) -> bool:
    """Return whether a result shows support; results on forbidden models, or possibly forbidden ones, do not."""
    if result.verdict in DECLINED:
        return True
    return result.verdict not in _SAYS_NOTHING and result.reason not in OF_FORBIDDEN


def _narrowed(words: str, others: Collection[str], missing: Sequence[str]) -> str:
    """Return an unsupported feature, with the operators that lack it if others have it."""
    return f"{words} in {listed(missing)}" if others else words


def _span(running: Sequence[int], tried: Sequence[int]) -> str:
    """Return ``versions 7 to 22`` if all tried versions in between run; else list them."""
    if len(running) < 2:
        return f"version {running[0]}" if running else ""
    gapless = [v for v in tried if running[0] <= v <= running[-1]] == list(running)
    return f"versions {running[0]} to {running[-1]}" if gapless else f"versions {listed([str(v) for v in running])}"


def refused_words(conditions: str) -> str:
    """Return the text for refused conditions: a condition "no ..." becomes "nodes with no ..."."""
    return f"nodes with {conditions}" if conditions.startswith("no ") else conditions


def _refusal_of(name: str, findings: Sequence[Finding]) -> int | None:
    names = (name, f"{name} altogether")
    return next((k for k, f in enumerate(findings) if verdict_of(f) in DECLINED and f["conditions"] in names), None)


def _other_lacks(
    findings: Sequence[Finding], named: Collection[str], running: Collection[str], alive: Sequence[str]
) -> Iterator[Lack]:
    """Yield further conditions that are not supported, in the words of the findings; the rest as a number.

    ``named`` has what is said to be lacking already, ``running`` the types and versions that do run.
    """
    count, indices, lacks = 0, [], set()
    for index, finding in enumerate(findings):
        conditions = finding["conditions"]
        if verdict_of(finding) not in DECLINED or conditions.removesuffix(" altogether") in named:
            continue
        if conditions:
            prefix = "some " if conditions in running else ""
            names_operator = conditions.partition(" (")[0] in finding["operators"]
            other_operators = [] if names_operator else [op for op in alive if op not in finding["operators"]]
            text = prefix + _narrowed(refused_words(conditions), other_operators, finding["operators"])
            if text not in lacks:  # one lack, even if refused by one provider and left to another
                lacks.add(text)
                yield Lack(text, index)
        elif not (set(finding["types"]) <= set(named) or set(finding["operators"]) <= set(named)):
            count += len(finding["cases"])
            indices.append(index)
    if count:
        yield Lack(plural(count, "other case"), indices[0] if len(indices) == 1 else None)


_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+\b|\b(?:LSTM|GRU|RNN|lstm|gru|rnn|b?float\d*|double)\b|Lstm|Gru|Rnn")
"""Parts of a message that name one operator, type, value or line: without them, refusals with one cause are equal."""


def by_message(messages: Sequence[str], keys: Sequence[Hashable]) -> list[tuple[list[int], str]]:
    """Return the indices of refusals with equal messages and keys, in their order, with the first message."""
    groups: dict[tuple[Hashable, str], list[int]] = {}
    for index, (message, key) in enumerate(zip(messages, keys, strict=True)):
        groups.setdefault((key, _VARIABLE.sub("", message)), []).append(index)
    return [(indices, messages[indices[0]]) for indices in groups.values()]
