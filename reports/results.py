"""The results of one run as columns.

A run has up to hundreds of thousands of results that differ in a few fields only. So fields that repeat are kept once:
a row points at a `Kind` (what was run, and what became of it) and at an `About` (what the case exercises).
"""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import starmap
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from ..conformance.judging.judgement import Verdict
from ..conformance.results.result import Place, Result
from ..reference import topic_of
from .legible import LONGEST_TEXT, shortened

NO_NUMBER = -1.0
"""Stands for a missing ratio or duration; both are never negative."""

T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True)
class Kind:
    """A kind of result: what was run and what became of it. Results with the same ten values share one."""

    op: str
    domain: str
    version: int
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
        return f"{name}-{self.version}"


class About(Struct, frozen=True):
    """The subjects of a case: clause ids and feature groups."""

    clauses: tuple[str, ...]
    features: tuple[str, ...]

    @property
    def groups(self) -> tuple[str, ...]:
        """The feature groups, or, where a run names none, the clauses' subjects (``lstm.clip.gates`` is ``clip``)."""
        return self.features or tuple(dict.fromkeys(subject_of(clause) for clause in self.clauses))


class Note(Struct, frozen=True):
    """The words of a result: the message, and where the first difference is."""

    message: str
    where: str


@dataclass(frozen=True)
class Results:
    """The columns. ``kind_of``, ``about_of`` and ``repeat_of`` point into ``kinds``, ``abouts`` and ``repeats``.

    ``worst`` is the largest |error| / radius and ``seconds`` the duration, `NO_NUMBER` where absent; ``notes`` has the
    rows that say something; ``repeats`` are command lines in which NUL stands for the case's id.
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

    def __len__(self) -> int:
        return len(self.case)

    @cached_property
    def counts(self) -> Mapping[int, int]:
        """The number of results of each kind."""
        return Counter(self.kind_of)

    @cached_property
    def group_counts(self) -> list[tuple[int, str, int]]:
        """(kind, feature group, how many results); a result counts in each of its groups."""
        if not len(self):
            return []
        number: dict[str, int] = {}
        groups = [[number.setdefault(name, len(number)) for name in labels.groups] for labels in self.abouts]
        # In arrays, since a run may have as many pairs of kind and about as results, each with several groups.
        pairs = np.asarray(self.kind_of, np.int64) * len(self.abouts) + np.asarray(self.about_of, np.int64)
        pair, times = np.unique(pairs, return_counts=True)
        kind, labels = np.divmod(pair, len(self.abouts))
        size = np.asarray([len(row) for row in groups], np.int64)
        start = np.cumsum(size) - size
        flat = np.asarray([place for row in groups for place in row], np.int64)
        repeated = size[labels]
        inside = np.arange(repeated.sum()) - np.repeat(np.cumsum(repeated) - repeated, repeated)
        keys = np.repeat(kind, repeated) * max(1, len(number)) + flat[np.repeat(start[labels], repeated) + inside]
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
    return topic_of(clause).partition(".")[0] or clause


def columns_of(results: Sequence[Result]) -> Results:
    """The results of a run as columns of printable text."""
    kind_of, kinds = _printable(_encoded(map(_KIND, results)), _kind)
    about_of, abouts = _printable(_encoded(map(_ABOUT, results)), _about)
    case = _plain([result.case for result in results])
    repeat_of, repeats = _templates(_plain([result.repeat for result in results]), case)
    return Results(
        case,
        kind_of,
        kinds,
        about_of,
        abouts,
        [NO_NUMBER if result.worst is None else result.worst for result in results],
        [result.seconds for result in results],
        {
            row: Note(shortened(result.message), _words(result.where))
            for row, result in enumerate(results)
            if result.message or result.where is not None
        },
        repeat_of,
        repeats,
    )


def _encoded(column: Iterable[T]) -> tuple[list[int], list[T]]:
    """Return (the place of each value among the distinct ones, the distinct ones in order of appearance)."""
    seen: dict[T, int] = {}
    return [seen.setdefault(value, len(seen)) for value in column], list(seen)


def _printable(column: tuple[list[int], list[Any]], printable: Callable[..., T]) -> tuple[list[int], list[T]]:
    """A column that `_encoded` returned, each of its values made printable. Few are, and the same may come of two."""
    places, values = column
    among, distinct = _encoded(starmap(printable, values))
    return (places if len(distinct) == len(values) else [among[place] for place in places]), distinct


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


def _plain(texts: list[str]) -> list[str]:
    """Texts that can be printed and are not too long."""
    # One look at all of them is far cheaper than one at each, and finds nothing in a conforming run.
    if "".join(texts).isprintable() and max(map(len, texts), default=0) <= LONGEST_TEXT:
        return texts
    return [shortened(text) for text in texts]


def _words(where: Place | None) -> str:
    """A place in words: ``Y[3, 0, 1, 5], step 3``."""
    if where is None:
        return ""
    index, step = where.get("index") or (), where.get("step")
    name = shortened(where.get("output", ""), 200)
    inside = ", ".join(map(str, index[:16]))
    parts = [f"{name}[{inside}]" if inside else name, "" if step is None else f"step {step}"]
    return ", ".join(filter(None, parts))


_KIND = attrgetter(*(field.name for field in dataclasses.fields(Kind)))
_ABOUT = attrgetter("clauses", "features")


def _kind(
    op: str,
    domain: str,
    version: int,
    type: str,
    target: str,
    verdict: Verdict,
    expected: bool,
    reason: str | None,
    flags: tuple[str, ...],
    diagnosis: tuple[str, ...],
) -> Kind:
    return Kind(
        op=shortened(op, 200),
        domain=shortened(domain, 200),
        version=version,
        type=shortened(type, 200),
        target=shortened(target, 200),
        verdict=verdict.value,
        expected=expected,
        reason=shortened(reason or "", 200),
        flags=_texts(flags, 20),
        diagnosis=_texts(diagnosis, 20),
    )


def _about(clauses: tuple[str, ...], features: tuple[str, ...]) -> About:
    return About(_texts(clauses), _texts(features))


def _texts(texts: tuple[str, ...], limit: int = 1000) -> tuple[str, ...]:
    # Nothing to mend in nearly all that there are, which is cheapest to see of all of their texts at once.
    if all(texts) and len(texts) <= limit and max(map(len, texts), default=0) <= 200 and "".join(texts).isprintable():
        return texts
    return tuple(filter(None, (shortened(text) for text in texts[:limit])))
