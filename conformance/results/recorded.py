"""Record of a target's outcomes, with which a verdict can be recomputed without the target.

Each job is a line of results.jsonl, beside the results; the bits of its outputs are in a file. The bits of a target are
one file, ``recorded/TARGET.bits``, to which tensors are appended; a line has the offset and the SHA-256 of each of its
tensors. Equal tensors are stored once. Bits are written before the line that refers to them, so a kill leaves at most
bits without a reference.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import FORMATS
from ...reference.errors import RecordError
from ..workers.job import Outcome
from .evidence import slug
from .result import Count, Quantity

FOLDER = "recorded"

CASE, FRESH = "case", "fresh-process"
"""Purposes of jobs: for the result of a case, or for a second run in a fresh process."""

_OTHER_TYPES = frozenset(
    {"bool", "complex64", "complex128", *(f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64))}
)
"""Other output types of a target: wrong in every case, and recorded nevertheless."""


A = TypeVar("A")
B = TypeVar("B")


class TensorRecord(Struct, frozen=True, kw_only=True):
    """An output: NumPy's name of its type, and where its bits lie, little-endian and in C order."""

    type: str
    shape: tuple[Count, ...]
    offset: Count
    size: Count
    sha256: str


class JobRecord(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of a job. The keys are those of :class:`~..workers.job.Outcome`; ``log`` is what was printed."""

    key: str
    status: str
    phase: str
    message: str
    malformed: str
    changed: tuple[str, ...]
    outputs: tuple[tuple[tuple[TensorRecord | None, ...], ...], ...]
    proof: str
    log: str
    signal: str | None
    seconds: Quantity
    returned: tuple[tuple[Count, ...], ...] = ()
    broke_at: str = ""
    altered: tuple[Count, ...] = ()


_SAME = tuple({*JobRecord.__struct_fields__} - {"outputs", "log", "seconds"})
"""The keys that are equal in an outcome and its record."""


def bits_path(folder: Path, target: str) -> Path:
    """Return the file in a run folder with the bits of a target."""
    return folder / FOLDER / f"{slug(target)}.bits"


def bits_of(folder: Path, target: str) -> bytes:
    """Return the bits of a target in a run folder; empty without a file. Raise OSError."""
    path = bits_path(folder, target)
    return path.read_bytes() if path.exists() else b""


def append_whole(file: int, data: bytes) -> int:
    """Append to an open file, all or nothing, and return the offset. Raise OSError."""
    end = os.lseek(file, 0, os.SEEK_END)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
    except BaseException:  # a signal as well as a full disk
        os.ftruncate(file, end)
        raise
    return end


class Recorder:
    """Writer of the outputs of a run's targets; a context manager that owns their files while it is open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, int] = {}
        self._stored: dict[tuple[str, str], int] = {}

    def __enter__(self) -> Recorder:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            os.close(file)
        self._files.clear()

    def jobs(self, target: str, outcomes: Sequence[Outcome]) -> tuple[JobRecord, ...]:
        """Write the outputs of outcomes to disk, then return their records. Raise OSError where the disk is full."""
        return tuple(
            JobRecord(
                **{key: getattr(outcome, key) for key in _SAME},
                outputs=_each(outcome.outputs, partial(self._tensor, target)),
                log=outcome.captured,
                seconds=round(outcome.seconds, 6),
            )
            for outcome in outcomes
        )

    def _tensor(self, target: str, array: NDArray[np.generic] | None) -> TensorRecord | None:
        if array is None:
            return None
        plain = np.ascontiguousarray(array)
        bits = (plain if sys.byteorder == "little" else plain.byteswap()).tobytes()
        digest = hashlib.sha256(bits).hexdigest()
        offset = self._stored.get((target, digest))
        if offset is None:
            offset = self._stored[target, digest] = self._append(target, bits)
        return TensorRecord(
            type=array.dtype.name, shape=tuple(array.shape), offset=offset, size=len(bits), sha256=digest
        )

    def _append(self, target: str, bits: bytes) -> int:
        """Append bits to a target's file, and return their offset."""
        file = self._files.get(target)
        if file is None:
            path = bits_path(self._folder, target)
            path.parent.mkdir(exist_ok=True)
            file = self._files[target] = os.open(path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
        return append_whole(file, bits)


def outcome_of(record: JobRecord, bits: bytes) -> Outcome:
    """Return the outcome of a record; `bits` is the file of its target. Raise RecordError."""
    return Outcome(
        **{key: getattr(record, key) for key in _SAME},
        outputs=_each(record.outputs, partial(_array, bits)),
        captured=record.log,
        seconds=record.seconds,
    )


def _each(outputs: Iterable[Iterable[Iterable[A]]], made: Callable[[A], B]) -> tuple[tuple[tuple[B, ...], ...], ...]:
    """Return the outputs of every feed and run, each converted by ``made``."""
    return tuple(tuple(tuple(map(made, arrays)) for arrays in feed) for feed in outputs)


def _array(bits: bytes, record: TensorRecord | None) -> NDArray[np.generic] | None:
    if record is None:
        return None
    format = FORMATS.get(record.type)
    if format is None and record.type not in _OTHER_TYPES:
        raise RecordError(f"a tensor of type {record.type[:40]!r}, which no operator has")
    dtype = np.dtype(record.type) if format is None else np.dtype(format.dtype)
    count = 1
    for length in record.shape:  # Python's integers: the sizes are untrusted
        count *= length
    if count * dtype.itemsize != record.size or record.offset + record.size > len(bits):
        raise RecordError(f"{record.size} bytes at {record.offset} are no {record.type} of shape {list(record.shape)}")
    piece = bits[record.offset : record.offset + record.size]
    if hashlib.sha256(piece).hexdigest() != record.sha256:
        raise RecordError(f"the {record.size} bytes at {record.offset} are others than those that were recorded")
    array = np.frombuffer(piece, dtype).reshape(record.shape)
    return array if sys.byteorder == "little" else array.byteswap()
