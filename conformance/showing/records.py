"""Records of evidence.json, which terminal, pages and issues show.

In the file, numbers have few digits. Numbers that JSON lacks are texts (``nan``, ``inf``, ``-inf``), and null stands
for values that are not judged or were not reported.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from ..judging.divergence import right_levels

SCHEMA = 1

_TEXTS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DIGITS = {"within": 3, "ratio": 3, "radius": 3, "values": 6, "low": 6, "high": 6}
_NUMBERS = {"must", "got", "expected", *_DIGITS}
"""Keys below which a text stands for a number."""


class Element(Struct, kw_only=True, omit_defaults=True):
    """One element with its expected value and error bound.

    ratio
        |error| / bound; None where it is not judged or was not reported.
    convention
        Whether only a convention demands the value.
    levels
        Whether it is a quantization level, an integer.
    undefined
        Whether no value is demanded: the file then has null for ``must`` and ``within``.
    """

    must: float | None
    within: float | None
    got: float | None
    ratio: float | None
    convention: bool = False
    levels: bool = False
    undefined: bool = False

    @property
    def outside(self) -> bool:
        return self.ratio is not None and self.ratio > 1

    @property
    def bounds(self) -> tuple[int, int] | None:
        """The least and the greatest correct level; None where it is a number, or undefined."""
        if not self.levels or self.undefined or self.must is None or self.within is None:
            return None
        return right_levels(self.must, self.within) if math.isfinite(self.must + self.within) else None

    @property
    def right(self) -> str:
        """The correct levels as text."""
        least, most = self.bounds or (0, 0)
        return str(least) if least == most else f"{least} to {most}"

    @property
    def off(self) -> int:
        """The distance to the nearest correct level."""
        least, most = self.bounds or (0, 0)
        return int(max(least - (self.got or 0), (self.got or 0) - most, 0))


class StateElement(Element, kw_only=True):
    """An element of an output other than the first."""

    name: str
    place: str


class FirstDivergence(Element, kw_only=True):
    """The first wrong element; ``where`` names its position on the output's axes."""

    output: str
    place: str
    where: str
    clause: str
    step: int | None


class StepLine(Element, kw_only=True):
    """One step of one unit: gates and states by name, and the output of that step."""

    step: int
    position: int
    padding: bool
    values: dict[str, float | None]


class Gates(Struct):
    """The gates of one unit at every step."""

    names: list[str]
    of_steps: int
    lines: list[StepLine]


class Plane(Struct):
    """Error over bound of one row, over steps and units."""

    steps: list[int]
    positions: list[int]
    of_steps: int
    units: list[int]
    of_units: int
    length: int
    ratio: list[list[float | None]]


class Rows(Struct):
    """The largest error over bound of every row of the batch, at every step."""

    names: list[str]
    of_rows: int
    lengths: list[int]
    here: int
    steps: list[int]
    of_steps: int
    ratio: list[list[float | None]]


class Numbers(Struct, kw_only=True, omit_defaults=True):
    """The first divergence, with its neighbourhood."""

    title: str
    from_reported: bool
    direction: str
    row: int
    unit: int
    parting: FirstDivergence | None
    gates: Gates | UnsetType = UNSET
    plane: Plane | UnsetType = UNSET
    rows: Rows | UnsetType = UNSET
    states: list[StateElement] | UnsetType = UNSET


class Input(Struct, kw_only=True, omit_defaults=True):
    """One input of the node; an absent one has no type. ``values`` are the first ones."""

    name: str
    given: str
    type: str | UnsetType = UNSET
    shape: list[int] | UnsetType = UNSET
    values: list[float | None] | UnsetType = UNSET
    low: float | UnsetType = UNSET
    high: float | UnsetType = UNSET
    nonfinite: int | UnsetType = UNSET


class Diagnosis(Struct):
    """A fault that explains the result."""

    id: str
    text: str


class Process(Struct):
    """Status, signal, last output and phase of the target's process."""

    status: str
    signal: str | None
    captured: str
    phase: str | None = None


class Evidence(Struct, kw_only=True, omit_defaults=True, rename={"accuracy": "class"}):
    """One case on one target.

    about
        Name of the node that operator, inputs and numbers describe, in a graph of several nodes.
    codecs
        Type of levels, scale and zero point as text, by name of a quantized input or output.
    """

    schema: int
    case: str
    operator: str
    message: str
    accuracy: str
    interpretations: dict[str, str]
    diagnosis: list[Diagnosis]
    process: Process
    node: str
    opset: int | None
    asked: list[str]
    inputs: list[Input]
    runs_before: list[list[int]]
    about: str = ""
    codecs: dict[str, str] = {}
    numbers: Numbers | UnsetType = UNSET


def to_json(record: Any, digits: int) -> Any:
    """Return a record as JSON data; `digits` is the precision of tensor values."""
    return _plain(msgspec.to_builtins(record), digits)


def _plain(value: Any, digits: int) -> Any:
    if isinstance(value, dict):
        if value.pop("undefined", False):
            value |= {"must": None, "within": None}
        return {key: _plain(part, _DIGITS.get(key, digits)) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part, digits) for part in value]
    if not isinstance(value, float):
        return value
    if math.isnan(value):
        return "nan"
    return float(f"{value:.{digits}g}") if math.isfinite(value) else f"{value:g}"


def from_json(value: Any, number: bool = False) -> Any:
    """Return JSON data with texts converted to the numbers that they stand for."""
    if isinstance(value, dict):
        return {key: from_json(part, number or key in _NUMBERS) for key, part in value.items()}
    if isinstance(value, list):
        return [from_json(part, number) for part in value]
    return _TEXTS.get(value, value) if number and isinstance(value, str) else value
