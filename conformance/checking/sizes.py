"""Sizes: whether the shapes of a node's inputs fit the shapes in its document, with one number for each size.

A document prints shapes with letters: W is [num_directions, 4*hidden_size, input_size]. Every known extent gives a
value for its letter. The most frequent value is taken, so that one wrong tensor is one problem, and the message names
that tensor. States whose axes are in the order of the other layout are one problem, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...reference.documents.tensors import HIDDEN_SIZE, Extent, Shape, units_place
from ...reference.recurrent.node import StatedSize
from ..models.inference import undetermined
from ..models.tensor_type import Dimension
from ..text import listed
from .subject import Broken, Input, Missing, NodeSubject, Outcome


@dataclass(frozen=True)
class _Evidence:
    """The value that one extent gives for a size; in the extent, factors have the numbers from attributes."""

    value: Dimension
    input: Input
    axis: int
    extent: Extent


def printed_extents(subject: NodeSubject, formal: Mapping[str, Shape]) -> Iterator[tuple[Extent, Dimension]]:
    """Yield the printed extents of a node's inputs with the actual ones, where ranks agree."""
    for name, shape in formal.items():
        source = subject.inputs.get(name)
        if source is not None and source.shape is not None and len(source.shape) == len(shape):
            yield from zip(shape, source.shape, strict=True)


def fits(shape: tuple[Dimension, ...], printed: Shape, sizes: Mapping[str, int]) -> bool:
    """Return whether a shape may be a printed one, as far as both are known."""
    pairs = [(actual, extent.known(sizes)) for extent, actual in zip(printed, shape, strict=False)]
    return len(shape) == len(printed) and all(v is None or not isinstance(a, int) or a == v for a, v in pairs)


def in_words(shape: tuple[Dimension, ...] | None) -> str:
    """Return a shape as text, with a question mark for an unknown extent."""
    if shape is None:
        return "of unknown rank"
    inner = ", ".join(str(extent) if isinstance(extent, int) or is_named(extent) else "?" for extent in shape)
    return f"({inner}{',' if len(shape) == 1 else ''})"


def is_named(extent: object) -> bool:
    """Return whether the model's inputs leave an extent open; names made up by shape inference do not count."""
    return isinstance(extent, str) and not extent.startswith("unk__")


def agreement(
    subject: NodeSubject,
    formal: Mapping[str, Shape],
    known: Mapping[str, StatedSize],
) -> Iterator[Outcome]:
    """Yield contradictions between the shapes of a node's inputs, and missing facts.

    formal
        By input, the shape that its document prints.
    known
        By size, the value that the node itself states; it takes precedence.
    """
    units_axis = units_place(subject.operator.tensors, formal)
    units = _units(subject, formal, units_axis) if units_axis is not None else None
    if isinstance(units, StatedSize):
        known = {**known, HIDDEN_SIZE: units}
    elif units is not None:
        yield units
    settled = units_axis if isinstance(units, Broken) else None
    evidence: dict[str, list[_Evidence]] = {}
    for name, shape in formal.items():
        source = subject.inputs.get(name)
        if source is None:
            continue
        if source.shape is None:
            if any(_others(formal, extent.size, name, subject, known) for extent in shape):
                yield Missing("shapes", f"the shape of {name}: {undetermined(source.scope, source.given)}")
            continue
        if len(source.shape) != len(shape):
            message = f"{name} has shape {in_words(source.shape)}: it must have {len(shape)} dimensions"
            yield Broken("shapes", f"{message}, [{', '.join(map(str, shape))}]", source.type.certain)
            continue
        for axis, (extent, actual) in enumerate(zip(shape, source.shape, strict=True)):
            if (name, axis) == settled:
                continue
            if not extent.size:
                if isinstance(actual, int) and actual != extent.plus:
                    message = f"{name} has shape {in_words(source.shape)}: dimension {axis} must be {extent}"
                    yield Broken("shapes", message, source.type.certain)
                continue
            if not extent.factors <= known.keys():
                continue
            times = extent.multiple({size: stated.value for size, stated in known.items()})
            extent = Extent(extent.size, times, extent.plus)
            value = actual if extent.plain else None
            if isinstance(actual, int):
                value = extent.solved(actual, {})
                if value is None:
                    message = f"dimension {axis} of {name} is {actual}, which is no multiple of {extent.times}"
                    yield Broken("shapes", f"{message}: it must be {formal[name][axis]}", source.type.certain)
                    continue
            evidence.setdefault(extent.size, []).append(_Evidence(value, source, axis, extent))
    for size, saying in evidence.items():
        yield from _compared(size, saying, known.get(size), formal)


def _units(
    subject: NodeSubject, formal: Mapping[str, Shape], place: tuple[str, int]
) -> StatedSize | Missing | Broken | None:
    """Return the outcome of comparing hidden_size with the input that has it; None if one of the two is absent."""
    name, axis = place
    hidden_size, by = subject.given(HIDDEN_SIZE), subject.inputs.get(name)
    if hidden_size is None or by is None:
        return None
    counted = "columns" if axis == len(formal[name]) - 1 else f"numbers along axis {axis}"
    units = by.shape[axis] if by.shape is not None and len(by.shape) == len(formal[name]) else None
    if not isinstance(units, int):
        return Missing("hidden-size", f"how many {counted} {name} has")
    if units == hidden_size:
        return StatedSize(units, f"hidden_size is {units}, as {name} has {counted}")
    message = f"hidden_size is {hidden_size}, but {name} has {units} {counted}"
    return Broken("hidden-size", message, by.type.certain)


def _others(
    formal: Mapping[str, Shape], size: str, but: str, subject: NodeSubject, known: Mapping[str, StatedSize]
) -> bool:
    """Return whether the node or any other input states a size. If none does, no value can be wrong."""
    return size in known or any(
        name != but and name in subject.inputs and any(extent.size == size for extent in shape)
        for name, shape in formal.items()
    )


def _compared(
    size: str, saying: list[_Evidence], known: StatedSize | None, formal: Mapping[str, Shape]
) -> Iterator[Outcome]:
    votes = Counter(e.value for e in saying if isinstance(e.value, int) and e.input.type.certain)
    votes = votes or Counter(e.value for e in saying if isinstance(e.value, int))
    if known is not None:
        chosen, by, certain = known.value, known.by, True
    elif votes:
        chosen = max(votes, key=lambda value: votes[value])  # the first one if several are equally frequent
        first = next(e for e in saying if e.value == chosen)
        extent = formal[first.input.name][first.axis]
        by, certain = f"{first.input.name} has {extent} = {first.input.shape[first.axis]}", first.input.type.certain  # type: ignore[index]
    else:
        names = {e.value for e in saying}
        if len(saying) > 1 and (len(names) > 1 or None in names):
            yield Missing("shapes", f"whether {listed([e.input.name for e in saying])} have the same {size}")
        return
    open_ones = []
    for e in saying:
        if not isinstance(e.value, int):
            open_ones.append(e)
        elif e.value != chosen:
            shape = e.input.shape
            assert shape is not None
            extent = formal[e.input.name][e.axis]
            must = f"dimension {e.axis} is {extent}, so {e.extent.value({size: chosen})} ({by}), not {shape[e.axis]}"
            message = f"{e.input.name} has shape {in_words(shape)}: {must}"
            yield Broken("shapes", message, certain and e.input.type.certain)
    if open_ones and (known is not None or len(saying) > 1):
        have = "has" if len(open_ones) == 1 else "have"
        yield Missing("shapes", f"whether {listed([e.input.name for e in open_ones])} {have} {size} {chosen} too")


def swapped_states(subject: NodeSubject) -> Mapping[str, str]:
    """Return a message for each state whose first two axes are swapped, by X and the number of directions in W."""
    batch, W, layout = subject.sequence[1], subject.inputs.get("W"), subject.layout
    if batch is None or W is None or not W.shape or W.shape[0] in (None, batch):
        return {}
    swapped = (W.shape[0], batch) if layout == 1 else (batch, W.shape[0])
    messages = {}
    for name, state in subject.inputs.items():
        form = subject.operator.tensors.get(name)
        shape = state.shape or ()
        if name.startswith("initial_") and form is not None and len(shape) == 3 and shape[:2] == swapped:
            printed = f"[{', '.join(map(str, form.shape(layout)))}]"
            where = f" in layout {layout}" if "layout" in subject.operator.attributes else ""
            messages[name] = f"the first two axes of {name} {in_words(shape)} are swapped: {printed}{where}"
    return messages
