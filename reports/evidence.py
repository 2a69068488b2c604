"""The evidence of a case as a page shows it, read from a run directory that may hold anything.

What the harness wrote is taken as it stands: nothing here computes a ratio, a radius or an expected number.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import fields

SCHEMA = 1
LARGEST_EXHIBIT = 8 << 20
LARGEST_FILE = 64 << 20
MOST_FILES = 64
MOST_CELLS = 128
MOST_VALUES = 10

# The files that a reader may take away. Others in the folder are nobody's business here.
_FILES = re.compile(r"(?:evidence\.json|script\.py|model\.onnx|test_data_set_\d{1,3}/(?:in|out)put_\d{1,3}\.pb)")
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class Input:
    """One input of the node; ``given`` is how it comes, or ``absent``; ``values`` are the first ones."""

    name: str
    given: str
    type: str
    shape: str
    values: str
    span: str


@dataclass(frozen=True)
class Checked:
    """A number beside what it must be. None: not judged (``must``, ``ratio``) or not reported (``got``)."""

    name: str
    must: float | None
    within: float | None
    got: float | None
    ratio: float | None


@dataclass(frozen=True)
class Grid:
    """|error| / radius over two axes: ``values[row][column]``, None where nothing is judged.

    ``ends`` has for each row the number of columns (steps) before its padding; ``here`` is the row looked at, -1 for
    none; ``of_rows`` and ``of_columns`` say how many there are in all.
    """

    rows: tuple[str, ...]
    columns: tuple[int, ...]
    values: tuple[tuple[float | None, ...], ...]
    of_rows: int
    of_columns: int
    here: int
    ends: tuple[int, ...]


@dataclass(frozen=True)
class GateLine:
    """One step of one unit: the gates by letter, and the Y of that step."""

    step: int
    position: int
    padding: bool
    values: tuple[float | None, ...]
    y: Checked


@dataclass(frozen=True)
class Numbers:
    """Where target and expectation part, and what is around it."""

    title: str
    from_reported: bool
    direction: str
    row: int
    unit: int
    parting: Checked | None
    parting_step: int | None
    states: tuple[Checked, ...]
    gates: tuple[str, ...]
    lines: tuple[GateLine, ...]
    plane: Grid | None
    across: Grid | None


@dataclass(frozen=True)
class Exhibit:
    """One case on one target. ``files`` are paths inside ``folder``."""

    folder: Path
    case: str
    message: str
    node: str
    operator: str
    opset: int | None
    asked: tuple[str, ...]
    accuracy: str
    interpretations: tuple[tuple[str, str], ...]
    diagnosis: tuple[tuple[str, str], ...]
    status: str
    signal: str
    captured: str
    inputs: tuple[Input, ...]
    runs_before: tuple[str, ...]
    numbers: Numbers | None
    files: tuple[str, ...]


def read_exhibit(run: Path, entry: object) -> Exhibit | None:
    """Return the exhibit in the folder that ``entry`` names inside the run directory; None where there is none that can
    be read. Nothing outside the run directory is looked at."""
    name = fields.text(entry, limit=1000)
    if not name:
        return None
    try:
        root, folder = run.resolve(), (run / name).resolve()
        if root not in folder.parents:
            return None
        path = folder / "evidence.json"
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_EXHIBIT:
            return None
        content = fields.mapping(json.loads(path.read_bytes()))
        if content.get("schema") != SCHEMA:
            return None
        return _exhibit(folder, content)
    except (OSError, ValueError, RecursionError):
        return None


def _exhibit(folder: Path, content: Mapping[str, Any]) -> Exhibit:
    process = fields.mapping(content.get("process"))
    return Exhibit(
        folder,
        fields.text(content.get("case"), limit=300),
        fields.text(content.get("message")),
        fields.text(content.get("node")),
        fields.text(content.get("operator"), limit=200),
        fields.integer(content.get("opset")),
        fields.texts(content.get("asked"), 40),
        fields.text(content.get("class"), limit=60),
        tuple(fields.flattened(fields.mapping(content.get("interpretations")))),
        tuple(
            (fields.text(item.get("id"), limit=200), fields.text(item.get("text"), limit=1000))
            for item in fields.items(content.get("diagnosis"))[:20]
        ),
        fields.text(process.get("status"), limit=60),
        fields.text(process.get("signal"), limit=60),
        fields.text(process.get("captured")).strip(),
        tuple(_input(item) for item in fields.items(content.get("inputs"))[:60]),
        tuple(_shape(shape) for shape in _list(content.get("runs_before"))[:8]),
        _numbers(fields.mapping(content.get("numbers"))),
        tuple(_files(folder)),
    )


def _files(folder: Path) -> Iterator[str]:
    """The files to take away, in the order in which a reader wants them."""
    names = ["script.py", "model.onnx"]
    for place in sorted(folder.glob("test_data_set_*")):
        if not place.is_symlink() and place.is_dir():
            names += sorted(path.relative_to(folder).as_posix() for path in place.iterdir())
    for name in [*names, "evidence.json"][:MOST_FILES]:
        path = folder / name
        if _FILES.fullmatch(name) and not path.is_symlink() and path.is_file() and path.stat().st_size <= LARGEST_FILE:
            yield name


def real(value: object) -> float | None:
    """Return ``value`` as a float, which may be NaN or infinite, else None."""
    return _NUMBERS[value] if isinstance(value, str) and value in _NUMBERS else fields.number(value)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _shape(value: object) -> str:
    """A shape as the table shows it, e.g. ``4 x 3 x 2``."""
    parts = [fields.text(part, limit=20) for part in _list(value)[:8]]
    return " \u00d7 ".join(parts) if parts else "scalar"


def _input(item: Mapping[str, Any]) -> Input:
    values = [real(value) for value in _list(item.get("values"))[:MOST_VALUES]]
    shown = [short(value) for value in values if value is not None]
    size = math.prod(n for part in _list(item.get("shape"))[:8] if (n := fields.integer(part)) is not None)
    more = ", ..." if shown and size > len(shown) else ""
    low, high = real(item.get("low")), real(item.get("high"))
    odd = fields.integer(item.get("nonfinite"))
    span = "" if low is None or high is None else f"{short(low)} to {short(high)}"
    return Input(
        fields.text(item.get("name"), limit=100),
        fields.text(item.get("given"), limit=40),
        fields.text(item.get("type"), limit=40),
        _shape(item.get("shape")) if "shape" in item else "",
        ", ".join(shown) + more,
        span + (f"{', ' if span else ''}{odd} not finite" if odd else ""),
    )


def short(value: float | None, digits: int = 6) -> str:
    """Return a number as a table shows it; nothing for None."""
    return "" if value is None else f"{value:.{digits}g}"


def _checked(item: Mapping[str, Any], name: str = "") -> Checked:
    must, within, got, ratio = (real(item.get(key)) for key in ("must", "within", "got", "ratio"))
    return Checked(name or fields.text(item.get("place"), limit=100), must, within, got, ratio)


def _numbers(item: Mapping[str, Any]) -> Numbers | None:
    if not item:
        return None
    gates = fields.mapping(item.get("gates"))
    names = fields.texts(gates.get("names"), 16)
    parting = fields.mapping(item.get("parting"))
    return Numbers(
        fields.text(item.get("title"), limit=300),
        item.get("from_reported") is True,
        fields.text(item.get("direction"), limit=40),
        fields.integer(item.get("row")) or 0,
        fields.integer(item.get("unit")) or 0,
        _checked(parting) if parting else None,
        fields.integer(parting.get("step")),
        tuple(_checked(state) for state in fields.items(item.get("states"))[:8]),
        names,
        tuple(_line(line, names) for line in fields.items(gates.get("lines"))[:MOST_CELLS]),
        _plane(fields.mapping(item.get("plane"))),
        _across(fields.mapping(item.get("rows"))),
    )


def _line(item: Mapping[str, Any], names: tuple[str, ...]) -> GateLine:
    values = fields.mapping(item.get("values"))
    step = fields.integer(item.get("step")) or 0
    position = fields.integer(item.get("position"))
    return GateLine(
        step,
        step if position is None else position,
        item.get("padding") is True,
        tuple(real(values.get(name)) for name in names),
        _checked(item, "Y"),
    )


def _values(value: object) -> tuple[tuple[float | None, ...], ...]:
    lines = [tuple(real(cell) for cell in _list(line)[:MOST_CELLS]) for line in _list(value)[:MOST_CELLS]]
    return tuple(lines) if lines and lines[0] and len({len(line) for line in lines}) == 1 else ()


def _plane(item: Mapping[str, Any]) -> Grid | None:
    """Units down, steps across."""
    by_step = _values(item.get("ratio"))
    values = tuple(zip(*by_step, strict=True))
    steps, units = _integers(item.get("steps")), _integers(item.get("units"))
    if not values or len(steps) != len(by_step) or len(units) != len(values):
        return None
    length = fields.integer(item.get("length"))
    end = len(steps) if length is None else sum(step < length for step in steps)
    totals = [fields.integer(item.get(name)) or 0 for name in ("of_units", "of_steps")]
    return Grid(tuple(map(str, units)), steps, values, totals[0], totals[1], -1, (end,) * len(units))


def _across(item: Mapping[str, Any]) -> Grid | None:
    """Rows of the batch down, steps across."""
    values, names = _values(item.get("ratio")), fields.texts(item.get("names"), MOST_CELLS)
    steps = _integers(item.get("steps"))
    if len(values) < 2 or len(names) != len(values) or len(steps) != len(values[0]):
        return None
    here = fields.integer(item.get("here"))
    totals = [fields.integer(item.get(name)) or 0 for name in ("of_rows", "of_steps")]
    lengths = _integers(item.get("lengths"))
    if len(lengths) != len(names):
        lengths = (2**31,) * len(names)
    ends = tuple(sum(step < length for step in steps) for length in lengths)
    return Grid(names, steps, values, totals[0], totals[1], -1 if here is None else here, ends)


def _integers(value: object) -> tuple[int, ...]:
    numbers = [fields.integer(part) for part in _list(value)[:MOST_CELLS]]
    return tuple(number for number in numbers if number is not None)
