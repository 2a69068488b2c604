"""The rules of ONNX's recurrent operators: what of their documents can be seen in a model.

All three have the same rules; what tells them apart is their cell and what their version defines.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...cases.specs.features import node_features
from ...reference import CELLS, IllegalNode, Node, OperatorVersion
from ...reference.numbers.activations import kind_named
from ..models.folding import NotConstant
from .general import attributes, inputs, lengths, outputs, types
from .sizes import Extent, Known, agreement
from .subject import Broken, Outcome, Subject

__all__ = ["formal_shapes", "open_features", "outcomes", "shapes_of"]

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}
_LAYOUTS = (0, 1)


def outcomes(subject: Subject) -> Iterator[Outcome]:
    """Everything that is wrong with a node, and everything that is not known of it."""
    yield from attributes(subject, lambda name, attribute: "attributes")
    yield from inputs(subject)
    yield from outputs(subject)
    yield from types(subject)
    yield from _direction(subject)
    yield from _layout(subject)
    yield from _activations(subject)
    yield from _numbers(subject)
    yield from _shapes(subject)
    yield from lengths(subject, _steps(subject))


def _directions(subject: Subject) -> int | None:
    return _DIRECTIONS.get(subject.chosen("direction"))


def _direction(subject: Subject) -> Iterator[Outcome]:
    given = subject.given("direction")
    if given is not None and given not in _DIRECTIONS:
        yield Broken("direction", f"direction is {given!r}, none of forward, reverse and bidirectional")


def _layout(subject: Subject) -> Iterator[Outcome]:
    given = subject.given("layout")
    if given is not None and given not in _LAYOUTS:
        yield Broken("layout", f"layout is {given}, for which no shapes are defined: it is 0 or 1")


def _activations(subject: Subject) -> Iterator[Outcome]:
    cell, names = CELLS[subject.operator.op_type], subject.given("activations")
    each, directions = len(cell.activations), _directions(subject)
    count = len(names) if names is not None else None
    if count is not None and directions is not None and count != each * directions:
        of = "both directions" if directions == 2 else "one direction"
        yield Broken("activations", f"activations are {count} names; {of} need {each * directions}")
    for name in dict.fromkeys(names or ()):
        if kind_named(name) is None:
            yield Broken("activations", f"activations name {name!r}, none of the functions that the document defines")
    for coefficient in ("activation_alpha", "activation_beta"):
        values = subject.given(coefficient) or ()
        there = count if count is not None else each * (directions or 2)
        if len(values) > there:
            what = f"{coefficient} has {len(values)} entries for {there} activations"
            yield Broken(coefficient.replace("_", "-"), what)


def _numbers(subject: Subject) -> Iterator[Outcome]:
    clip = subject.given("clip")
    if clip is not None and not clip >= 0:
        yield Broken("clip", f"clip is {clip:g}: the range from -clip to clip is empty")
    coupled = subject.given("input_forget")
    if coupled is not None and coupled not in (0, 1):
        yield Broken("input-forget", f"input_forget is {coupled}, neither 0 nor 1")


def formal_shapes(operator: OperatorVersion, layout: int) -> dict[str, tuple[Extent, ...]]:
    """By input, the shape that the document prints for it; `layout` moves the batch forward."""
    cell = CELLS[operator.op_type]
    gates = len(cell.gates)
    T, N, I, H = (Extent(name) for name in ("seq_length", "batch_size", "input_size", "hidden_size"))
    D = Extent("num_directions")
    state = (D, N, H) if layout == 0 else (N, D, H)
    shapes = {
        "X": (T, N, I) if layout == 0 else (N, T, I),
        "W": (D, Extent("hidden_size", gates), I),
        "R": (D, Extent("hidden_size", gates), H),
        "B": (D, Extent("hidden_size", 2 * gates)),
        "sequence_lens": (N,),
        "P": (D, Extent("hidden_size", len(cell.peepholes))),
    }
    shapes |= {name: state for name in operator.inputs if name.startswith("initial_")}
    return {name: shapes[name] for name in operator.inputs}


def shapes_of(subject: Subject) -> dict[str, tuple[Extent, ...]]:
    """By input, the shape that the document prints for it in the node's layout."""
    return formal_shapes(subject.operator, 1 if subject.chosen("layout") == 1 else 0)


def _shapes(subject: Subject) -> Iterator[Outcome]:
    layout = subject.chosen("layout") or 0
    formal = formal_shapes(subject.operator, layout)
    if layout not in _LAYOUTS:  # where the batch is nobody can say
        formal = {name: shape for name, shape in formal.items() if Extent("batch_size") not in shape}
    known: dict[str, Known] = {}
    directions = _directions(subject)
    if directions is not None:
        how = f"direction is {subject.chosen('direction')}"
        known["num_directions"] = Known(directions, how)
    yield from agreement(subject, formal, known)


def _steps(subject: Subject) -> int | None:
    """seq_length, where X's shape says it."""
    X, layout = subject.inputs.get("X"), subject.chosen("layout") or 0
    if X is None or X.shape is None or len(X.shape) != 3 or layout not in _LAYOUTS or not X.type.certain:
        return None
    extent = X.shape[layout]
    return extent if isinstance(extent, int) else None


def open_features(subject: Subject) -> frozenset[str]:
    """The features by which the document's open clauses know their cases, of a node that breaks none.

    They come from the attributes, from what is given and, where they are constant, from the lengths. So the sizes do
    not matter, and the node is looked at with sizes of two.
    """
    operator = subject.operator
    values = {name: subject.given(name) for name in subject.attributes}
    if values.get("hidden_size") is not None:
        values["hidden_size"] = 2
    D = _directions(subject) or 1
    layout = 1 if subject.chosen("layout") == 1 else 0
    sizes = {"seq_length": 3, "batch_size": 2, "input_size": 2, "hidden_size": 2, "num_directions": D}
    shapes = {
        name: tuple(extent.times * sizes[extent.size] for extent in shape)
        for name, shape in formal_shapes(operator, layout).items()
    }
    arrays: dict[str, NDArray[Any]] = {name: np.zeros(shapes[name], np.float32) for name in subject.inputs}
    if "sequence_lens" in arrays:
        arrays["sequence_lens"] = _lengths_like(subject)
    given = [formal for formal, name in zip(operator.outputs, subject.outputs, strict=False) if name]
    try:
        node = Node(operator.op_type, operator.since_version, values, tuple(given), operator.domain)
        return node_features(node, arrays) - _OF_SIZES
    except (IllegalNode, KeyError, TypeError, ValueError):
        return frozenset()


_OF_SIZES = frozenset({"size-one", "size-zero", "no-rows", "no-steps", "several-rows", "unsorted"})
"""Features that would be those of the stand-in."""


def _lengths_like(subject: Subject) -> NDArray[np.int32]:
    """Two lengths of at most three that are like the node's own: short if those are or may be, zero if one is."""
    steps = _steps(subject)
    try:
        own = subject.lengths()
    except NotConstant:
        return np.array([3, 1], np.int32)
    if own is not None and own[0] == 0:
        return np.array([3, 0], np.int32)
    return np.array([3, 3 if own in (None, (steps, steps)) else 1], np.int32)
