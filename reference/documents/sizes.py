"""Sizes of a node, from the shapes of its inputs and the forms that its document gives them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .tensors import Extent, TensorForm


class ShapeError(ValueError):
    """The shapes of a node's inputs are not those of its document; the text names the input."""


def sizes_of_shapes(
    forms: Mapping[str, TensorForm], shapes: Mapping[str, tuple[int, ...]], said: Mapping[str, int], layout: int = 0
) -> dict[str, int]:
    """Return all sizes by name.

    shapes
        Of the inputs that are there.
    said
        Sizes that something else than a shape says: nothing overrules them.

    Raises ShapeError.
    """
    sizes = dict(said)
    options = {name: _options(forms[name], shape, layout) for name, shape in shapes.items()}
    count = -1
    while count < len(sizes):  # a factor may be known only behind the extent that it is part of
        count = len(sizes)
        for name, shape in shapes.items():
            for axis, extents in enumerate(options[name]):
                if len(extents) == 1 and extents[0].size not in sizes:
                    _solve(name, axis, extents[0], shape[axis], sizes)
    for name, shape in shapes.items():
        for axis, extents in enumerate(options[name]):
            if shape[axis] not in [*_values(name, extents, sizes)]:
                must = " or ".join(_in_words(extent, sizes) for extent in extents)
                raise ShapeError(f"{name} has shape {shape}: dimension {axis} must be {must}")
    return sizes


def shape_of(form: TensorForm, sizes: Mapping[str, int], layout: int = 0) -> tuple[int, ...]:
    """Return the shape of a tensor for given sizes. Raises ShapeError for a size that nothing says."""
    try:
        return tuple(extent.value(sizes) for extent in form.shape(layout))
    except KeyError as error:
        raise ShapeError(f"nothing says how large {error.args[0]} is, a size of {form.name}") from None


def _options(form: TensorForm, shape: tuple[int, ...], layout: int) -> tuple[tuple[Extent, ...], ...]:
    options = form.options(len(shape), layout)
    if len(options) != len(shape):
        ranks = " or ".join(dict.fromkeys(str(len(formal)) for formal in form.shapes))
        raise ShapeError(f"{form.name} has {len(shape)} dimensions, not {ranks}")
    return options


def _solve(name: str, axis: int, extent: Extent, actual: int, sizes: dict[str, int]) -> None:
    """Add the size that an extent says, if it says one."""
    if not extent.size or not extent.factors <= sizes.keys():
        return
    size = extent.solved(actual, sizes)
    if size is not None:
        sizes[extent.size] = size
    elif extent.multiple(sizes):
        raise ShapeError(f"dimension {axis} of {name} is {actual}, which cannot be {extent}")


def _values(name: str, extents: tuple[Extent, ...], sizes: Mapping[str, int]) -> Iterator[int]:
    for extent in extents:
        try:
            yield extent.value(sizes)
        except KeyError as error:
            raise ShapeError(f"nothing says how large {error.args[0]} is, a size of {name}") from None


def _in_words(extent: Extent, sizes: Mapping[str, int]) -> str:
    return str(extent) if not extent.size else f"{extent} = {extent.value(sizes)}"
