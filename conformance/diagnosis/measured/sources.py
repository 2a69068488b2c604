"""Measuring sums: which columns of W and R, and which other inputs, a target takes as they are.

A failure that nothing explains is asked about with nodes of one step and the attributes of the smallest case in which
all but one tensor is zero. Of W and R each row of the batch gets another column, in an order of its own, so that what
belongs to a row is not taken for what belongs to a column. Sizes around those of the case tell apart a last column, one
that is left over of blocks, and those beyond a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....cases.specs.spec import RecurrentSpec
from ....reference import FORMATS, Fault, cell_named, fault_named
from ....reference.faults.own import COLUMNS, own_product
from .step import Array, Inputs, Mask, Runs, asked, node_spec, numbers_wrong, shows_numbers

__all__ = ["Source", "faults_of_sources", "sources_of"]


_SIZES = ((1.0, 0), (1.0, 1), (1.0, 2), (2.0, 1), (1.5, 4), (1.25, 3))
"""Factors and summands of the sizes that are measured."""

_FEWEST, _MOST = 3, 300
"""Columns of which fewer tell no place, and of which more cost more than they tell."""


_FACTORS = {"W": "X", "R": "initial_h", "P": "initial_c"}
"""The other factor of each: which of the two is taken wrongly a product does not tell."""


@dataclass(frozen=True)
class Source:
    """A tensor of which one step makes something else than it has to.

    name
        ``W``, ``R``, ``Wb``, ``Rb``, ``P``, ``initial_h`` or ``initial_c``.
    columns
        Key of COLUMNS; empty where all are wrong, or there are none.
    direction
        Empty for all.
    """

    name: str
    columns: str
    direction: str

    @property
    def words(self) -> str:
        """A sentence for a reader."""
        of = f"{COLUMNS[self.columns][0]} of {self.name}" if self.columns else self.name
        through = f"from {_FACTORS[self.name]} through {of}" if self.name in _FACTORS else f"from {of}"
        where = f" in the {self.direction} direction" if self.direction else ""
        return f"one step {through}, all else being zero, is wrong{where}"


def faults_of_sources(sources: Sequence[Source]) -> Iterator[Fault]:
    """Faults that leave out what was measured to be wrong."""
    by: dict[tuple[str, str], str] = {}
    for source in sources:
        if source.columns:
            key = source.columns, source.direction
            by[key] = by.get(key, "") + source.name
    for (columns, direction), tensors in by.items():
        fault = fault_named(own_product(tensors, columns) + (f"@{direction}" if direction else ""))
        if isinstance(fault, Fault):
            yield fault


def sources_of(spec: Any, run: Runs, accuracies: Sequence[str]) -> list[Source]:
    """The tensors that are wrong by themselves; none where nothing can be told."""
    if not shows_numbers(spec):
        return []
    tables: dict[str, list[tuple[Mask, NDArray[np.int64]]]] = {}
    for number, (factor, more) in enumerate(_SIZES):
        sizes = {name: max(int(factor * getattr(spec, name)) + more, _FEWEST) for name in ("I", "H")}
        if max(sizes.values()) > _MOST:
            continue
        N = max(sizes.values())
        one = node_spec(spec, N=N, peepholes=spec.peepholes, **sizes)
        dice = np.random.default_rng(number)
        designs = list(_designs(one, dice))
        keys = [f"{one.id}~sum-{name}" for name, _, _ in designs]
        cases = asked(one, keys, [inputs for _, inputs, _ in designs], run)
        for (name, _, order), case in zip(designs, cases, strict=True):
            wrong = None if case is None else numbers_wrong(case, accuracies)
            if wrong is None:
                return []
            tables.setdefault(name, []).append((wrong, order))
    told = [source for name, several in tables.items() for source in _told(spec, name, several)]
    # Where each of them is wrong, and all of it, no sum is why.
    return told if any(source.columns for source in told) or len({s.name for s in told}) < len(tables) else []


def _designs(spec: RecurrentSpec, dice: np.random.Generator) -> Iterator[tuple[str, Inputs, NDArray[np.int64]]]:
    """Name, inputs, and the column that each row shows."""
    cell, dtype = cell_named(spec.op), FORMATS[spec.type].dtype
    D, G, N, I, H = spec.directions, len(cell.gates), spec.N, spec.I, spec.H
    shapes = {"X": (1, N, I), "W": (D, G * H, I), "R": (D, G * H, H), "B": (D, 2 * G * H)}
    shapes |= {f"initial_{name}": (D, N, H) for name in ("h", *cell.inner)}
    if spec.peepholes:
        shapes["P"] = (D, len(cell.peepholes) * H)

    def drawn(shape: tuple[int, ...]) -> Array:
        # Of four digits, away from zero: what is left out is seen.
        numbers: Array = dice.integers(4, 16, shape) * dice.choice((-1, 1), shape) / 16
        return numbers

    def given(**tensors: Array) -> Inputs:
        whole = {name: tensors.get(name, np.zeros(shape)) for name, shape in shapes.items()}
        if spec.layout == 1:
            turned = ("X", *(name for name in whole if name.startswith("initial")))
            whole |= {name: whole[name].swapaxes(0, 1) for name in turned}
        return {name: np.ascontiguousarray(array.astype(dtype)) for name, array in whole.items()}

    for name, size in (("W", I), ("R", H)):
        order = np.arange(N) % size
        order = order[dice.permutation(N)]
        rows = (order[:, np.newaxis] == np.arange(size)).astype(float)
        shown = {"X": rows[np.newaxis]} if name == "W" else {"initial_h": np.broadcast_to(rows, (D, N, H))}
        yield name, given(**{name: drawn(shapes[name]), **shown}), order
    every = np.zeros(N, np.int64)
    for half, name in enumerate(("Wb", "Rb")):
        bias = drawn(shapes["B"])
        bias[:, (1 - half) * G * H :][:, : G * H] = 0
        yield name, given(B=bias), every
    for name in shapes:
        if name.startswith("initial"):
            yield name, given(**{name: drawn(shapes[name])}), every
    if spec.peepholes:
        yield "P", given(P=drawn(shapes["P"]), initial_c=drawn(shapes["initial_c"])), every


def _told(spec: RecurrentSpec, name: str, tables: Sequence[tuple[Mask, NDArray[np.int64]]]) -> Iterator[Source]:
    """The parts of a tensor that are wrong in all sizes in which anything is."""
    directions = spec.node.attributes.get("direction", "forward")
    names = ("forward", "reverse") if spec.directions == 2 else (directions,)
    by: dict[str, list[str]] = {}
    for d, direction in enumerate(names):
        wrong = [_columns(mask[d], order) for mask, order in tables]
        if not any(columns.any() for columns in wrong):
            continue
        if name not in "WR":
            by.setdefault("", []).append(direction)
            continue
        places = (key for key, (_, chosen) in COLUMNS.items() if all(_is(columns, chosen) for columns in wrong))
        whole = all(columns.all() for columns in wrong)
        key = "" if whole else next(places, None)
        if key is not None:
            by.setdefault(key, []).append(direction)
    for key, of in by.items():
        yield Source(name, key, of[0] if len(of) < len(names) else "")


def _is(columns: Mask, chosen: Any) -> bool:
    return bool((columns == chosen(np.arange(len(columns)), len(columns))).all())


def _columns(wrong: Mask, order: NDArray[np.int64]) -> Mask:
    """The columns that are wrong, from (N, H) and the column that each row shows."""
    rows = np.asarray(wrong.any(axis=1))
    return np.array([rows[order == column].any() for column in range(int(order.max()) + 1)])
