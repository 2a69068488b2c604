"""Evidence of a case, read from an untrusted run folder, and its heat map. Nothing outside the folder is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..conformance.border.strict_json import parse, typed
from ..conformance.showing.records import SCHEMA, Evidence, Input, Numbers, from_json
from ..conformance.text import plural

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
"""(upper end of |error| / bound, CSS class of the colour, text).

The third band and later ones are outside the bound.
"""


@dataclass(frozen=True)
class Tile:
    """One element: the CSS class of its colour, its text, and its meaning as a sentence."""

    band: str
    text: str
    title: str
    padding: bool


@dataclass(frozen=True)
class HeatTable:
    """Tiles, as rows of (name, tiles).

    ``here`` is the index of the row that is shown in detail, -1 for none. ``total_rows`` and ``total_steps`` include
    rows and steps that the evidence left out.
    """

    row_word: str
    steps: tuple[int, ...]
    rows: tuple[tuple[str, tuple[Tile, ...]], ...]
    here: int
    total_rows: int
    total_steps: int

    @property
    def padded(self) -> bool:
        return any(tile.padding for _, tiles in self.rows for tile in tiles)

    @property
    def summary(self) -> str:
        """The table as one sentence."""
        checked = [
            (step, name, tile)
            for name, tiles in self.rows
            for step, tile in zip(self.steps, tiles, strict=True)
            if tile.band != "none"
        ]
        inside = [entry for entry in checked if not entry[2].padding]
        wrong = [entry for entry in inside if entry[2].band in _OUTSIDE]
        text = (
            f"{len(wrong)} of {plural(len(inside), 'value')} {'is' if 1 in (len(wrong), len(inside)) else 'are'} wrong"
        )
        if wrong:
            step, name, _ = min(wrong, key=lambda entry: entry[0])
            text += f", the first at step {step}, {self.row_word} {name}"
        unkept = sum(tile.padding and tile.band in _OUTSIDE for *_, tile in checked)
        values = "value is" if unkept == 1 else "values are"
        return text + (f"; {unkept} padding {values} not zero (allowed)." if unkept else ".")


_OUTSIDE = ("b2", "b3", "b4")


def band(ratio: float | None) -> str:
    """Return the CSS class of the colour of a ratio; ``none`` where the element is not judged."""
    if ratio is None or math.isnan(ratio):
        return "none"
    return next(name for end, name, _ in BANDS if ratio <= end)


def times(ratio: float | None) -> str:
    """Return a ratio as short text for a tile: ``0.12``, ``35``, ``4e5``."""
    if ratio is None or math.isnan(ratio):
        return ""
    if math.isinf(ratio):
        return "\N{INFINITY}"
    if ratio >= 1000:
        mantissa, exponent = f"{ratio:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if ratio >= 0.095:
        return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}"
    return "0" if ratio < 5e-4 else "<.1"


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
    shown_steps = tuple(steps[:MOST_CELLS])
    rows = tuple(
        (name, tuple(_tile(ratio, step >= end) for step, ratio in zip(shown_steps, ratios, strict=False)))
        for name, ratios, end in lines[:MOST_CELLS]
    )
    return HeatTable(row_word, shown_steps, rows, here, total_rows, total_steps)


def _tile(ratio: float | None, padding: bool) -> Tile:
    colour = band(ratio)
    if padding:
        kept = colour not in _OUTSIDE
        return Tile(colour, times(ratio) if kept else "\N{EN DASH}", "padding" if kept else "padding, not zero", True)
    if ratio is None or math.isnan(ratio):
        return Tile(colour, "", "not judged", False)
    text = "no bound allows it" if math.isinf(ratio) else f"{ratio:.3g} times the error bound"
    return Tile(colour, times(ratio), text, False)
