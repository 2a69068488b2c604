"""The form of evidence.json, as far as pages show it: types that are checked where it is read."""

from __future__ import annotations

from typing import Literal, TypeAlias, TypedDict

SCHEMA = 1

Real: TypeAlias = float | Literal["nan", "inf", "-inf"] | None
"""A number; numbers that JSON lacks are texts, and what is not judged or was not reported is null."""


class CheckedRecord(TypedDict):
    """A number beside what it must be."""

    must: Real
    within: Real
    got: Real
    ratio: Real


class StateRecord(CheckedRecord):
    """An element of a state."""

    place: str


class PartingRecord(StateRecord):
    """The first element that is wrong; ``where`` is in words of the output's axes."""

    step: int | None
    where: str


class LineRecord(CheckedRecord):
    """One step of one unit: the gates by letter, and the Y of that step."""

    step: int
    position: int
    padding: bool
    values: dict[str, Real]


class GatesRecord(TypedDict):
    """The gates of one unit at every step."""

    names: list[str]
    lines: list[LineRecord]


class PlaneRecord(TypedDict):
    """Error over radius of one row, over steps and units."""

    steps: list[int]
    of_steps: int
    units: list[int]
    of_units: int
    length: int
    ratio: list[list[Real]]


class RowsRecord(TypedDict):
    """The largest error over radius of every row of the batch, at every step."""

    names: list[str]
    of_rows: int
    lengths: list[int]
    here: int
    steps: list[int]
    of_steps: int
    ratio: list[list[Real]]


class _NumbersAlways(TypedDict):
    title: str
    from_reported: bool
    direction: str
    row: int
    unit: int
    parting: PartingRecord | None


class NumbersRecord(_NumbersAlways, total=False):
    """The place where target and expectation part, with its surroundings."""

    gates: GatesRecord
    plane: PlaneRecord
    rows: RowsRecord
    states: list[StateRecord]


class _InputAlways(TypedDict):
    name: str
    given: str


class InputRecord(_InputAlways, total=False):
    """One input of the node; an absent one has no type."""

    type: str
    shape: list[int]
    values: list[Real]
    low: Real
    high: Real
    nonfinite: int


class DiagnosisRecord(TypedDict):
    """A fault that explains the result."""

    id: str
    text: str


class ProcessRecord(TypedDict):
    """The fate of the target's process."""

    status: str
    signal: str | None
    captured: str


_ExhibitAlways = TypedDict(  # "class" is a key, and a word of Python
    "_ExhibitAlways",
    {
        "schema": int,
        "case": str,
        "operator": str,
        "message": str,
        "class": str,
        "interpretations": dict[str, str],
        "diagnosis": list[DiagnosisRecord],
        "process": ProcessRecord,
        "node": str,
        "opset": int | None,
        "asked": list[str],
        "inputs": list[InputRecord],
        "runs_before": list[list[int]],
    },
)


class ExhibitRecord(_ExhibitAlways, total=False):
    """One case on one target.

    about
        Name of the node that operator, inputs and numbers are about, in a graph of several.
    codecs
        By name of a quantized input or output: the type of its levels, scale and zero point, in words.
    """

    about: str
    codecs: dict[str, str]
    numbers: NumbersRecord
