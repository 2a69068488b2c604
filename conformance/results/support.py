"""Support of a target, from its results: operators, types and versions, and other features that refusals name.

Refusals with the same message are one line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence

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
    """Return (parts of the supported: operators, types, versions; the unsupported features, which findings name)."""
    tried = {(r.op, r.type, r.version, r.verdict in DECLINED) for r in results if _tells_of_support(r)}
    ran = {place[:3] for place in tried if not place[3]}
    operators, versions = sorted({op for op, *_ in ran}), sorted({version for *_, version in ran})
    refused = {version for op, _, version, _ in tried if op in operators} - {*versions}
    supports = listed(operators), ", ".join(_in_order({name for _, name, _ in ran})), _span(versions, refused)
    running = {(op, name) for op, kind, version in ran for name in (kind, f"version {version}")}
    return tuple(filter(None, supports)), tuple(_lacks(findings, running, operators))


def _in_order(types: Iterable[str]) -> list[str]:
    order = list(FORMATS)
    return sorted(types, key=lambda name: (order.index(name) if name in order else len(order), name))


def _tells_of_support(result: Result) -> bool:
    """Return whether a result shows support; results on forbidden models, or possibly forbidden ones, do not."""
    if result.verdict in DECLINED:
        return True
    return result.verdict not in _SAYS_NOTHING and result.reason not in OF_FORBIDDEN


def _span(running: Sequence[int], missing: Iterable[int]) -> str:
    """Return ``versions 7 to 22`` if all tried versions in between run; else list them."""
    if len(running) < 2:
        return f"version {running[0]}" if running else ""
    if any(running[0] < version < running[-1] for version in missing):
        return f"versions {listed([str(version) for version in running])}"
    return f"versions {running[0]} to {running[-1]}"


def refused_words(conditions: str) -> str:
    """Return the text for refused conditions: a condition "no ..." becomes "nodes with no ..."."""
    return f"nodes with {conditions}" if conditions.startswith("no ") else conditions


def _lacks(
    findings: Sequence[Finding], running: Collection[tuple[str, str]], operators: Sequence[str]
) -> Iterator[Lack]:
    """Yield the conditions of refusals, and the number of cases of refusals without a known condition.

    ``running`` has the types and versions that run in an operator, ``operators`` those that run.
    """
    refusals = [(index, finding) for index, finding in enumerate(findings) if verdict_of(finding) in DECLINED]
    named = {finding["conditions"].removesuffix(" altogether") for _, finding in refusals}
    count, indices, lacks = 0, [], set()
    for index, finding in refusals:
        condition = finding["conditions"].removesuffix(" altogether")
        if condition:
            runs = any((op, condition) in running for op in finding["operators"])
            text = f"{'some ' if runs else ''}{refused_words(condition)}"
            if condition.partition(" (")[0] not in finding["operators"] and {*operators} - {*finding["operators"]}:
                text += f" in {listed(finding['operators'])}"
            if text not in lacks:  # one lack, even if refused by one provider and left to another
                lacks.add(text)
                yield Lack(text, index)
        elif not ({*finding["types"]} <= named or {*finding["operators"]} <= named):
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
