"""Invalid attribute values of ONNX's recurrent operators, independent of the rest of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..numbers.activations import kind_named
from ..recurrent.cell import Cell
from .written import Diagnostic, StatedSize, Written

_DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def diagnostics(written: Written, cell: Cell) -> Iterator[Diagnostic]:
    """Yield the violations in a node's attributes."""
    direction = written.given("direction")
    if direction is not None and direction not in _DIRECTIONS:
        yield Diagnostic("direction", f"direction is {direction!r}, none of forward, reverse and bidirectional")
    layout = written.given("layout")
    if layout is not None and layout not in (0, 1):
        yield Diagnostic("layout", f"layout is {layout}, for which no shapes are defined: it is 0 or 1")
    yield from _activations(written, cell)
    clip = written.given("clip")
    if clip is not None and not clip >= 0:
        yield Diagnostic("clip", f"clip is {clip:g}: the range from -clip to clip is empty")
    coupled = written.given("input_forget")
    if coupled is not None and coupled not in (0, 1):
        yield Diagnostic("input-forget", f"input_forget is {coupled}, neither 0 nor 1")


def _activations(written: Written, cell: Cell) -> Iterator[Diagnostic]:
    names = written.given("activations")
    per_direction, directions = len(cell.activations), _DIRECTIONS.get(written.chosen("direction"))
    count = len(names) if names is not None else None
    if count is not None and directions is not None and count != per_direction * directions:
        need = "both directions need" if directions == 2 else "one direction needs"
        yield Diagnostic("activations", f"activations are {count} names; {need} {per_direction * directions}")
    for name in dict.fromkeys(names or ()):
        if kind_named(name) is None:
            message = f"activations name {name!r}, none of the functions that the document defines"
            yield Diagnostic("activations", message)
    for coefficient in ("activation_alpha", "activation_beta"):
        values = written.given(coefficient) or ()
        expected = count if count is not None else per_direction * (directions or 2)
        if len(values) > expected:
            message = f"{coefficient} has {len(values)} entries for {expected} activations"
            yield Diagnostic(coefficient.replace("_", "-"), message)


def stated_sizes(written: Written) -> Mapping[str, StatedSize]:
    """Return the number of directions, where the direction is valid."""
    directions = _DIRECTIONS.get(written.chosen("direction"))
    if directions is None:
        return {}
    return {"num_directions": StatedSize(directions, f"direction is {written.chosen('direction')}")}
