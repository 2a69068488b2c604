"""Evidence of a case, read from an untrusted run folder, and its heat map. Nothing outside the folder is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..conformance.border.strict_json import parse, typed
from ..conformance.showing.records import SCHEMA, Evidence, Input, Numbers, from_json

LARGEST_EVIDENCE = 8 << 20
LARGEST_FILE = 64 << 20
MOST_FILES = 64
MOST_VALUES = 10

# Files that a reader may download. Other files of the folder are never offered.
_FILES = re.compile(r"(?:evidence\.json|script\.py|model\.onnx|test_data_set_\d{1,3}/(?:in|out)put_\d{1,3}\.pb)")


@dataclass(frozen=True)
class Exhibit:
    """One case on one target: its evidence, and ``files`` for download, as paths inside ``folder``."""

    folder: Path
    evidence: Evidence
    files: tuple[str, ...]


def read_exhibit(run: Path, name: str) -> Exhibit | None:
    """Return the exhibit in folder ``name`` of the run folder; None where it cannot be read."""
    if not name:
        return None
    try:
        root, folder = run.resolve(), (run / name).resolve()
        if root not in folder.parents:
            return None
        path = folder / "evidence.json"
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_EVIDENCE:
            return None
        evidence = typed(from_json(parse(path.read_bytes())), Evidence)
        return Exhibit(folder, evidence, tuple(_files(folder))) if evidence.schema == SCHEMA else None
    except (OSError, ValueError):
        return None


def _files(folder: Path) -> Iterator[str]:
    """Yield the files for download, the most useful first."""
    names = ["script.py", "model.onnx"]
    for data_set in sorted(folder.glob("test_data_set_*")):
        if not data_set.is_symlink() and data_set.is_dir():
            names += sorted(path.relative_to(folder).as_posix() for path in data_set.iterdir())
    for name in [*names, "evidence.json"][:MOST_FILES]:
        path = folder / name
        if _FILES.fullmatch(name) and not path.is_symlink() and path.is_file() and path.stat().st_size <= LARGEST_FILE:
            yield name


def shape_text(sizes: Sequence[int]) -> str:
    """Return a shape as text for a table, e.g. ``4 x 3 x 2``."""
    return " \N{MULTIPLICATION SIGN} ".join(map(str, sizes[:8])) if sizes else "scalar"


def short(value: float | None, digits: int = 6) -> str:
    """Return a number as text for a table; an empty text for None."""
    return "" if value is None else f"{value:.{digits}g}"


def first_values(input: Input) -> str:
    """Return the first values of an input, with dots where more follow."""
    values = [short(value) for value in (input.values or [])[:MOST_VALUES] if value is not None]
    more = ", ..." if values and math.prod(input.shape or ()) > len(values) else ""
    return ", ".join(values) + more


def range_text(input: Input) -> str:
    """Return the range of an input, and its number of non-finite values."""
    low, high = input.low, input.high
    finite = f"{short(low)} to {short(high)}" if isinstance(low, float) and isinstance(high, float) else ""
    odd = f"{input.nonfinite} not finite" if input.nonfinite else ""
    return ", ".join(filter(None, [finite, odd]))


MOST_CELLS = 128
BANDS = (
    (0.5, "b0", "up to half the error bound"),
    (1.0, "b1", "within the error bound"),
    (10.0, "b2", "up to 10 times the bound"),
    (1e3, "b3", "up to 1,000 times the bound"),
    (math.inf, "b4", "beyond"),
)
"""(upper end of |error| / bound, CSS class of the colour, text)."""


class Tile(NamedTuple):
    """One element with its |error| / bound; None where it is not judged."""

    ratio: float | None
    padding: bool

    @property
    def outside(self) -> bool:
        """Whether it is outside its bound, which padding may be."""
        return self.ratio is not None and self.ratio > 1

    @property
    def band(self) -> str:
        """The CSS class of its colour."""
        ratio = self.ratio
        return "none" if ratio is None else next(name for end, name, _ in BANDS if ratio <= end)

    @property
    def text(self) -> str:
        """The ratio as short text: ``0.12``, ``35``, ``4e5``; a dash for padding that is not zero."""
        if self.ratio is None:
            return ""
        if self.padding and self.outside:
            return "\N{EN DASH}"
        if math.isinf(self.ratio):
            return "\N{INFINITY}"
        if self.ratio < 0.1:
            return "<.1" if self.ratio else "0"
        if 10 <= self.ratio < 1000:
            return f"{self.ratio:.0f}"
        return f"{self.ratio:.2g}".replace("e+0", "e").replace("e+", "e")

    @property
    def title(self) -> str:
        """Its meaning as a sentence."""
        if self.padding:
            return "padding, not zero" if self.outside else "padding"
        if self.ratio is None:
            return "not judged"
        return "no bound allows it" if math.isinf(self.ratio) else f"{self.ratio:.3g} times the error bound"


class HeatTable(NamedTuple):
    """Tiles, as rows of (name, tiles).

    ``here`` is the index of the row that is shown in detail, -1 for none. ``total_rows`` and ``total_steps`` include
    rows and steps that the evidence left out.
    """

    row_word: str
    steps: Sequence[int]
    rows: list[tuple[str, list[Tile]]]
    here: int
    total_rows: int
    total_steps: int

    @property
    def padded(self) -> bool:
        return any(tile.padding for _, tiles in self.rows for tile in tiles)

    @property
    def summary(self) -> str:
        """The table as one or two sentences."""
        tiles = [(step, name, tile) for name, row in self.rows for step, tile in zip(self.steps, row, strict=True)]
        judged = [entry for entry in tiles if entry[2].ratio is not None and not entry[2].padding]
        wrong = [entry for entry in judged if entry[2].outside]
        text = f"{len(wrong)} of {len(judged)} values are wrong"
        if wrong:
            step, name, _ = min(wrong, key=lambda entry: entry[0])
            text += f", the first at step {step}, {self.row_word} {name}"
        padding = sum(tile.padding and tile.outside for *_, tile in tiles)
        return text + (f". Padding values other than zero (allowed): {padding}." if padding else ".")


def by_unit(numbers: Numbers) -> HeatTable | None:
    """Return the tiles of one batch row, units down; None where the evidence has none."""
    plane = numbers.plane
    if not plane or not _even(plane.ratio, len(plane.steps), len(plane.units)):
        return None
    lines = [(str(unit), ratios, plane.length) for unit, *ratios in zip(plane.units, *plane.ratio, strict=True)]
    return _table("unit", plane.steps, lines, -1, plane.of_units, plane.of_steps)


def by_row(numbers: Numbers) -> HeatTable | None:
    """Return the worst tile of each batch row at each step; None where the evidence has none."""
    rows = numbers.rows
    if not rows or len(rows.names) < 2 or not _even(rows.ratio, len(rows.names), len(rows.steps)):
        return None
    if len(rows.lengths) != len(rows.names):
        return None
    lines = list(zip(rows.names, rows.ratio, rows.lengths, strict=True))
    return _table("row", rows.steps, lines, rows.here, rows.of_rows, rows.of_steps)


def _even(lines: Sequence[Sequence[object]], height: int, width: int) -> bool:
    return len(lines) == height > 0 and all(len(line) == width > 0 for line in lines)


def _table(
    row_word: str,
    steps: Sequence[int],
    lines: Sequence[tuple[str, Sequence[float | None], int]],
    here: int,
    total_rows: int,
    total_steps: int,
) -> HeatTable:
    """Return the table; a line has a name, ratios, and the step at which its padding begins."""
    steps = steps[:MOST_CELLS]
    rows = []
    for name, ratios, end in lines[:MOST_CELLS]:
        judged = (None if ratio is None or math.isnan(ratio) else ratio for ratio in ratios)
        rows.append((name, [Tile(ratio, step >= end) for step, ratio in zip(steps, judged, strict=False)]))
    return HeatTable(row_word, steps, rows, here, total_rows, total_steps)
