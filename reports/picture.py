"""Pictures of numbers, as coordinates that a template draws: no library, no script, and never colour alone."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from msgspec import Struct

from ..conformance.results.level_grades import graded_line
from ..conformance.results.records import LevelsRecord
from ..conformance.showing.records import Numbers, StepLine
from .evidence import Grid, short

BANDS = (
    (0.5, "b0", "up to half the error bound"),
    (1.0, "b1", "within the error bound"),
    (10.0, "b2", "up to 10 times the bound"),
    (1e3, "b3", "up to 1,000 times the bound"),
    (math.inf, "b4", "beyond"),
)
"""(upper end of |error| / radius, class of the colour, words); from the third on it is outside."""

_UNKEPT = "\u2013"
"""Places where padding is not zero: a convention is broken, and nobody is wrong by any number of bounds."""


def band(ratio: float | None) -> str:
    """Return the class of the colour for a ratio; ``none`` where nothing is judged."""
    if ratio is None or math.isnan(ratio):
        return "none"
    return next(name for end, name, _ in BANDS if ratio <= end)


def times(ratio: float | None) -> str:
    """Return a ratio in few characters, as it stands in a cell: ``0.12``, ``35``, ``4e5``."""
    if ratio is None or math.isnan(ratio):
        return ""
    if math.isinf(ratio):
        return "\u221e"
    if ratio >= 1000:
        mantissa, exponent = f"{ratio:.0e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    if ratio >= 0.095:
        return f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.1f}"
    return "0" if ratio < 5e-4 else "<.1"


class Tile(Struct, frozen=True):
    """One element: a square of the heat map."""

    x: int
    y: int
    band: str
    text: str
    outside: bool
    padding: bool
    said: str


class HeatMap(Struct, frozen=True):
    """Tiles of ``size`` by ``height`` under axes. ``padding_x`` is where the padding begins, None where there is none;
    ``columns`` and ``rows`` are (position, label) pairs."""

    width: int
    full_height: int
    left: int
    top: int
    size: int
    height: int
    tiles: tuple[Tile, ...]
    columns: tuple[tuple[int, str], ...]
    rows: tuple[tuple[int, str], ...]
    padding_x: int | None
    summary: str


def heat_map(grid: Grid, row_word: str) -> HeatMap:
    """Return the picture of a grid; ``row_word`` is what one of its rows is called."""
    small = len(grid.columns) <= 16 and len(grid.rows) <= 24
    size, height = (46, 26) if small else (max(7, min(20, 640 // len(grid.columns))), 12)
    left = 12 + 8 * max(len(row_word), *(len(name) for name in grid.rows))
    top = 34

    def tile(row: int, column: int, ratio: float | None) -> Tile:
        padding, outside = column >= grid.ends[row], _outside(ratio)
        text = _UNKEPT if padding and outside else times(ratio)
        told = _of_padding(ratio) if padding else _said(ratio)
        return Tile(
            left + size * column,
            top + height * row,
            band(ratio),
            text if small else "",
            outside,
            padding,
            f"step {grid.columns[column]}, {row_word} {grid.rows[row]}: {told}",
        )

    tiles = tuple(tile(row, column, ratio) for row, line in enumerate(grid.values) for column, ratio in enumerate(line))
    every = max(1, math.ceil(26 / size)), max(1, math.ceil(14 / height))
    ends = left + size * len(grid.columns), top + height * len(grid.rows)
    padding = None
    if len(set(grid.ends)) == 1 and grid.ends[0] < len(grid.columns):
        padding = left + size * grid.ends[0]
    return HeatMap(
        ends[0] + 8,
        ends[1] + 8,
        left,
        top,
        size,
        height,
        tiles,
        tuple((left + size * k + size // 2, str(step)) for k, step in enumerate(grid.columns) if k % every[0] == 0),
        tuple((top + height * k + height // 2, name) for k, name in enumerate(grid.rows) if k % every[1] == 0),
        padding,
        _summary(grid, row_word),
    )


def _said(ratio: float | None) -> str:
    if ratio is None or math.isnan(ratio):
        return "not judged"
    return "no bound allows it" if math.isinf(ratio) else f"{short(ratio, 3)} times the error bound"


def _of_padding(ratio: float | None) -> str:
    return f"in the padding, convention {'not ' if _outside(ratio) else ''}kept"


def _summary(grid: Grid, row_word: str) -> str:
    """The picture in a sentence or two, for who does not see it."""
    within = [line[:end] for line, end in zip(grid.values, grid.ends, strict=True)]
    cells = [(column, row) for row, line in enumerate(within) for column, ratio in enumerate(line) if _outside(ratio)]
    judged = sum(ratio is not None for line in within for ratio in line)
    sentence = f"{len(cells)} of {judged} judged tiles are outside their error bounds"
    if cells:
        column, row = min(cells)
        sentence += f", the first at step {grid.columns[column]}, {row_word} {grid.rows[row]}"
    padding = sum(_outside(r) for line, end in zip(grid.values, grid.ends, strict=True) for r in line[end:])
    return sentence + (f"; in the padding {padding} break{'s' * (padding == 1)} the convention." if padding else ".")


def _outside(ratio: float | None) -> bool:
    return ratio is not None and ratio > 1


class Panel(Struct, frozen=True):
    """One number over the steps. ``lines`` are polylines of what is expected, ``dots`` its points, ``reported`` the
    points of what came back; ``parting_x`` is where a guide stands, None where there is none."""

    name: str
    word: str
    width: int
    height: int
    lines: tuple[str, ...]
    dots: tuple[tuple[float, float], ...]
    reported: tuple[tuple[float, float, bool], ...]
    parting_x: float | None
    zero_y: float | None
    low: str
    high: str
    first: str
    last: str
    said: str


GATES = {
    "i": "input gate",
    "o": "output gate",
    "f": "forget gate",
    "c": "candidate",
    "C": "cell state",
    "H": "hidden state",
    "z": "update gate",
    "r": "reset gate",
    "h": "candidate",
}
"""The meanings of the documents' letters."""

_WIDTH, _HEIGHT, _EDGE, _UNDER = 200, 96, 8, 18


def panels(numbers: Numbers) -> tuple[Panel, ...]:
    """Return a panel for each gate and state, and one for Y beside what was reported."""
    if not numbers.gates:
        return ()
    lines = numbers.gates.lines
    step = numbers.parting.step if numbers.parting is not None else None
    nothing = [None] * len(lines)
    drawn = [
        _panel(name, GATES.get(name, "state"), lines, step, [line.values.get(name) for line in lines], nothing)
        for name in numbers.gates.names
    ]
    if any(line.got is not None for line in lines):
        must, got = [line.must for line in lines], [line.got for line in lines]
        drawn.append(_panel("Y", "output", lines, step, must, got))
    return tuple(drawn)


def _panel(
    name: str,
    word: str,
    lines: Sequence[StepLine],
    first: int | None,
    values: Sequence[float | None],
    got: Sequence[float | None],
) -> Panel:
    finite = [v for v in (*values, *got) if v is not None and math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    span = high - low
    gap = (_WIDTH - 2 * _EDGE) / max(1, len(lines) - 1)

    def x(place: int) -> float:
        return round(_EDGE + gap * place if len(lines) > 1 else _WIDTH / 2, 1)

    def y(value: float) -> float:
        share = (value - low) / span if 0 < span < math.inf else 0.5
        return round(_EDGE + (1 - share) * (_HEIGHT - 2 * _EDGE - _UNDER), 1)

    pieces: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(values):
        if value is None or not math.isfinite(value):
            pieces.append([])
        else:
            pieces[-1].append((x(place), y(value)))
    reported = tuple(
        (x(place), y(value), (lines[place].ratio or 0.0) > 1)
        for place, value in enumerate(got)
        if value is not None and math.isfinite(value)
    )
    parting = next((x(k) for k, line in enumerate(lines) if line.step == first), None)
    steps = [f"step {line.step}: {short(v, 4)}" for line, v in zip(lines, values, strict=True) if v is not None]
    return Panel(
        name,
        word,
        _WIDTH,
        _HEIGHT,
        tuple(" ".join(f"{a},{b}" for a, b in piece) for piece in pieces if len(piece) > 1),
        tuple(point for piece in pieces for point in piece) if len(lines) <= 24 else (),
        reported,
        parting,
        y(0.0) if low < 0 < high else None,
        short(low, 3),
        short(high, 3) if span else "",
        str(lines[0].step) if lines else "",
        str(lines[-1].step) if len(lines) > 1 else "",
        "; ".join(steps[:16]) + ("; ..." if len(steps) > 16 else ""),
    )


_ENDS = (0, 1, 2, 4, 16, 64, 256, 4096, 65535)
"""The last number of levels of each bar."""
_BAR_HEIGHT, _BAR_WIDTH, _BAR_STEP, _BAR_TOP = 110, 34, 52, 22


class Bar(Struct, frozen=True):
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


class LevelPicture(Struct, frozen=True):
    """Bars for one operator and number of bits, over a line of `base`."""

    operator: str
    bits: int
    summary: str
    width: int
    height: int
    base: int
    bars: tuple[Bar, ...]

    @property
    def different(self) -> bool:
        """Tell whether some output differs from its correct levels."""
        return any(bar.held or bar.wrong for bar in self.bars[1:])


def pictures_of_levels(records: Sequence[LevelsRecord]) -> list[LevelPicture]:
    """One picture for each operator and number of bits."""
    return [_picture(record) for record in records]


def _picture(record: LevelsRecord) -> LevelPicture:
    held, wrong = _grouped(record["off"]), _grouped(record["wrong"])
    last = max(place for place in range(len(_ENDS)) if held[place] or wrong[place] or place == 1)
    most = max(held[place] + wrong[place] for place in range(last + 1)) or 1
    base = _BAR_TOP + _BAR_HEIGHT
    bars = []
    for place in range(last + 1):
        below, above = (_BAR_HEIGHT * some[place] / most for some in (held, wrong))
        left = 8 + place * _BAR_STEP
        sizes = round(base - below, 1), round(below, 1), round(base - below - above, 1), round(above, 1)
        bars.append(Bar(_label(place), left, _BAR_WIDTH, held[place], wrong[place], *sizes))
    summary = graded_line([record], record["bits"])
    return LevelPicture(
        record["operator"], record["bits"], summary, 8 + (last + 1) * _BAR_STEP, base + 22, base, tuple(bars)
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
