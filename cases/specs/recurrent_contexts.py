"""Contexts of ONNX's recurrent operators: what may be there in a case, and what parts of them need to show."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

from ...reference import CELLS, OperatorVersion, operator_version, versions_of
from ...reference.numbers.activations import kind_named
from .contexts import HALVES, Context, ContextSpace, Need, values_of
from .recurrent import recurrent_case
from .space import functions_of, output_subsets, settle, space_of
from .spec import CaseSpec

__all__ = ["RecurrentContexts", "size_contexts"]

BLOCKS = (2, 4, 8, 16, 32)
_LARGEST = 1500  # T*N*H and I*H of cases that are measured: larger ones are there for other reasons
_DATA = frozenset({"dense", "small", "large", "heavy"})


class RecurrentContexts(ContextSpace):
    """Of LSTM, GRU or RNN; see :class:`.contexts.ContextSpace`."""

    def __init__(self, op: str) -> None:
        self._op = op

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Over all versions and types."""
        return _all_contexts(self._op)

    @property
    def groups(self) -> Mapping[str, tuple[Any, ...]]:
        """By the restrictions of :mod:`.space`."""
        return _groups(self._op)

    def needs(self, names: frozenset[str], *, half: bool = False) -> tuple[Need, ...]:
        """In the words of :mod:`....reference.faults.parts`."""
        chosen = names - _EXCUSED if half else names
        return tuple(_NEEDS[name] for name in sorted(chosen if chosen & _STEPLESS else chosen | {"some-step"}))

    def halves(self, spec: CaseSpec) -> tuple[Any, ...]:
        """The fields of the case, and which direction it is."""
        fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
        directions = HALVES if spec.direction == "bidirectional" else (spec.direction,)
        return tuple(SimpleNamespace(**fields, half=half) for half in directions)

    def measurable(self, spec: CaseSpec) -> bool:
        """Neither large nor of special numbers."""
        small = 0 < spec.T * spec.N * spec.H <= _LARGEST and spec.I * spec.H <= _LARGEST
        return not spec.illegal and small and spec.data in _DATA

    def models(self, spec: CaseSpec) -> int:
        """Without Y there is a companion with all outputs."""
        return 1 if "Y" in spec.outputs else 2

    def earlier(self, spec: CaseSpec) -> CaseSpec | None:
        """None too where sizes are so small that the word for its lengths means something else."""
        if spec.reruns == "none":
            return None
        X = recurrent_case(spec).trial.feeds[0].inputs["X"]
        T, N = X.shape[:2] if spec.layout == 0 else X.shape[1::-1]
        earlier = replace(spec, T=int(T), N=int(N), reruns="none")
        row = {name: getattr(earlier, name) for name in ("T", "N", "lengths", "reruns", "dimensions", "initial")}
        return earlier if settle(row) == row else None


def _versions(op: str) -> list[OperatorVersion]:
    return [operator_version(op, version) for version in versions_of(op)]


def _axis(op: str, name: str) -> tuple[Any, ...]:
    """All values of an axis, over the operator's versions."""
    values: dict[Any, None] = {}
    for operator in _versions(op):
        axis = space_of(operator).get(name)
        values |= dict.fromkeys((*axis.values, *axis.rare) if axis is not None else ())
    return tuple(values)


@cache
def _all_contexts(op: str) -> tuple[Context, ...]:
    return tuple(_contexts(op))


def _contexts(op: str) -> Iterator[Context]:
    operators, cell = _versions(op), CELLS[op]
    names = {attribute for operator in operators for attribute in operator.attributes}
    each = values_of
    yield from each("interface", "version", versions_of(op))
    yield from each("interface", "type", _axis(op, "type"))
    yield from each("node", "direction", _axis(op, "direction"))
    for half in HALVES:
        yield Context(f"half={half}", "node", lambda row, half=half: row.half == half, half=True)  # type: ignore[misc]
    yield from size_contexts()
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


def size_contexts() -> Iterator[Context]:
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


# What parts need


def _uses(row: Any, coefficient: str) -> bool:
    kinds = [kind_named(name) for name in row.activations or ()]  # in whatever letter case a case has them
    return any(getattr(kind, f"uses_{coefficient}") for kind in kinds if kind is not None)


def _longest(row: Any) -> int:
    """Steps of the longest row."""
    if row.lengths == "empty" and row.N < 3:
        return int(row.T - 1 if row.N == 2 and row.T > 1 else row.T if row.N == 2 else 0)
    return int(row.T - 1 if row.lengths == "short" else row.T)


def _short(row: Any) -> bool:
    """Whether some row has fewer steps than there are."""
    if row.lengths == "ragged":
        return bool(row.T > 1 and row.N > 1)
    return bool(row.lengths == "empty" or (row.T > 1 and row.lengths == "short"))


def _keeps_lengths(row: Any) -> bool:
    """Whether the run before may leave lengths that fit and are others."""
    if row.reruns == "data":
        return bool(row.T > 2) and (
            (row.lengths == "ragged" and row.N > 1) or (row.lengths == "empty" and row.N not in (1, 3))
        )
    if row.reruns == "sizes":
        return _short(row)
    return bool(row.reruns == "growing" and row.N == 1)


# What parts need, as what rows of which group have it.
_HAVING: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    "B": ("bias", lambda row: row.bias),
    "P": ("peepholes", lambda row: row.peepholes),
    "initial_h": ("course", lambda row: row.initial in ("all", "h")),
    "initial_c": ("course", lambda row: row.initial in ("all", "c")),
    "initial": ("course", lambda row: row.initial != "none"),
    "no-initial": ("course", lambda row: row.initial == "none"),
    "initial-absent": ("course", lambda row: row.initial != "all"),
    "clip": ("clip", lambda row: row.clip is not None),
    "activations": ("node", lambda row: row.activations is not None),
    "activation_alpha": ("node", lambda row: row.alpha is not None and _uses(row, "alpha")),
    "activation_beta": ("node", lambda row: row.beta is not None and _uses(row, "beta")),
    "input_forget": ("input_forget", lambda row: row.input_forget == 1),
    "layout": ("interface", lambda row: row.layout == 1),
    "reverse": ("node", lambda row: row.half == "reverse"),
    "two-directions": ("node", lambda row: row.direction == "bidirectional"),
    "second-direction": ("node", lambda row: row.direction == "bidirectional" and row.half == "reverse"),
    "short-row": ("course", lambda row: _short(row)),
    "uneven-rows": (
        "course",
        lambda row: row.N > 1 and (row.lengths == "empty" or (row.T > 1 and row.lengths == "ragged")),
    ),
    "rows": ("course", lambda row: row.N > 1),
    "steps": ("course", lambda row: _longest(row) > 1),
    "last-step": ("course", lambda row: _longest(row) == row.T),
    "last-row": ("course", lambda row: row.lengths != "empty"),
    "earlier-state": ("course", lambda row: row.reruns == "data" or (row.reruns == "growing" and row.N == 1)),
    "earlier-lengths": ("course", _keeps_lengths),
    "recurrence": ("course", lambda row: _longest(row) > 1 or row.initial in ("all", "h")),
    "states-at": ("interface", lambda row: any(name and name != "Y" for name in row.outputs)),
    "out-Y": ("interface", lambda row: "Y" in row.outputs),
    "out-Y_h": ("interface", lambda row: "Y_h" in row.outputs),
    "out-Y_c": ("interface", lambda row: "Y_c" in row.outputs),
    "some-step": ("course", lambda row: _longest(row) > 0),
}


# What rows without a step show as well: which state they end with, and what takes them for rows that have steps.
_STEPLESS = frozenset(
    {"initial", "initial_h", "initial_c", "out-Y_h", "out-Y_c", "two-directions", "short-row", "earlier-lengths"}
)
# Where the document leaves open with which state a row without a step ends, its loss is excused; but not by halves.
_EXCUSED = frozenset({"last-row"})
_NEEDS = {name: Need(name, group, holds) for name, (group, holds) in _HAVING.items()}
