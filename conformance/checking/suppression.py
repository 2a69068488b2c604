"""Suppressions: problems that somebody has looked at and accepts, each with the reason, in a TOML file.

::

    [[suppress]]
    rule = "lstm.padding.zero"
    node = "/decoder/*"
    file = "models/asr.onnx"     # may be left out
    reason = "the padding is masked behind the node"
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from ..probes.selection import UnknownName
from ..targets.toml_lines import line_of, parse_toml
from .problem import Checked, Problem
from .rules import rules

__all__ = ["Suppression", "SuppressionError", "read_suppressions", "suppressed", "unused"]

_KEYS = ("rule", "node", "file", "reason")


class SuppressionError(ValueError):
    """A file of suppressions is wrong; the text names it, the line and the entry, in one line."""


@dataclass(frozen=True)
class Suppression:
    """One entry. ``rule``, ``node`` and ``file`` may have wildcards; ``file`` is compared with the end of a path."""

    rule: str
    node: str
    reason: str
    file: str = "*"

    def covers(self, problem: Problem) -> bool:
        path = PurePath(problem.file).as_posix()
        return (
            fnmatchcase(problem.rule, self.rule)
            and fnmatchcase(problem.node, self.node)
            and (fnmatchcase(path, self.file) or fnmatchcase(path, f"*/{self.file}"))
        )

    def __str__(self) -> str:
        file = f" in {self.file}" if self.file != "*" else ""
        return f"{self.rule} of {self.node}{file}"


def read_suppressions(path: Path) -> list[Suppression]:
    """The entries of a file. Raises SuppressionError."""
    try:
        text = path.read_text(encoding="utf-8")
        table = parse_toml(text)
    except OSError as error:
        raise SuppressionError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:
        raise SuppressionError(f"{path}: {error}") from None
    rows = table.pop("suppress", [])
    if table:
        raise SuppressionError(f"{path}: unknown key {', '.join(map(repr, table))}; every entry is a [[suppress]]")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SuppressionError(f"{path}: every entry is a [[suppress]]")
    return [_entry(path, text, number, row) for number, row in enumerate(rows)]


def _entry(path: Path, text: str, number: int, row: dict[str, object]) -> Suppression:
    def wrong(key: str, what: str) -> SuppressionError:
        line = line_of(text, ("suppress", number, key)) or line_of(text, ("suppress", number))
        return SuppressionError(f"{path}{f':{line}' if line else ''}: entry {number + 1} of suppress: {what}")

    for key, value in row.items():
        if key not in _KEYS:
            raise wrong(key, f"unknown key {key!r}; there are {', '.join(_KEYS)}")
        if not isinstance(value, str) or not value.strip():
            raise wrong(key, f"{key} is a text, not {value!r}")
    for key in ("rule", "node", "reason"):
        if key not in row:
            raise wrong(key, f"{key} is missing")
    given = {key: str(value) for key, value in row.items()}
    if not any(fnmatchcase(id, given["rule"]) for id in rules()):
        raise wrong("rule", str(UnknownName("rule", given["rule"], list(rules()))))
    return Suppression(**given)


def suppressed(checked: Checked, entries: Sequence[Suppression]) -> Checked:
    """The same, problems that an entry covers marked with its reason."""

    def mark(problem: Problem) -> Problem:
        reason = next((entry.reason for entry in entries if entry.covers(problem)), None)
        return problem if reason is None else replace(problem, suppressed=reason)

    return checked.with_problems([*map(mark, checked.problems)])


def unused(everything: Iterable[Checked], entries: Iterable[Suppression]) -> list[Suppression]:
    """Entries that cover no problem."""
    problems = [problem for checked in everything for problem in checked.problems]
    return [entry for entry in entries if not any(entry.covers(problem) for problem in problems)]
