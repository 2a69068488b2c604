"""Suppressions: problems that somebody has reviewed and accepts, each with the reason, in a TOML file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePath
from typing import Annotated

from msgspec import Meta, Struct

from ...reference.errors import UserError
from ..border.typed_toml import TomlDocument
from ..probes.selection import UnknownName
from .problem import Checked, Problem
from .rule import rules

Text = Annotated[str, Meta(pattern=r"\S")]


class Suppression(Struct, frozen=True, kw_only=True):
    """One entry. ``rule``, ``node`` and ``file`` may have wildcards; ``file`` is compared with the end of a path."""

    rule: Text
    node: Text
    reason: Text
    file: Text = "*"

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
    """Read the entries of a file. Raise UserError."""
    document = TomlDocument.read(path, UserError)
    tables = document.tables("suppress")
    entries = [document.typed(table, Suppression, ("suppress", n)) for n, table in enumerate(tables)]
    for number, entry in enumerate(entries):
        if not any(fnmatchcase(id, entry.rule) for id in rules()):
            raise document.wrong(("suppress", number, "rule"), str(UnknownName("rule", entry.rule, list(rules()))))
    return entries


def suppressed(checked: Checked, entries: Sequence[Suppression]) -> Checked:
    """Return the result with the problems that an entry covers marked with its reason."""

    def mark(problem: Problem) -> Problem:
        reason = next((entry.reason for entry in entries if entry.covers(problem)), None)
        return problem if reason is None else replace(problem, suppressed=reason)

    return replace(checked, problems=tuple(map(mark, checked.problems)))


def unused(everything: Iterable[Checked], entries: Iterable[Suppression]) -> list[Suppression]:
    """Return the entries that cover no problem."""
    problems = [problem for checked in everything for problem in checked.problems]
    return [entry for entry in entries if not any(entry.covers(problem) for problem in problems)]
