"""The distribution of levels that quantized outputs are off by, as bars that a template draws."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ..conformance.results.level_grades import graded_line
from ..conformance.results.records import LevelsRecord

__all__ = ["Bar", "LevelPicture", "pictures_of_levels"]

_ENDS = (0, 1, 2, 4, 16, 64, 256, 4096, 65535)
"""The last number of levels of each bar."""
_HEIGHT, _WIDTH, _STEP, _TOP = 110, 34, 52, 22


@dataclass(frozen=True)
class Bar:
    """The cases that are off by so many levels: what is right or inaccurate below, what is wrong above."""

    label: str
    x: int
    width: int
    held: int
    wrong: int
    held_y: float
    held_height: float
    wrong_y: float
    wrong_height: float


@dataclass(frozen=True)
class LevelPicture:
    """Bars for one operator and number of bits, over a line of `base`."""

    operator: str
    bits: int
    summary: str
    width: int
    height: int
    base: int
    bars: tuple[Bar, ...]


def pictures_of_levels(records: Sequence[LevelsRecord]) -> list[LevelPicture]:
    """One picture for each operator and number of bits."""
    return [_picture(record) for record in records]


def _picture(record: LevelsRecord) -> LevelPicture:
    held, wrong = _grouped(record["off"]), _grouped(record["wrong"])
    last = max(place for place in range(len(_ENDS)) if held[place] or wrong[place] or place == 1)
    most = max(held[place] + wrong[place] for place in range(last + 1)) or 1
    base = _TOP + _HEIGHT
    bars = []
    for place in range(last + 1):
        below, above = (_HEIGHT * some[place] / most for some in (held, wrong))
        left = 8 + place * _STEP
        sizes = round(base - below, 1), round(below, 1), round(base - below - above, 1), round(above, 1)
        bars.append(Bar(_label(place), left, _WIDTH, held[place], wrong[place], *sizes))
    summary = graded_line([record], record["bits"])
    return LevelPicture(
        record["operator"], record["bits"], summary, 8 + (last + 1) * _STEP, base + 22, base, tuple(bars)
    )


def _grouped(pairs: Sequence[Sequence[int]]) -> Counter[int]:
    """Cases by the place of their bar."""
    grouped: Counter[int] = Counter()
    for levels, cases in pairs:
        grouped[next((place for place, end in enumerate(_ENDS) if levels <= end), len(_ENDS) - 1)] += cases
    return grouped


def _label(place: int) -> str:
    end, before = _ENDS[place], _ENDS[place - 1] if place else -1
    return str(end) if end == before + 1 else f"\u2264 {end:,}"
