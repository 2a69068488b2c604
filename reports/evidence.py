"""The evidence of a case as a page shows it, read from a run directory that may hold anything.

What the harness wrote is taken as it stands: nothing here computes a ratio, a radius or an expected number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ..conformance.border.strict_json import parse, typed
from ..conformance.judging.divergence import right_levels
from ..conformance.showing.records import (
    SCHEMA,
    CheckedRecord,
    ExhibitRecord,
    InputRecord,
    LineRecord,
    NumbersRecord,
    PlaneRecord,
    Real,
    RowsRecord,
)
from .legible import legible

LARGEST_EXHIBIT = 8 << 20
LARGEST_FILE = 64 << 20
MOST_FILES = 64
MOST_CELLS = 128
MOST_VALUES = 10

# The files that a reader may take away. Others in the folder are nobody's business here.
_FILES = re.compile(r"(?:evidence\.json|script\.py|model\.onnx|test_data_set_\d{1,3}/(?:in|out)put_\d{1,3}\.pb)")
_NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


class Input(Struct, frozen=True):
    """One input of the node; ``given`` is how it comes, or ``absent``; ``values`` are the first ones."""

    name: str
    given: str
    type: str
    shape: str
    values: str
    span: str
    codec: str


class ElementShown(Struct, frozen=True):
    """A number, or a level, beside what it must be. None: not judged (``must``, ``ratio``) or not reported (``got``).
    ``bounds`` are the levels that are right, None where it is a number."""

    name: str
    must: float | None
    within: float | None
    got: float | None
    ratio: float | None
    bounds: tuple[int, int] | None = None

    @property
    def right(self) -> str:
        """The levels that are right."""
        least, most = self.bounds or (0, 0)
        return str(least) if least == most else f"{least} to {most}"

    @property
    def off(self) -> int:
        """The number of levels by which it is not among those that are right."""
        least, most = self.bounds or (0, 0)
        return int(max(least - (self.got or 0), (self.got or 0) - most, 0))


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


class GateLine(Struct, frozen=True):
    """One step of one unit: the gates by letter, and the Y of that step."""

    step: int
    position: int
    padding: bool
    values: tuple[float | None, ...]
    y: ElementShown


class Numbers(Struct, frozen=True):
    """The place where target and expectation part, with its surroundings."""

    title: str
    from_reported: bool
    direction: str
    row: int
    unit: int
    parting: ElementShown | None
    parting_step: int | None
    parting_where: str
    states: tuple[ElementShown, ...]
    gates: tuple[str, ...]
    lines: tuple[GateLine, ...]
    plane: Grid | None
    across: Grid | None


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
        record = typed(legible(parse(path.read_bytes())), ExhibitRecord)
        return _exhibit(folder, record) if record["schema"] == SCHEMA else None
    except (OSError, ValueError):
        return None


def _exhibit(folder: Path, record: ExhibitRecord) -> Exhibit:
    process, codecs = record["process"], record.get("codecs", {})
    return Exhibit(
        folder,
        record["case"],
        record["message"],
        record["node"],
        record["operator"],
        record["opset"],
        tuple(record["asked"][:40]),
        record["class"],
        tuple(record["interpretations"].items()),
        tuple((fault["id"], fault["text"]) for fault in record["diagnosis"][:20]),
        codecs,
        process["status"],
        process["signal"] or "",
        process["captured"].strip(),
        tuple(_input(one, codecs.get(one["name"], "")) for one in record["inputs"][:60]),
        tuple(map(_shape, record["runs_before"][:8])),
        _numbers(record["numbers"], codecs) if "numbers" in record else None,
        tuple(_files(folder)),
        record.get("about", ""),
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


def real(value: Real) -> float | None:
    """A number as a float, which may be NaN or infinite; None where there is none."""
    return _NUMBERS[value] if isinstance(value, str) else value


def _shape(sizes: Sequence[int]) -> str:
    """A shape as the table shows it, e.g. ``4 x 3 x 2``."""
    return " \u00d7 ".join(map(str, sizes[:8])) if sizes else "scalar"


def _input(record: InputRecord, codec: str) -> Input:
    shape = record.get("shape")
    values = [real(value) for value in record.get("values", [])[:MOST_VALUES]]
    shown = [short(value) for value in values if value is not None]
    more = ", ..." if shown and math.prod(shape or ()) > len(shown) else ""
    low, high, odd = real(record.get("low")), real(record.get("high")), record.get("nonfinite")
    span = "" if low is None or high is None else f"{short(low)} to {short(high)}"
    return Input(
        record["name"],
        record["given"],
        record.get("type", ""),
        "" if shape is None else _shape(shape),
        ", ".join(shown) + more,
        span + (f"{', ' if span else ''}{odd} not finite" if odd else ""),
        codec.partition(", ")[2],
    )


def short(value: float | None, digits: int = 6) -> str:
    """A number as a table shows it; nothing for None."""
    return "" if value is None else f"{value:.{digits}g}"


def _checked(record: CheckedRecord, name: str, codecs: Container[str]) -> ElementShown:
    must, within, got, ratio = (
        real(each) for each in (record["must"], record["within"], record["got"], record["ratio"])
    )
    known = must is not None and within is not None and math.isfinite(must) and math.isfinite(within)
    levels = known and name.partition("[")[0] in codecs
    return ElementShown(name, must, within, got, ratio, right_levels(must, within) if levels else None)  # type: ignore[arg-type]


def _numbers(record: NumbersRecord, codecs: Container[str]) -> Numbers:
    gates, parting = record.get("gates"), record["parting"]
    names = tuple(gates["names"][:16]) if gates is not None else ()
    return Numbers(
        record["title"],
        record["from_reported"],
        record["direction"],
        record["row"],
        record["unit"],
        _checked(parting, parting["place"], codecs) if parting is not None else None,
        parting["step"] if parting is not None else None,
        parting["where"] if parting is not None else "",
        tuple(_checked(state, state["place"], codecs) for state in record.get("states", [])[:8]),
        names,
        tuple(_line(line, names, codecs) for line in gates["lines"][:MOST_CELLS]) if gates is not None else (),
        _plane(record["plane"]) if "plane" in record else None,
        _across(record["rows"]) if "rows" in record else None,
    )


def _line(record: LineRecord, names: tuple[str, ...], codecs: Container[str]) -> GateLine:
    values = tuple(real(record["values"].get(name)) for name in names)
    return GateLine(record["step"], record["position"], record["padding"], values, _checked(record, "Y", codecs))


def _values(lines: Sequence[Sequence[Real]]) -> tuple[tuple[float | None, ...], ...]:
    values = tuple(tuple(map(real, line[:MOST_CELLS])) for line in lines[:MOST_CELLS])
    return values if values and values[0] and len({len(line) for line in values}) == 1 else ()


def _plane(record: PlaneRecord) -> Grid | None:
    """Units down, steps across."""
    by_step = _values(record["ratio"])
    values = tuple(zip(*by_step, strict=True))
    steps, units = tuple(record["steps"]), tuple(record["units"])
    if not values or len(steps) != len(by_step) or len(units) != len(values):
        return None
    end = sum(step < record["length"] for step in steps)
    return Grid(tuple(map(str, units)), steps, values, record["of_units"], record["of_steps"], -1, (end,) * len(units))


def _across(record: RowsRecord) -> Grid | None:
    """Rows of the batch down, steps across."""
    values, names, steps = _values(record["ratio"]), tuple(record["names"]), tuple(record["steps"])
    lengths = record["lengths"]
    if len(values) < 2 or not len(names) == len(values) == len(lengths) or len(steps) != len(values[0]):
        return None
    ends = tuple(sum(step < length for step in steps) for length in lengths)
    return Grid(names, steps, values, record["of_rows"], record["of_steps"], record["here"], ends)
