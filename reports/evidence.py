"""The evidence of a case as a page shows it, read from a run directory that may hold anything.

What the harness wrote is taken as it stands: nothing here computes a ratio, a radius or an expected number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ..conformance.border.strict_json import parse, typed
from ..conformance.showing.records import SCHEMA, Evidence, Numbers, from_json
from ..conformance.showing.records import Input as InputRecord

LARGEST_EXHIBIT = 8 << 20
LARGEST_FILE = 64 << 20
MOST_FILES = 64
MOST_CELLS = 128
MOST_VALUES = 10

# The files that a reader may take away. Others in the folder are nobody's business here.
_FILES = re.compile(r"(?:evidence\.json|script\.py|model\.onnx|test_data_set_\d{1,3}/(?:in|out)put_\d{1,3}\.pb)")


class Input(Struct, frozen=True):
    """One input of the node; ``given`` is how it comes, or ``absent``; ``values`` are the first ones."""

    name: str
    given: str
    type: str
    shape: str
    values: str
    span: str
    codec: str


class Grid(Struct, frozen=True):
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


class Exhibit(Struct, frozen=True):
    """One case on one target. ``files`` are paths inside ``folder``; ``about`` names the node that operator, inputs and
    numbers are about where the model has several; ``codecs`` says what levels stand for."""

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
    codecs: Mapping[str, str]
    status: str
    signal: str
    captured: str
    inputs: tuple[Input, ...]
    runs_before: tuple[str, ...]
    numbers: Numbers | None
    files: tuple[str, ...]
    about: str = ""


def read_exhibit(run: Path, name: str) -> Exhibit | None:
    """The exhibit in the folder of that name inside the run directory; None where there is none that can be read.
    Nothing outside the run directory is looked at."""
    if not name:
        return None
    try:
        root, folder = run.resolve(), (run / name).resolve()
        if root not in folder.parents:
            return None
        path = folder / "evidence.json"
        if path.is_symlink() or not path.is_file() or path.stat().st_size > LARGEST_EXHIBIT:
            return None
        record = typed(from_json(parse(path.read_bytes())), Evidence)
        return _exhibit(folder, record) if record.schema == SCHEMA else None
    except (OSError, ValueError):
        return None


def _exhibit(folder: Path, record: Evidence) -> Exhibit:
    codecs = record.codecs
    return Exhibit(
        folder,
        record.case,
        record.message,
        record.node,
        record.operator,
        record.opset,
        tuple(record.asked[:40]),
        record.accuracy,
        tuple(record.interpretations.items()),
        tuple((fault.id, fault.text) for fault in record.diagnosis[:20]),
        codecs,
        record.process.status,
        record.process.signal or "",
        record.process.captured.strip(),
        tuple(_input(one, codecs.get(one.name, "")) for one in record.inputs[:60]),
        tuple(map(_shape, record.runs_before[:8])),
        _bounded(record.numbers) if record.numbers else None,
        tuple(_files(folder)),
        record.about,
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


def _shape(sizes: Sequence[int]) -> str:
    """A shape as the table shows it, e.g. ``4 x 3 x 2``."""
    return " \u00d7 ".join(map(str, sizes[:8])) if sizes else "scalar"


def _input(record: InputRecord, codec: str) -> Input:
    shape = record.shape if isinstance(record.shape, list) else None
    shown = [short(value) for value in (record.values or [])[:MOST_VALUES] if value is not None]
    more = ", ..." if shown and math.prod(shape or ()) > len(shown) else ""
    low, high, odd = record.low, record.high, record.nonfinite
    span = f"{short(low)} to {short(high)}" if isinstance(low, float) and isinstance(high, float) else ""
    return Input(
        record.name,
        record.given,
        record.type or "",
        "" if shape is None else _shape(shape),
        ", ".join(shown) + more,
        span + (f"{', ' if span else ''}{odd} not finite" if odd else ""),
        codec.partition(", ")[2],
    )


def short(value: float | None, digits: int = 6) -> str:
    """A number as a table shows it; nothing for None."""
    return "" if value is None else f"{value:.{digits}g}"


def _bounded(numbers: Numbers) -> Numbers:
    """Return numbers with no more of each list than a page shows."""
    if gates := numbers.gates:
        numbers.gates = replace(gates, names=gates.names[:16], lines=gates.lines[:MOST_CELLS])
    if states := numbers.states:
        numbers.states = states[:8]
    return numbers


def _values(lines: Sequence[Sequence[float | None]]) -> tuple[tuple[float | None, ...], ...]:
    values = tuple(tuple(line[:MOST_CELLS]) for line in lines[:MOST_CELLS])
    return values if values and values[0] and len({len(line) for line in values}) == 1 else ()


def plane_of(numbers: Numbers) -> Grid | None:
    """Return error over bound with units down, steps across; None where it was not kept."""
    record = numbers.plane
    if not record:
        return None
    by_step = _values(record.ratio)
    values = tuple(zip(*by_step, strict=True))
    steps, units = tuple(record.steps), tuple(record.units)
    if not values or len(steps) != len(by_step) or len(units) != len(values):
        return None
    end = sum(step < record.length for step in steps)
    return Grid(tuple(map(str, units)), steps, values, record.of_units, record.of_steps, -1, (end,) * len(units))


def rows_of(numbers: Numbers) -> Grid | None:
    """Return error over bound with rows of the batch down, steps across; None where it was not kept."""
    record = numbers.rows
    if not record:
        return None
    values, names, steps = _values(record.ratio), tuple(record.names), tuple(record.steps)
    lengths = record.lengths
    if len(values) < 2 or not len(names) == len(values) == len(lengths) or len(steps) != len(values[0]):
        return None
    ends = tuple(sum(step < length for step in steps) for length in lengths)
    return Grid(names, steps, values, record.of_rows, record.of_steps, record.here, ends)
