"""A target's own functions and sums as faults: what was measured of one, in place of a number that a table would hold.

A kernel may compute a function as another one, with other coefficients, or with bounds of its own, and leave a part out
of a product. No table has all numbers and places, but nodes of one step tell them, and the fault that they make has an
id from which it can be made again: ``functions.g-as-Tanh``, ``functions.f-as-Affine_0.25_-0.5``,
``functions.all-in-float32``, ``products.WR-without-past-2s``. It is made and scoped as any other one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..numbers.activations import ACTIVATIONS, Activation, Coefficient
from ..numbers.formats import FORMATS
from ..recurrent.computation import Computation
from ..recurrent.rnn import CELLS
from .alterations import configured, revalued, with_functions, with_tensors
from .fault import Change, Changing, Fault
from .stretches import Stretch, beyond, first, in_whole, last, left_over

__all__ = ["COLUMNS", "LETTERS", "own_function", "own_named", "own_product"]

Array = NDArray[Any]
Changed = Callable[[Activation, "float | None"], Activation]
"""From a function and the clip in front of it to what takes the place of both."""

LETTERS = "fgh"
"""The documents' names of the functions of a direction, in order."""

_NUMBER = r"-?[0-9][0-9.e+-]*"
_ID = re.compile(rf"functions\.([{LETTERS}]|all)-([A-Za-z0-9-]+)((?:_{_NUMBER})*)")


def own_function(position: int | None, change: str, *numbers: float) -> str:
    """The id of the fault that changes the function in that position of every direction; all where that is None."""
    return f"functions.{'all' if position is None else LETTERS[position]}-{change}" + "".join(
        f"_{number:.9g}" for number in numbers
    )


@cache
def own_named(id: str) -> Fault | None:
    """The fault of that id; None where it is none of these."""
    match = _ID.fullmatch(id)
    if match is None:
        return _product_named(id)
    numbers = tuple(float(number) for number in match[3].split("_")[1:])
    made = _made(match[2], numbers)
    if made is None:
        return None
    position = None if match[1] == "all" else LETTERS.index(match[1])
    words, change = made
    operators = tuple(op for op, cell in CELLS.items() if len(cell.activations) > (position or 0))
    text = words.format("functions" if position is None else match[1])
    return _fault(id, "activations", text, operators, lambda c: _changed(c, position, change))


def _fault(id: str, topic: str, text: str, operators: tuple[str, ...], change: Change) -> Fault:
    return Fault(id, topic, f"{text}.", Changing(change), operators, varies=True)


def _changed(c: Computation, position: int | None, change: Changed) -> Computation:
    clips = c.configuration.clips
    chosen = range(len(clips)) if position is None else {position} & {*range(len(clips))}
    if not chosen:
        return c
    changed = with_functions(c, lambda f, p, d: change(f, clips[p]) if p in chosen else f)
    return configured(changed, clips=tuple(None if p in chosen else clip for p, clip in enumerate(clips)))


def _made(change: str, numbers: tuple[float, ...]) -> tuple[str, Changed] | None:
    """Words with a place for the function's letter, and what is done."""
    kind, _, name = change.partition("-")
    if kind == "as" and name in ACTIVATIONS:
        return _as(name, numbers)
    if change == "unclipped" and not numbers:
        return "Bounds no argument of {0} by clip", lambda function, clip: function
    if change == "clipped-result" and not numbers:
        words = "Bounds by clip what {0} gives instead of what it is given"
        return words, lambda function, clip: _of(function, None, lambda x: x, _clip(clip))
    if kind == "in" and name in FORMATS and not numbers:
        rounding = _to(name)
        return f"Computes {{0}} in {name}", lambda function, clip: _of(function, clip, rounding, rounding)
    if change in _BOUNDS and len(numbers) == 1:
        words, bound = _BOUNDS[change]
        shown = f"{abs(numbers[0]) if change == 'argument-beyond' else numbers[0]:g}"
        text = words.replace("{1}", shown)
        return text, lambda function, clip: _of(function, clip, lambda x: bound(x, numbers[0]), lambda y: y)
    return None


def _as(name: str, numbers: tuple[float, ...]) -> tuple[str, Changed] | None:
    kind = ACTIVATIONS[name]
    names = [letter for letter, uses in (("alpha", kind.uses_alpha), ("beta", kind.uses_beta)) if uses]
    if len(numbers) != len(names):
        return None
    given = dict(zip(names, (Coefficient(number) for number in numbers), strict=True))
    other = Activation(kind, **given)
    coefficients = " and ".join(f"{letter} {number:g}" for letter, number in zip(names, numbers, strict=True))
    words = f"Computes {{0}} as {name}{f' with {coefficients}' if coefficients else ''}"
    return words, lambda function, clip: _of(other, clip, lambda x: x, lambda y: y)


def _to(type: str) -> Callable[[Array], Array]:
    return lambda x: x.astype(FORMATS[type].dtype).astype(np.float64)


def _clip(clip: float | None) -> Callable[[Array], Array]:
    return lambda x: x if clip is None else np.clip(x, -clip, clip)


def _of(
    function: Activation, clip: float | None, before: Callable[[Array], Array], after: Callable[[Array], Array]
) -> Activation:
    """A function of bounded arguments, with what is done before and after it."""
    bound, value = _clip(clip), function.kind.value
    return revalued(function, lambda x, alpha, beta: after(value(before(bound(x)), alpha, beta)))


_BOUNDS: dict[str, tuple[str, Callable[[Array, float], Array]]] = {
    "argument-above": ("Takes no argument of {0} above {1}: it stays at what it is there", np.minimum),
    "argument-below": ("Takes no argument of {0} below {1}: it stays at what it is there", np.maximum),
    "argument-beyond": (
        "Takes no argument of {0} beyond {1} on either side: it stays at what it is there",
        lambda x, most: np.clip(x, -most, most),
    ),
}


def _of_more(least: int, stretch: Stretch) -> Stretch:
    """A stretch where there are more things than that; nothing where there are not."""
    return lambda n, size: stretch(n, size) & (size > least)


COLUMNS: dict[str, tuple[str, Stretch]] = {
    **{
        f"past-{n}s": (f"the columns left over after whole blocks of {n}", _of_more(n, left_over(n)))
        for n in (2, 4, 8, 16, 32, 64, 128, 3, 6)
    },
    "last": ("the last column", _of_more(1, last(1))),
    "first": ("the first column", first),
    **{f"beyond-{n}": (f"the columns beyond the first {n}", beyond(n)) for n in (1, 2, 4, 8, 16, 32, 64, 128, 256)},
    **{f"in-{n}s": (f"the columns in whole blocks of {n}", in_whole(n)) for n in (4, 8, 16, 32, 64, 128)},
}
"""Columns of W and R by words for them, and which of so many they are. The likelier of two that are the same in some
sizes comes first."""

_PRODUCT = re.compile(r"products\.(W|R|WR)-without-([a-z0-9-]+)")


def own_product(tensors: str, columns: str) -> str:
    """The id of the fault that leaves columns of W, of R or of both (``WR``) out of their products."""
    return f"products.{tensors}-without-{columns}"


def _product_named(id: str) -> Fault | None:
    match = _PRODUCT.fullmatch(id)
    if match is None or match[2] not in COLUMNS:
        return None
    tensors, (words, chosen) = match[1], COLUMNS[match[2]]

    def without(tensor: Array) -> Array:
        kept = tensor.copy()
        size = tensor.shape[2]
        kept[:, :, chosen(np.arange(size), size)] = 0
        return kept

    several = "s" if len(tensors) > 1 else ""
    text = f"Leaves out of the product{several} with {' and '.join(tensors)} {words}"
    return _fault(id, "equations", text, tuple(CELLS), lambda c: with_tensors(c, tensors, without))
