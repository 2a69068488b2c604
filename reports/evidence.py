"""Evidence of a case, read from an untrusted run folder. Nothing outside the folder is read."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..conformance.border.strict_json import parse, typed
from ..conformance.showing.records import SCHEMA, Evidence, Input, from_json

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
