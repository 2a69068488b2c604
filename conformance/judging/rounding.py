"""Test whether errors outside a declared class and inside a wider one look like that class's roundings.

A bound of bfloat16 is 65,000 times as wide as one of float32: a dropped term, or a wrong sign, may well lie inside. But
arithmetic that rounds so coarsely does so everywhere: most elements are off by far more than the narrow bound. A
structural fault that is small enough for the wide bound mostly shows in some elements, or in bounds that are beyond the
signal itself. (Errors that lean to one side prove nothing: a rounded coefficient biases all of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ...reference import FORMATS, AccuracyClass, Expectation

# Smallest ratio of the two bounds at which an element is evidence. Conforming variants have a median error of 0.011 to
# 0.056 of their class's bound, and 44 to 206 times t of their elements lie within a share t = 0.001 of it. So of
# elements whose narrow bound is a 64th of the wide one, most lie outside the narrow one, whichever class rounds.
_APART = 64.0

# Beyond this share of its row's signal, a wide bound does not measure an error's size. Where functions saturate, the
# bound grows with the argument's error, while the error itself vanishes.
_NARROW = 1 / 8

# Elements near the largest of their row are excluded, too: functions with a limit have driven them there.
_UNSATURATED = 0.95

# For a class that stores in a narrower format: a number that the format does not hold, by more than the narrow bound,
# must be off by more than that. Measured over 90 cases of all operators: 0 of 7,286 such elements lie within.
_STORED = 0.9

# For a class that rounds only operands: some sums are accurate by chance, and clamped functions hide the error of
# others. Measured: 52 % within in the worst of 90 cases where nothing is clamped, 77 % where it is.
_ROUNDED = 0.1

# Conforming variants have a median error of at least a hundredth of their class's bound. If nine in ten errors are
# below this share, they are not roundings of that format.
_SIZED = 1 / 128

# Their median is between a ninetieth and an eighteenth. If half of the errors exceed twice that, there is another
# cause.
_LARGE = 1 / 8

# Minimum number of elements for a share.
_FEWEST = 8


class _Elements(Struct, frozen=True):
    """Judged elements of one output with both bounds, as flat arrays."""

    got: NDArray[np.float64]
    error: NDArray[np.float64]
    value: NDArray[np.float64]
    narrow: NDArray[np.float64]
    wide: NDArray[np.float64]
    signal: NDArray[np.float64]


def looks_like_rounding(
    pairs: Iterable[tuple[Expectation, Expectation]], outputs: Mapping[str, NDArray[Any]], wider: AccuracyClass | None
) -> bool:
    """Return whether the errors of outputs inside a wider class are those of its roundings.

    pairs
        The expected outputs by the declared class and by the wider one.
    wider
        The class whose roundings they should be. None, an arithmetic without formats to compare with, gives True.
    """
    if wider is None:
        return True
    parts = [part for pair in pairs if (part := _elements(*pair, outputs)) is not None]
    if not parts:
        return True
    error, value, narrow, wide, signal = (
        np.concatenate([getattr(part, field) for part in parts])
        for field in ("error", "value", "narrow", "wide", "signal")
    )
    outside = np.abs(error) > narrow
    evident = (wide >= _APART * narrow) & (wide <= _NARROW * signal) & (np.abs(value) <= _UNSATURATED * signal)
    if wider.storage is not None:
        evident &= _off_grid(value, wider.storage) > narrow
    if evident.sum() < _FEWEST:
        # Too few elements are evidence. A bound wider than the signal would hold anything.
        return not outside.any() or bool(np.median(wide[outside] - signal[outside]) <= 0)
    least = _ROUNDED if wider.storage is None else _STORED
    return bool(np.mean(outside[evident]) >= least)


def has_its_signature(
    pairs: Iterable[tuple[Expectation, Expectation]], outputs: Mapping[str, NDArray[Any]], wider: AccuracyClass | None
) -> bool:
    """Return whether errors that look like roundings of a class look like those of no other class.

    They are as large as its roundings where bounds distinguish the classes, or all numbers are on its format's grid
    although the right ones are not. An approximated function looks like such roundings in some cases, on a device
    without the format; and a bound of a fifth of the numbers allows many other errors. For outputs that pass
    :func:`looks_like_rounding`.
    """
    # A class of levels limits the number of levels, and has no format.
    if wider is None or wider.flushes or wider.steps:
        return True
    parts = [part for pair in pairs if (part := _elements(*pair, outputs)) is not None]
    if wider.storage is not None and _on_grid(parts, wider.storage):
        return True
    apart = [(p.wide >= _APART * p.narrow) & (p.wide > 0) & (p.wide <= _NARROW * p.signal) for p in parts]
    shares = [np.abs(part.error[far]) / part.wide[far] for part, far in zip(parts, apart, strict=True)]
    evident_shares = np.concatenate([*shares, np.zeros(0)])
    # Where functions saturate, most errors vanish.
    return bool(evident_shares.size) and bool(
        np.quantile(evident_shares, 0.9) >= _SIZED and np.median(evident_shares) <= _LARGE
    )


def _on_grid(parts: Iterable[_Elements], form: str) -> bool:
    """Return whether all numbers are on a format's grid, and some of the expected ones are not."""
    off_grid = 0
    for part in parts:
        if (_off_grid(part.got, form) > 0).any():
            return False
        off_grid += int((_off_grid(part.value, form) > part.narrow).sum())
    return off_grid >= _FEWEST


def looks_like_flushing(
    pairs: Iterable[tuple[Expectation, Expectation]],
    outputs: Mapping[str, NDArray[Any]],
    flushed: Callable[[], Mapping[str, NDArray[Any]]],
) -> bool:
    """Return whether subnormal numbers became zeros.

    Either a result is zero and must not be, or most results outside the declared class are off by the effect of flushed
    inputs.

    pairs
        As for :func:`looks_like_rounding`.
    flushed
        The change of each output by flushed inputs.
    """
    errors: list[NDArray[np.float64]] = []
    shifts: list[NDArray[np.float64]] = []
    moved: Mapping[str, NDArray[Any]] | None = None
    for narrow, _ in pairs:
        got = outputs.get(narrow.output)
        if got is None or narrow.conventional or narrow.repeats_y:
            continue
        value, radius = (np.broadcast_to(number, got.shape) for number in (narrow.number.value, narrow.number.radius))
        outside = np.isfinite(radius) & (np.abs(got.astype(np.float64) - value) > radius)
        if (outside & (got == 0)).any():
            return True
        if outside.any():
            moved = flushed() if moved is None else moved
            shift = np.broadcast_to(moved.get(narrow.output, np.zeros(())), got.shape)
            errors.append((got.astype(np.float64) - value)[outside])
            shifts.append(shift[outside])
    if not errors:
        return True
    error, shift = np.concatenate(errors), np.concatenate(shifts)
    return bool(np.median(np.abs(error - shift) / np.abs(error)) <= 1 / 2)


def _elements(narrow: Expectation, wide: Expectation, outputs: Mapping[str, NDArray[Any]]) -> _Elements | None:
    """Return the elements of an output that both expectations judge; None if they are no evidence on arithmetic."""
    if narrow.conventional or narrow.repeats_y or narrow.output not in outputs:
        return None
    got = outputs[narrow.output].astype(np.float64)
    judged = np.isfinite(got) if narrow.about is None else np.isfinite(got) & narrow.about
    for number in (narrow.number, wide.number):
        if number.doubt is not None:
            judged = judged & ~number.doubt
    if not judged.any():
        return None
    value = np.broadcast_to(narrow.number.value, got.shape)
    signal = np.broadcast_to(np.abs(value).max(axis=-1, keepdims=True), got.shape)
    bound, wider = (np.broadcast_to(number.radius, got.shape)[judged] for number in (narrow.number, wide.number))
    return _Elements(got[judged], (got - value)[judged], value[judged], bound, wider, signal[judged])


def _off_grid(value: NDArray[np.float64], form: str) -> NDArray[np.float64]:
    """Return the distance of numbers from the nearest one of a format, subnormals aside."""
    spacing = 2 * FORMATS[form].unit * np.exp2(np.floor(np.log2(np.maximum(np.abs(value), FORMATS[form].least_normal))))
    off: NDArray[np.float64] = np.abs(value - np.round(value / spacing) * spacing)
    return off
