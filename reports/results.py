"""The results of one run as columns.

A run has up to hundreds of thousands of results that differ in a few fields only. So fields that repeat are kept once:
a row points at a `Kind` (what was run, and what became of it) and at an `About` (what the case exercises).
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from . import fields
from .lexer import Fragments, decoded, lex

NO_NUMBER = -1.0
"""Stands for a missing ratio or duration; both are never negative."""

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Kind:
    """What was run and what became of it; every result with the same ten values shares one."""

    op: str
    domain: str
    version: int | None
    type: str
    target: str
    verdict: str
    expected: bool
    reason: str
    flags: tuple[str, ...]
    diagnosis: tuple[str, ...]

    @property
    def operator(self) -> str:
        """The operator version as people write it: ``LSTM-14``, ``com.amd.quark::ExtendedLSTM-1``."""
        name = f"{self.domain}::{self.op}" if self.domain else self.op or "unnamed"
        return name if self.version is None else f"{name}-{self.version}"


@dataclass(frozen=True)
class About:
    """What a case exercises: clause ids and feature groups."""

    clauses: tuple[str, ...]
    features: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The feature groups, or, where a run names none, the clauses' subjects (``lstm.clip.gates`` is ``clip``)."""
        return self.features or tuple(dict.fromkeys(subject_of(clause) for clause in self.clauses))


@dataclass(frozen=True)
class Note:
    """What a result says in words: the message, and where the first difference is."""

    message: str
    where: str


@dataclass(frozen=True)
class Results:
    """The columns. ``kind_of``, ``about_of`` and ``repeat_of`` point into ``kinds``, ``abouts`` and ``repeats``.

    ``worst`` is the largest |error| / radius and ``seconds`` the duration, `NO_NUMBER` where absent; ``notes`` has the
    rows that say something; ``repeats`` are command lines in which NUL stands for the case's id; ``broken`` counts the
    lines that could not be read, ``first_broken`` is the number of the first of them, from 1.
    """

    case: Sequence[str]
    kind_of: Sequence[int]
    kinds: Sequence[Kind]
    about_of: Sequence[int]
    abouts: Sequence[About]
    worst: Sequence[float]
    seconds: Sequence[float]
    notes: Mapping[int, Note]
    repeat_of: Sequence[int]
    repeats: Sequence[str]
    broken: int = 0
    first_broken: int = 0

    def __len__(self) -> int:
        return len(self.case)

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """How many results there are of each kind."""
        return Counter(self.kind_of)

    @cached_property
    def group_counts(self) -> list[tuple[int, str, int]]:
        """(kind, feature group, how many results); a result counts in each of its groups."""
        if not len(self):
            return []
        number: dict[str, int] = {}
        groups = [[number.setdefault(name, len(number)) for name in about.groups] for about in self.abouts]
        # In arrays, since a run may have as many pairs of kind and about as results, each with several groups.
        pairs = np.asarray(self.kind_of, np.int64) * len(self.abouts) + np.asarray(self.about_of, np.int64)
        pair, times = np.unique(pairs, return_counts=True)
        kind, about = np.divmod(pair, len(self.abouts))
        size = np.asarray([len(row) for row in groups], np.int64)
        start = np.cumsum(size) - size
        flat = np.asarray([place for row in groups for place in row], np.int64)
        repeated = size[about]
        inside = np.arange(repeated.sum()) - np.repeat(np.cumsum(repeated) - repeated, repeated)
        keys = np.repeat(kind, repeated) * max(1, len(number)) + flat[np.repeat(start[about], repeated) + inside]
        key, place = np.unique(keys, return_inverse=True)
        totals = np.bincount(place.ravel(), weights=np.repeat(times, repeated), minlength=len(key))
        names = list(number)
        return [
            (int(k) // len(names), names[int(k) % len(names)], round(total))
            for k, total in zip(key.tolist(), totals.tolist(), strict=True)
        ]

    @cached_property
    def worst_of_kind(self) -> Mapping[int, float]:
        """The largest |error| / radius of each kind, `NO_NUMBER` where none has one."""
        largest = np.full(len(self.kinds), NO_NUMBER)
        np.maximum.at(largest, np.asarray(self.kind_of, np.int64), np.asarray(self.worst, np.float64))
        return dict(enumerate(largest.tolist()))

    def repeat(self, row: int) -> str:
        """Return the command line that repeats the result in ``row``."""
        kept = self.repeats[self.repeat_of[row]] if self.repeat_of else ""
        return (kept or default_repeat(self.kinds[self.kind_of[row]])).replace("\0", self.case[row])


NOTHING = Results((), (), (), (), (), (), (), {}, (), ())


def default_repeat(kind: Kind) -> str:
    """Return the command that repeats a case of ``kind``, with NUL for the case's id, which is a safe file name."""
    return f"onnxspec run --target {shlex.quote(kind.target)} --case \0"


def subject_of(clause: str) -> str:
    """Return what a clause is about: the part after the operator's name, or the whole id where it has one part."""
    parts = clause.split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def read_results(path: Path) -> Results:
    """Read ``path`` (one JSON object a line). Lines that are none are counted, never guessed at. Raises OSError."""
    columns = lex(path.read_bytes().decode("utf-8", errors="replace"))
    kind_of, kind_pieces = _encoded(columns.kind)
    about_of, about_pieces = _encoded(columns.about)
    kinds = [_kind(_object(pieces)) for pieces in kind_pieces]
    abouts = [_about(_object(pieces)) for pieces in about_pieces]
    case = _plain(columns.case)
    repeat_of, repeat_texts = _templates(_plain(columns.repeat), case)
    return Results(
        case,
        kind_of,
        kinds,
        about_of,
        abouts,
        _numbers(columns.worst),
        _numbers(columns.seconds),
        _notes(columns),
        repeat_of,
        repeat_texts,
        columns.broken,
        columns.first_broken,
    )


def _encoded(column: Iterable[T]) -> tuple[list[int], list[T]]:
    """Return (the place of each value among the distinct ones, the distinct ones in order of appearance)."""
    seen: dict[T, int] = {}
    return [seen.setdefault(value, len(seen)) for value in column], list(seen)


def _templates(commands: Sequence[str], case: Sequence[str]) -> tuple[Sequence[int], list[str]]:
    """Return (the place of each command's template, the templates): NUL stands for the case's id in them."""
    if not any(commands):
        return (), []
    first = commands[0].partition(case[0]) if case[0] else (commands[0], "", "")
    if first[1] and commands == [first[0] + name + first[2] for name in case]:
        return [0] * len(case), [f"{first[0]}\0{first[2]}"]
    return _encoded(
        command.replace(name, "\0") if name else command for command, name in zip(commands, case, strict=True)
    )


def _object(pieces: tuple[str, ...]) -> Mapping[str, Any]:
    return fields.mapping(decoded("{" + ", ".join(filter(None, pieces)) + "}"))


def _plain(column: Sequence[str]) -> list[str]:
    """Return the JSON strings of ``column`` as printable texts, what is no string as an empty one."""
    plain = [_text(part) for part in column]
    # One look at all of them is far cheaper than one at each, and finds nothing in an honest run.
    return plain if "".join(plain).isprintable() else [fields.printable(text) for text in plain]


def _text(part: str) -> str:
    if part[:1] == '"' and "\\" not in part and len(part) <= fields.LONGEST_TEXT:
        return part[1:-1]
    return fields.text(decoded(part))


def _numbers(column: Sequence[str]) -> list[float]:
    try:
        numbers = [NO_NUMBER if part == "null" else float(part) for part in column]
    except ValueError:
        numbers = [math.nan]
    if not all(map(math.isfinite, numbers)):
        cleaned = (fields.number(decoded(part)) for part in column)
        numbers = [NO_NUMBER if value is None else value for value in cleaned]
    return numbers


def _notes(columns: Fragments) -> dict[int, Note]:
    silent = ("null", '""')
    return {
        row: Note(fields.printable(_text(message)), "" if where == "null" else _place(where))
        for row, (message, where) in enumerate(zip(columns.message, columns.where, strict=True))
        if message not in silent or where != "null"
    }


USUAL_PLACE = re.compile(r'\{"output": "(\w+)", "index": \[([-0-9, ]+)\], "step": (?:null|(\d+))\}')


def _place(where: str) -> str:
    """Return the fragment ``where`` in words: ``Y[3, 0, 1, 5], step 3``."""
    if found := USUAL_PLACE.fullmatch(where):  # nearly all; ten times cheaper than parsing it
        output, index, step = found.groups()
        return f"{output}[{index}]" if step is None else f"{output}[{index}], step {step}"
    place = fields.mapping(decoded(where))
    index, at = place.get("index"), fields.integer(place.get("step"))
    inside = ", ".join(fields.text(part) for part in index[:16]) if isinstance(index, list) else fields.text(index)
    name = fields.text(place.get("output"), limit=200)
    parts = [f"{name}[{inside}]" if inside else name, "" if at is None else f"step {at}"]
    return ", ".join(filter(None, parts))


def _kind(row: Mapping[str, Any]) -> Kind:
    return Kind(
        op=fields.text(row.get("op"), limit=200),
        domain=fields.text(row.get("domain"), limit=200),
        version=fields.integer(row.get("version")),
        type=fields.text(row.get("type"), limit=200),
        target=fields.text(row.get("target"), "unnamed target", limit=200),
        verdict=fields.text(row.get("verdict"), limit=200),
        expected=row.get("expected") is True,
        reason=fields.text(row.get("reason"), limit=200),
        flags=fields.texts(row.get("flags"), 20),
        diagnosis=fields.texts(row.get("diagnosis"), 20),
    )


def _about(row: Mapping[str, Any]) -> About:
    return About(fields.texts(row.get("clauses"), 200), fields.texts(row.get("features"), 200))
