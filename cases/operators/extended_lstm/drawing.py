"""The strategy behind :func:`...strategies.cases` for ExtendedLSTM: any legal node with any scales and zero points.

This imports Hypothesis, which takes its time, so nothing imports it that does not draw.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from hypothesis import reject
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ....reference import operator_version
from ...axes.attributes import finite_float32
from ...specs.bounds import Bounds, known_among, listed, not_among
from ...specs.drawing import sizes
from .axes import HIGHEST, Affine
from .spec import OP_TYPE, VERSION, extended

__all__ = ["extended_cases"]

_SEEDS = 1000
_ABOUT = "drawn"

# Simplest first. Dense numbers stand there more often: what is spoilt says less.
_CHOICES: Mapping[str, tuple[Any, ...]] = {
    "bias": (False, True),
    "hidden_size": (True, False),
    "explicit": (False, True),
    "old": (False, True),
    "weights": ("initializer", "input"),
    "reruns": ("none", "data", "sizes"),
    "data": (*["dense"] * 8, "ties", "inf", "far", "nan"),
}
_QUANTIZED = ("x", "w", "r", "b", "y")

# Levels of a tensor reach as far as 2**(exponent + 16). In most draws numbers are of a usual size; in the others
# products of two scales leave what a mantissa of 16 bits and a shift of 32 hold.
_PLAIN: Affine = (2.0**-15, 32768)
_USUAL, _RARE = (-17, -13), (-30, -6)
_ZERO_POINTS = (32768, 0, 32767, 65535)

# How much of its range a tensor uses: all, little, or more than there is, which saturates.
_FILLS = (1.0, 0.25, 1.5)


def extended_cases(bounds: Bounds) -> SearchStrategy[Any]:
    """Legal nodes of ExtendedLSTM with their inputs. Raises ValueError for bounds that leave none."""
    operator = operator_version(OP_TYPE, VERSION)
    if bounds.types is not None:
        known_among(operator, "type", listed("types", bounds.types), operator.types)
    if bounds.activations is not None and listed("activations", bounds.activations):
        raise ValueError(f"{operator.name} lists no activation functions; leave activations out")
    only = {name: _allowed(name, values) for name, values in bounds.only.items()}
    drawn: dict[str, SearchStrategy[Any]] = {
        "T": sizes(bounds.min_steps, bounds.max_steps),
        "N": sizes(bounds.min_rows, bounds.max_rows),
        "I": st.integers(1, bounds.max_inputs),
        "H": st.integers(1, bounds.max_size),
        **{name: st.sampled_from(only.get(name, values)) for name, values in _CHOICES.items()},
        **{name: st.sampled_from(only[name]) if name in only else _affine(name) for name in _QUANTIZED},
        "seed": st.integers(0, _SEEDS - 1),
    }
    fills = st.sampled_from(_FILLS)

    @st.composite
    def nodes(draw: DrawFn) -> Any:
        row = {name: draw(strategy) for name, strategy in drawn.items()}
        given = ("X", "W", "R", "B") if row["bias"] else ("X", "W", "R")
        row["fill"] = tuple((name, share) for name in given if (share := draw(fills)) != 1.0)
        if not row["T"] * row["N"] and row["data"] != "dense":
            if "dense" not in only.get("data", _CHOICES["data"]):
                reject()
            row["data"] = "dense"
        return extended(_ABOUT, **row)

    return nodes()


def _allowed(name: str, values: Collection[Any]) -> list[Any]:
    """What an axis may have, the simplest first. Raises ValueError for an axis and for values that there are not."""
    operator = operator_version(OP_TYPE, VERSION)
    if name not in _CHOICES and name not in _QUANTIZED:
        raise ValueError(f"{operator.name} has no axis {name!r}; only takes {', '.join((*_CHOICES, *_QUANTIZED))}")
    if isinstance(values, str) or not isinstance(values, Collection) or not values:
        raise ValueError(f"only: {name} is a list of at least one value, not {values!r}")
    if name in _CHOICES:
        for value in values:
            if not any(value == known and type(value) is type(known) for known in _CHOICES[name]):
                raise ValueError(not_among(operator, name, value, _CHOICES[name]))
        return [value for value in dict.fromkeys(_CHOICES[name]) if value in values]
    for value in values:
        if not (_is_affine(value) or (name == "y" and value is None)):
            pair = f"a pair of a positive float32 scale and a zero point from 0 to {HIGHEST}"
            raise ValueError(f"only: {name} is {pair}{', or None' if name == 'y' else ''}, not {value!r}")
    return [value if value is None else tuple(value) for value in values]


def _is_affine(value: Any) -> bool:
    if not isinstance(value, (tuple, list)) or len(value) != 2:
        return False
    scale, zero_point = value
    whole = type(zero_point) is int and 0 <= zero_point <= HIGHEST
    return whole and type(scale) is float and finite_float32(scale) and float(np.float32(scale)) > 0


def _affine(name: str) -> SearchStrategy[Affine | None]:
    """Scale and zero point of a tensor; of Y also none."""
    few = st.sampled_from((1.0, 1.5))
    any_ = st.floats(1.0, 2.0, width=32, exclude_max=True)
    exponents = st.one_of(st.just(-15), st.integers(*_USUAL), st.integers(*_RARE))
    scales = st.builds(lambda m, e: float(np.float32(m * 2.0**e)), few | any_, exponents)
    zero_points = st.sampled_from(_ZERO_POINTS) | st.integers(0, HIGHEST)
    affines: SearchStrategy[Affine | None] = st.just(_PLAIN) | st.tuples(scales, zero_points)
    # Most runtimes take a quantized Y only.
    return st.none() | st.just(_PLAIN) | st.tuples(scales, zero_points) if name == "y" else affines
