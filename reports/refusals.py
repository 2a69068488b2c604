"""Refusals of targets: those with the same message in one line, messages cut to the part that differs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from .findings import Finding

_VARIABLE = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d+\b|\b(?:LSTM|GRU|RNN|lstm|gru|rnn)\b|Lstm|Gru|Rnn")
"""Parts of a message that name one operator, value or line: without them, refusals with one cause have equal text."""

_SHORTEST = 4
"""Number of words that two messages must share at their start before they are cut."""


@dataclass(frozen=True)
class Refusal:
    """Findings that a target refuses with the same message; ``message`` is the part that differs from others."""

    findings: tuple[Finding, ...]
    message: str

    @property
    def count(self) -> int:
        return len({(id(m.subject), case) for finding in self.findings for m in finding.members for case in m.cases})

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(type for finding in self.findings for type in finding.types))

    @property
    def targets(self) -> tuple[str, ...]:
        """Labels of the targets that refuse."""
        return tuple(dict.fromkeys(member.subject.label for f in self.findings for member in f.members))


def refusals_of(findings: Sequence[Finding]) -> list[Refusal]:
    """Return findings on refusals grouped into lines, in their order."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        text = _VARIABLE.sub("", finding.members[0].message)
        groups.setdefault((finding.verdict, text, *(id(m.subject) for m in finding.members)), []).append(finding)
    messages = shortened_messages([group[0].members[0].message for group in groups.values()])
    return [Refusal(tuple(group), message) for group, message in zip(groups.values(), messages, strict=True)]


def shortened_messages(messages: Sequence[str]) -> list[str]:
    """Return messages without the words that another message begins with, too."""
    split_messages = [message.split() for message in messages]
    return [_without_shared(own, split_messages[:k] + split_messages[k + 1 :]) for k, own in enumerate(split_messages)]


def _without_shared(own: list[str], others: Sequence[list[str]]) -> str:
    shared = 0
    for other_words in others:
        if other_words != own:
            equal = next((k for k, pair in enumerate(zip(own, other_words, strict=False)) if pair[0] != pair[1]), 0)
            shared = max(shared, equal)
    return " ".join(["\N{HORIZONTAL ELLIPSIS}", *own[shared:]] if shared >= _SHORTEST else own)
