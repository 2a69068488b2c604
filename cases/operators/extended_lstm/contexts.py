"""Contexts of ExtendedLSTM: what may be there in a case, and what parts of it need to show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from ....reference import IllegalNode
from ....reference.operators.extended_lstm.document import resolve
from ...axes.tensors.size import size_contexts
from ...specs.contexts import HALVES, Context, ContextSpace, Need, Relation, values_of
from .spec import HIGHEST, MIDDLE, Affine, ExtendedSpec, calibrated

__all__ = ["EXTENDED_CONTEXTS"]

_LARGEST = 1500  # T*N*H and I*H of cases that are measured: larger ones are there for other reasons
_DATA = ("dense", "ties", "inf", "far")
_WIDE = {"x": 3.0, "w": 0.5, "r": 0.5, "b": 0.5}
"""By tensor from where on its numbers are large: about the middle of what dense cases have."""
_NARROW = 0.6  # how far outputs must be representable on both sides; of narrower ranges it shows how they end
_COARSE = 2.0**-9  # a y_scale at which roundings show in few digits


class _Contexts(ContextSpace):
    """Of ExtendedLSTM; see :class:`...specs.contexts.ContextSpace`."""

    @property
    def contexts(self) -> tuple[Context, ...]:
        """Sizes, forms of the node, and for each tensor where its zero point is and what its scale is like."""
        return _all_contexts()

    @property
    def occurring(self) -> Mapping[str, Sequence[Any]]:
        """Forms of the node, sizes, and scales and zero points of each kind."""
        return _OCCURRING

    @property
    def relations(self) -> Sequence[Relation]:
        """What the document allows."""
        return _WRITTEN

    def needs(self, names: frozenset[str], *, half: bool = False) -> tuple[Need, ...]:
        """In the words of ``reference/operators/extended_lstm/parts.py``."""
        return tuple(_NEEDS[name] for name in sorted(names))

    def halves(self, spec: ExtendedSpec) -> tuple[Any, ...]:
        """The fields of the case, and which direction it is."""
        fields = {name: getattr(spec, name) for name in spec.__dataclass_fields__}
        written: dict[str, Any] = {"direction": "bidirectional", "layout": 0, "input_forget": 0}
        written |= {f"{name}_fill": dict(spec.fill).get(name.upper(), 1.0) for name in "xwrb"}
        return tuple(SimpleNamespace(**fields, **written, half=half) for half in HALVES)

    def measurable(self, spec: ExtendedSpec) -> bool:
        """Neither large nor with NaN."""
        small = 0 < spec.T * spec.N * spec.H <= _LARGEST and 0 < spec.I * spec.H <= _LARGEST
        return not spec.illegal and small and spec.data in _DATA

    def earlier(self, spec: ExtendedSpec) -> ExtendedSpec | None:
        """The run before has two steps more where it has other sizes."""
        if spec.reruns == "none":
            return None
        return replace(spec, T=spec.T + (2 if spec.reruns == "sizes" else 0), reruns="none")


EXTENDED_CONTEXTS = _Contexts()


@cache
def _all_contexts() -> tuple[Context, ...]:
    return tuple(_contexts())


def _contexts() -> Iterator[Context]:
    # What the document does not support is there too: that it cannot occur follows from what it says.
    yield from values_of("direction", ("forward", "reverse", "bidirectional"))
    yield from values_of("layout", (0, 1))
    yield from values_of("input_forget", (0, 1))
    for half in HALVES:
        yield Context(f"half={half}", ("half",), lambda row, half=half: row.half == half, half=True)  # type: ignore[misc]
    yield from size_contexts()
    yield from values_of("reruns", ("none", "data", "sizes"))
    for field in ("bias", "hidden_size", "explicit", "old"):
        yield from values_of(field, (True, False))
    yield from values_of("weights", ("initializer", "input"))
    yield from values_of("data", _DATA)
    for name in "xwrb":
        yield from _of_zero_point(name)
        yield from _of_scale(name)
        yield from _of_fill(name)
    yield Context("y", ("y",), lambda row: row.y is not None)
    yield Context("no y", ("y",), lambda row: row.y is None)
    yield from _of_zero_point("y")
    yield Context("y_scale power of two", ("y",), lambda row: row.y is not None and _is_power(row.y[0]))
    yield Context("y_scale no power of two", ("y",), lambda row: row.y is not None and not _is_power(row.y[0]))
    yield Context("y narrow", ("y",), _saturates)
    yield Context("y wide", ("y",), lambda row: row.y is not None and not _saturates(row))
    yield Context("y coarse", ("y",), lambda row: row.y is not None and row.y[0] >= _COARSE)


def _of_zero_point(name: str) -> Iterator[Context]:
    def zero_point(row: Any) -> int | None:
        affine: Affine | None = getattr(row, name)
        return None if affine is None else affine[1]

    title = f"{name}_zero_point"
    yield Context(f"{title} at an end", (name,), lambda row: zero_point(row) in (0, HIGHEST))
    yield Context(f"{title} in the middle", (name,), lambda row: zero_point(row) == MIDDLE)
    yield Context(f"{title} between", (name,), lambda row: zero_point(row) not in (None, 0, HIGHEST, MIDDLE))
    for value in (0, HIGHEST):
        yield Context(f"{title}={value}", (name,), lambda row, value=value: zero_point(row) == value, pairs_only=True)  # type: ignore[misc]
    for word, among in (("below", range(1, MIDDLE)), ("above", range(MIDDLE + 1, HIGHEST))):
        inside = partial(_among, name, among)
        yield Context(f"{title} {word} the middle", (name,), inside, pairs_only=True)


def _among(name: str, values: range, row: Any) -> bool:
    """Whether a tensor's zero point is one of these."""
    affine: Affine | None = getattr(row, name)
    return affine is not None and affine[1] in values


def _of_scale(name: str) -> Iterator[Context]:
    def scale(row: Any) -> float:
        return float(getattr(row, name)[0])

    yield Context(f"{name}_scale power of two", (name,), lambda row: _is_power(scale(row)))
    yield Context(f"{name}_scale no power of two", (name,), lambda row: not _is_power(scale(row)))
    yield Context(f"{name} large", (name,), lambda row: _reach(getattr(row, name)) >= _WIDE[name])
    yield Context(f"{name} small", (name,), lambda row: _reach(getattr(row, name)) < _WIDE[name])


def _of_fill(name: str) -> Iterator[Context]:
    yield Context(f"{name} beyond its range", (f"{name}_fill",), lambda row: _fill(row, name) > 1)
    yield Context(f"{name} within its range", (f"{name}_fill",), lambda row: _fill(row, name) <= 1)


def _fill(row: Any, name: str) -> float:
    return float(getattr(row, f"{name}_fill"))


def _is_power(scale: float) -> bool:
    return math.frexp(float(np.float32(scale)))[0] == 0.5


def _reach(affine: Affine) -> float:
    """The largest size of a number that levels stand for."""
    scale, zero_point = affine
    return scale * max(zero_point, HIGHEST - zero_point)


def _saturates(row: Any) -> bool:
    """Whether usual outputs leave the range."""
    return row.y is not None and row.y[0] * min(row.y[1], HIGHEST - row.y[1]) < _NARROW


# What can occur


def _values() -> Iterator[tuple[str, tuple[Any, ...]]]:
    few, many = tuple(range(1, 10)), tuple(range(1, 70))
    yield from {"T": few, "N": few, "I": many, "H": many}.items()
    yield "direction", ("forward", "reverse", "bidirectional")
    yield from {"half": HALVES, "layout": (0, 1), "input_forget": (0, 1)}.items()
    yield "reruns", ("none", "data", "sizes")
    yield "weights", ("initializer", "input")
    yield from ((field, (True, False)) for field in ("bias", "hidden_size", "explicit", "old"))
    yield "data", _DATA
    zero_points = (0, 20000, MIDDLE, 45000, HIGHEST)
    scales = [own * reach for own in (1.0, 1.25) for reach in (2.0**-20, 2.0**-10)]
    for name in "xwrb":
        yield name, (*itertools.product(scales, zero_points),)
        yield f"{name}_fill", (1.0, 0.25, 1.5)
    outputs = [own * reach for own in (1.0, 1.25) for reach in (2.0**-18, 2.0**-15, 2.0**-14, 2.0**-8)]
    yield "y", (None, *itertools.product(outputs, zero_points))


_OCCURRING = dict(_values())


_FORM: Mapping[str, Any] = {"direction": "bidirectional", "layout": 0, "input_forget": 0}


def _allowed(name: str, row: Any) -> bool:
    """Whether the document allows a node with this value of an attribute, and others as they must be."""
    usual = calibrated(-1, 1)
    spec = ExtendedSpec("form", T=1, I=1, H=1, x=usual, w=usual, r=usual, b=usual, y=usual)
    try:
        resolve({**spec.attributes, **_FORM, name: getattr(row, name)}, spec.inputs())
    except IllegalNode:
        return False
    return True


_WRITTEN = [Relation((name,), partial(_allowed, name)) for name in _FORM]


# What parts need


def _beyond(row: Any, name: str) -> bool:
    return _fill(row, name) > 1 or (name == "x" and row.data in ("inf", "far"))


def _offset(row: Any, name: str) -> bool:
    affine = getattr(row, name)
    return affine is not None and affine[1] != MIDDLE


_HAVING: dict[str, tuple[tuple[str, ...], Callable[[Any], bool]]] = {
    "bias": (("bias",), lambda row: row.bias),
    "second-direction": (("half",), lambda row: row.half == "reverse"),
    "steps": (("T",), lambda row: row.T > 1),
    "recurrence": (("T",), lambda row: row.T > 1),
    "earlier-run": (("reruns",), lambda row: row.reruns != "none"),
    "y-given": (("y",), lambda row: row.y is not None),
    "y-offset": (("y",), lambda row: _offset(row, "y")),
    # Outputs lie between -1 and 1.
    "y-beyond": (("y",), lambda row: row.y is not None and row.y[0] * min(row.y[1], HIGHEST - row.y[1]) < 1),
}
_HAVING |= {f"{n}-beyond": ((f"{n}_fill", "data"), lambda row, n=n: _beyond(row, n)) for n in "xwrb"}  # type: ignore[misc]
_HAVING |= {f"{n}-offset": ((n,), lambda row, n=n: _offset(row, n)) for n in "xwrb"}  # type: ignore[misc]
_NEEDS = {name: Need(name, fields, holds) for name, (fields, holds) in _HAVING.items()}
