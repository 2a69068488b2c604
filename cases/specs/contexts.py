"""Contexts: everything that may be there when a part of an operator goes wrong, and which of them go together.

Made from the description of the space (:mod:`.space`): each value of each axis, each optional input and output there or
not, and for sizes the classes around the blocks that kernels work in. What can occur together is decided by going
through all combinations of the axes that restrict each other; a pair of contexts that none of them holds cannot occur.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...reference import CELLS, OperatorVersion, operator_version, versions_of
from .space import functions_of, output_subsets, settle, space_of
from .spec import CaseSpec

__all__ = ["HALVES", "Context", "Possible", "contexts_of", "half_of", "possible"]

Mask = NDArray[np.bool_]

HALVES = ("forward", "reverse")
"""The ways in which one direction of a node runs: where both are there, each is a half of the case."""

BLOCKS = (2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Context:
    """One thing that may be so in a case.

    group
        The axes that restrict each other, among which it is: see :func:`_groups`.
    holds
        Whether it is so, for a case or a row of its group with the same fields.
    half
        Whether it is about one direction of the node alone; its rows have a field ``half``.
    pairs_only
        Whether it counts in faults of one context alone: it is one of a long list whose classes count in all.
    """

    id: str
    group: str
    holds: Callable[[Any], bool]
    half: bool = False
    pairs_only: bool = False


@cache
def contexts_of(op: str) -> tuple[Context, ...]:
    """All contexts of an operator, over its versions and types."""
    return tuple(_contexts(op))


def half_of(spec: CaseSpec, half: str) -> SimpleNamespace:
    """A case as contexts see one of its directions."""
    return SimpleNamespace(**{name: getattr(spec, name) for name in spec.__dataclass_fields__}, half=half)


def _versions(op: str) -> list[OperatorVersion]:
    return [operator_version(op, version) for version in versions_of(op)]


def _axis(op: str, name: str) -> tuple[Any, ...]:
    """All values of an axis, over the operator's versions."""
    found: dict[Any, None] = {}
    for operator in _versions(op):
        axis = space_of(operator).get(name)
        found |= dict.fromkeys((*axis.values, *axis.rare) if axis is not None else ())
    return tuple(found)


def _contexts(op: str) -> Iterator[Context]:
    operators, cell = _versions(op), CELLS[op]
    names = {attribute for operator in operators for attribute in operator.attributes}

    def each(group: str, field: str, values: Sequence[Any]) -> Iterator[Context]:
        for value in values:
            yield Context(f"{field}={value}", group, lambda row, value=value: getattr(row, field) == value)  # type: ignore[misc]

    yield from each("interface", "version", versions_of(op))
    yield from each("interface", "type", _axis(op, "type"))
    yield from each("node", "direction", _axis(op, "direction"))
    for half in HALVES:
        yield Context(f"half={half}", "node", lambda row, half=half: row.half == half, half=True)  # type: ignore[misc]
    yield from _sizes()
    for field, group in (
        *(("bias", "bias"), ("lengths", "course"), ("reruns", "course"), ("dimensions", "course")),
        *(("weights", "weights"), ("opset", "opset"), ("hidden_size", "written"), ("explicit", "written")),
    ):
        yield from each(group, field, _axis(op, field))
    yield from each("data", "data", ("dense", "small", "large", "heavy"))
    for name in ("h", *cell.inner):
        yield Context(f"initial_{name}", "course", lambda row, name=name: row.initial in ("all", name))  # type: ignore[misc]
        yield Context(f"no initial_{name}", "course", lambda row, name=name: row.initial not in ("all", name))  # type: ignore[misc]
    if cell.peepholes:
        yield from each("peepholes", "peepholes", (False, True))
    for name in ("input_forget", "linear_before_reset"):
        if name in names:
            group = "interface" if name == "linear_before_reset" else name
            yield Context(f"{name}", group, lambda row, name=name: bool(getattr(row, name)))  # type: ignore[misc]
            yield Context(f"no {name}", group, lambda row, name=name: not getattr(row, name))  # type: ignore[misc]
    yield from each("interface", "layout", (0, 1))
    for name in operators[-1].outputs:
        yield Context(f"{name}", "interface", lambda row, name=name: name in row.outputs)  # type: ignore[misc]
        yield Context(f"no {name}", "interface", lambda row, name=name: name not in row.outputs)  # type: ignore[misc]
    yield Context("clip", "clip", lambda row: row.clip is not None)
    yield Context("no clip", "clip", lambda row: row.clip is None)
    yield Context("clip<1", "clip", lambda row: row.clip is not None and row.clip < 1)
    yield Context("clip>=1", "clip", lambda row: row.clip is not None and row.clip >= 1)
    yield Context("activations", "node", lambda row: row.activations is not None)
    yield Context("no activations", "node", lambda row: row.activations is None)
    for name in functions_of(operators[-1]):
        yield Context(
            f"function={name}",
            "node",
            lambda row, name=name: name.lower() in _used(row),  # type: ignore[misc]
            pairs_only=True,
        )
    for title, functions in _CLASSES.items():
        yield Context(title, "node", lambda row, functions=functions: bool(functions & _used(row)))  # type: ignore[misc]
    for name in ("alpha", "beta"):
        other = "beta" if name == "alpha" else "alpha"
        yield Context(f"{name}", "node", lambda row, name=name: getattr(row, name) is not None)  # type: ignore[misc]
        yield Context(f"no {name}", "node", lambda row, name=name: getattr(row, name) is None)  # type: ignore[misc]
        yield Context(
            f"{name} without {other}",
            "node",
            lambda row, name=name, other=other: getattr(row, name) is not None and getattr(row, other) is None,  # type: ignore[misc]
        )


# Functions by what a kernel computes them from.
_CLASSES = {
    "saturating functions": frozenset({"sigmoid", "tanh", "scaledtanh", "softsign"}),
    "piecewise functions": frozenset({"relu", "leakyrelu", "thresholdedrelu", "hardsigmoid", "affine"}),
    "exponential functions": frozenset({"elu", "softplus"}),
}


def _used(row: Any) -> frozenset[str]:
    """The functions that a node lists, in small letters."""
    return frozenset(name.lower() for name in row.activations or ())


def _sizes() -> Iterator[Context]:
    """Classes of sizes: one, even and odd, multiples of blocks, blocks with a tail."""
    yield Context("T=1", "course", lambda row: row.T == 1)
    yield Context("T even", "course", lambda row: row.T % 2 == 0)
    yield Context("T odd", "course", lambda row: row.T % 2 == 1 and row.T > 1)
    yield Context("T>6", "course", lambda row: row.T > 6)
    yield Context("N=1", "course", lambda row: row.N == 1)
    yield Context("N even", "course", lambda row: row.N % 2 == 0)
    yield Context("N odd", "course", lambda row: row.N % 2 == 1 and row.N > 1)
    yield Context("N>4", "course", lambda row: row.N > 4)
    yield Context("T=N", "course", lambda row: row.T == row.N)
    yield Context("I=H", "widths", lambda row: row.I == row.H)
    for axis in "IH":
        yield Context(f"{axis}=1", "widths", lambda row, axis=axis: getattr(row, axis) == 1)  # type: ignore[misc]
        for block in BLOCKS:
            yield Context(
                f"{axis} in blocks of {block}",
                "widths",
                lambda row, axis=axis, block=block: getattr(row, axis) % block == 0,  # type: ignore[misc]
            )
            yield Context(
                f"{axis} past blocks of {block}",
                "widths",
                lambda row, axis=axis, block=block: getattr(row, axis) > block and getattr(row, axis) % block != 0,  # type: ignore[misc]
            )


# What can occur


Row = dict[str, Any]


@cache
def _groups(op: str) -> Mapping[str, tuple[SimpleNamespace, ...]]:
    """For each group of axes that restrict each other all legal combinations of their values."""
    operators, cell = _versions(op), CELLS[op]

    def product(**axes: Sequence[Any]) -> Iterator[Row]:
        return (dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values()))

    def rows(found: Iterator[Row]) -> tuple[SimpleNamespace, ...]:
        return tuple(SimpleNamespace(**row) for row in found)

    def interface() -> Iterator[Row]:
        for operator in operators:
            space = space_of(operator)
            axes = {n: (*space[n].values, *space[n].rare) if n in space else (None,) for n in ("linear_before_reset",)}
            layouts = (0, 1) if "layout" in space else (0,)
            for row in product(type=space["type"].values, layout=layouts, outputs=output_subsets(operator), **axes):
                yield {"version": operator.since_version, **row}

    def node() -> Iterator[Row]:
        functions = functions_of(operators[-1])
        for direction, halves in (("forward", HALVES[:1]), ("reverse", HALVES[1:]), ("bidirectional", HALVES)):
            places = len(cell.activations) * len(halves)
            lists: list[tuple[str, ...] | None] = [None, *((name,) * places for name in functions)]
            if places > 1:
                lists += [(first,) * (places - 1) + (last,) for first, last in itertools.permutations(functions, 2)]
            coefficients = (None, (1.25,))
            for half, names, alpha, beta in itertools.product(halves, lists, coefficients, coefficients):
                if names is not None or (alpha is None and beta is None):
                    yield {"direction": direction, "half": half, "activations": names, "alpha": alpha, "beta": beta}

    def course() -> Iterator[Row]:
        sizes: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9)
        names = ("lengths", "reruns", "dimensions", "initial")
        for row in product(T=sizes, N=sizes, **{name: _axis(op, name) for name in names}):
            # One row that is called ragged is as long as all of them: legal, if not what designs would call it.
            alone = row["lengths"] == "ragged" and row["N"] == 1 and row["T"] > 1
            if settle(row) == row or (alone and settle({**row, "lengths": "short"}) == {**row, "lengths": "short"}):
                yield row

    widths = tuple(range(1, 70))
    return {
        "interface": rows(interface()),
        "node": rows(node()),
        "course": rows(course()),
        "widths": rows(product(I=widths, H=widths)),
        "bias": rows(product(bias=_axis(op, "bias"))),
        "weights": rows(product(weights=_axis(op, "weights"))),
        "opset": rows(product(opset=_axis(op, "opset"))),
        "written": rows(
            row
            for row in product(hidden_size=(True, False), explicit=(False, True))
            if row["hidden_size"] or not row["explicit"]
        ),
        "data": rows(product(data=("dense", "small", "large", "heavy"))),
        "peepholes": rows(product(peepholes=(False, True) if cell.peepholes else (False,))),
        "input_forget": rows(product(input_forget=_axis(op, "input_forget") or (None,))),
        "clip": rows(product(clip=(None, 0.5, 2.0))),
    }


@dataclass(frozen=True)
class Possible:
    """What can occur while a part can show: (contexts,) alone and (contexts, contexts) together."""

    alone: Mask
    together: Mask


@cache
def _masks(op: str) -> Mapping[str, tuple[NDArray[np.intp], Mask]]:
    """For each group the numbers of its contexts, and in which of its rows each holds."""
    contexts = contexts_of(op)
    found = {}
    for group, rows in _groups(op).items():
        own = [k for k, context in enumerate(contexts) if context.group == group]
        held = np.array([[contexts[k].holds(row) for row in rows] for k in own], bool).reshape(len(own), len(rows))
        found[group] = (np.array(own, np.intp), held)
    return found


def possible(
    op: str,
    needs: Sequence[tuple[str, Callable[[Any], bool]]] = (),
    within: Callable[[str, Any], bool] | None = None,
) -> Possible:
    """Which contexts can occur, alone and together, where all needs hold.

    needs
        Each about the rows of one group: (group, whether a row has it).
    within
        within(group, row): which part of the space there is; all of it without.
    """
    contexts, groups = contexts_of(op), _groups(op)
    alone = np.zeros(len(contexts), bool)
    inside: dict[str, Mask] = {}
    satisfied = True
    for group, (own, held) in _masks(op).items():
        own_needs = [need for g, need in needs if g == group]
        legal = np.array([all(need(row) for need in own_needs) for row in groups[group]], bool)
        if within is not None:
            legal &= np.array([within(group, row) for row in groups[group]], bool)
        satisfied = satisfied and bool(legal.any())
        kept = (held & legal).astype(np.float32)
        inside[group] = kept @ kept.T > 0
        alone[own] = kept.any(axis=1)
    if not satisfied:
        return Possible(np.zeros_like(alone), np.zeros((len(alone), len(alone)), bool))
    together = alone[:, np.newaxis] & alone
    for group, (own, _) in _masks(op).items():
        together[np.ix_(own, own)] = inside[group]
    return Possible(alone, together)
