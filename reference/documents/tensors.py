"""Inputs and outputs as documents describe them, as data.

Shapes, rules on types and sizes, and the axes of a node in a model follow from it. Sizes have the documents' names:
seq_length, batch_size, input_size, hidden_size, num_directions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from msgspec import Struct

HIDDEN_SIZE = "hidden_size"
INPUT_SIZE = "input_size"
SEQ_LENGTH = "seq_length"

LENGTHS = "T1"
"""The type parameter of sequence_lens, as ONNX's documents call it."""


class Extent(Struct, frozen=True):
    """An extent of a formal shape: times * factor * size + plus.

    size
        Name of a size; empty for a constant, which is `plus` alone.
    factor
        Name of a second size, by which the first is multiplied; empty for none.
    or_factor
        Name of a third size: the greater one of it and the factor counts; empty for none.
    """

    size: str
    times: int = 1
    plus: int = 0
    factor: str = ""
    or_factor: str = ""

    def __str__(self) -> str:
        if not self.size:
            return str(self.plus)
        times = [str(self.times)] if self.times != 1 else []
        factor = f"max({self.factor}, {self.or_factor})" if self.or_factor else self.factor
        product = "*".join([*times, *([factor] if factor else []), self.size])
        return f"{product} {'+' if self.plus > 0 else '-'} {abs(self.plus)}" if self.plus else product

    @property
    def plain(self) -> bool:
        """Whether it is a size itself."""
        return self == Extent(self.size) and bool(self.size)

    @property
    def names(self) -> frozenset[str]:
        """The names of all sizes that it is made of."""
        return self.factors | ({self.size} - {""})

    @property
    def factors(self) -> frozenset[str]:
        """The names of the sizes by which its size is multiplied."""
        return frozenset({self.factor, self.or_factor} - {""})

    def multiple(self, sizes: Mapping[str, int]) -> int:
        """Return the number by which its size is multiplied. Raises KeyError for a size that they lack."""
        return self.times * max((sizes[name] for name in self.factors), default=1)

    def value(self, sizes: Mapping[str, int]) -> int:
        """Return the extent for given sizes. Raises KeyError for a size that they lack."""
        return self.multiple(sizes) * sizes[self.size] + self.plus if self.size else self.plus

    def known(self, sizes: Mapping[str, int]) -> int | None:
        """Return the extent for given sizes; None for sizes that they lack."""
        return self.value(sizes) if self.names <= sizes.keys() else None

    def solved(self, actual: int, sizes: Mapping[str, int]) -> int | None:
        """Return the size for which it is `actual`; None where there is none, or several, or its factor is not
        known."""
        factor = self.multiple(sizes) if self.factors <= sizes.keys() else 0
        if not self.size or not factor or (actual - self.plus) % factor or actual < self.plus:
            return None
        return (actual - self.plus) // factor


ONE = Extent("", plus=1)
"""The extent that is always 1."""

Shape = tuple[Extent, ...]


class Levels(Struct, frozen=True):
    """Codec of integers, each of which stands for (level - zero point) * scale. Channels are the last axis.

    scale, zero_point
        Names of their inputs: one number for a whole direction, or one for each channel, as their shapes say.
    """

    scale: str
    zero_point: str


class Dynamic(Struct, frozen=True):
    """A codec: numbers that the operator itself quantizes, by their range, whenever it runs."""

    bits: int = 8


class Stated(Struct, frozen=True):
    """Codec of numbers that the operator itself quantizes, by attributes of the node.

    scale, zero_point
        Names of the attributes.
    """

    scale: str
    zero_point: str
    bits: int = 16


@dataclass(frozen=True)
class TensorForm:
    """Form of one input or output in a document.

    shapes
        As the document prints them; several if it allows several ranks, or several extents of an axis.
    batch_first
        The shape in layout 1, if it differs.
    kind
        Its type parameter: tensors of one kind have one type.
    codec
        Meaning of its elements; None for plain numbers.
    axes
        Names of the axes in messages (``channel``); default: those of the sizes.
    """

    name: str
    shapes: tuple[Shape, ...]
    batch_first: Shape | None = None
    kind: str = "T"
    codec: Levels | Dynamic | Stated | None = None
    axes: tuple[str, ...] = ()

    def shape(self, layout: int = 0, rank: int | None = None) -> Shape:
        """Return the shape in a layout; of several the first of that rank, or else the first."""
        if layout == 1 and self.batch_first is not None:
            return self.batch_first
        return next((shape for shape in self.shapes if len(shape) == rank), self.shapes[0])

    def options(self, rank: int, layout: int = 0) -> tuple[tuple[Extent, ...], ...]:
        """Return for each axis of a shape of that rank the extents that it may have; nothing for another rank."""
        of_layout = self.shapes if layout != 1 or self.batch_first is None else (self.batch_first,)
        shapes = [shape for shape in of_layout if len(shape) == rank]
        return tuple(tuple(dict.fromkeys(extents)) for extents in zip(*shapes, strict=True))

    @property
    def rows(self) -> bool:
        """Whether it has a row for each sequence of the batch."""
        return any(extent.size == "batch_size" for extent in self.shapes[0])


def units_place(forms: Mapping[str, TensorForm], names: Iterable[str]) -> tuple[str, int] | None:
    """Return the input that determines hidden_size, and its axis: the weights of states, with a row and a column for
    each unit. None if there is none."""
    for name in names:
        shape = forms[name].shapes[0] if name in forms else ()
        if Extent(HIDDEN_SIZE) in shape and {extent.size for extent in shape} <= {"num_directions", HIDDEN_SIZE}:
            return name, max(axis for axis, extent in enumerate(shape) if extent == Extent(HIDDEN_SIZE))
    return None


def by_name(forms: Iterable[TensorForm]) -> Mapping[str, TensorForm]:
    """Forms by the names of their tensors."""
    return {form.name: form for form in forms}


def recurrent_forms(gates: int, peepholes: int = 0, inner: tuple[str, ...] = ()) -> Mapping[str, TensorForm]:
    """Return the tensors of ONNX's recurrent operators.

    gates, peepholes
        Number of blocks of W, R and B, and of P.
    inner
        Names of the states beside h.
    """
    T, N, I, H = (Extent(name) for name in ("seq_length", "batch_size", INPUT_SIZE, HIDDEN_SIZE))
    D = Extent("num_directions")
    states = [f"{kind}_{name}" for name in ("h", *inner) for kind in ("initial", "Y")]
    return by_name([
        TensorForm("X", ((T, N, I),), (N, T, I)),
        TensorForm("W", ((D, Extent(HIDDEN_SIZE, gates), I),)),
        TensorForm("R", ((D, Extent(HIDDEN_SIZE, gates), H),)),
        TensorForm("B", ((D, Extent(HIDDEN_SIZE, 2 * gates)),)),
        TensorForm("sequence_lens", ((N,),), kind=LENGTHS),
        *([TensorForm("P", ((D, Extent(HIDDEN_SIZE, peepholes)),))] if peepholes else []),
        TensorForm("Y", ((T, D, N, H),), (N, T, D, H)),
        *(TensorForm(name, ((D, N, H),), (N, D, H)) for name in states),
    ])  # fmt: skip


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


def sizes_known(extents: Iterable[tuple[Extent, object]], stated: Mapping[str, int]) -> dict[str, int]:
    """Return the stated sizes, and those that follow from extents and their values, where these are numbers.

    Contradictions are not found: the first value of a size counts.
    """
    sizes, numbers = dict(stated), [(extent, actual) for extent, actual in extents if isinstance(actual, int)]
    for _ in range(2):  # a factor may be known only behind the extent that it is part of
        for extent, actual in numbers:
            size = extent.solved(actual, sizes)
            if size is not None:
                sizes.setdefault(extent.size, size)
    return sizes


def shape_of(form: TensorForm, sizes: Mapping[str, int], layout: int = 0) -> tuple[int, ...]:
    """Return the shape of a tensor for given sizes. Raises ShapeError for a size that nothing says."""
    try:
        return tuple(extent.value(sizes) for extent in form.shape(layout))
    except KeyError as error:
        raise ShapeError(f"nothing says how large {error.args[0]} is, a size of {form.name}") from None


def _options(form: TensorForm, shape: tuple[int, ...], layout: int) -> tuple[tuple[Extent, ...], ...]:
    ranks = dict.fromkeys(len(formal) for formal in form.shapes)
    if len(shape) not in ranks:
        raise ShapeError(f"{form.name} has {len(shape)} dimensions, not {' or '.join(map(str, ranks))}")
    return form.options(len(shape), layout)


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


QUANTIZE, DEQUANTIZE = "QuantizeLinear", "DequantizeLinear"

_PREFIXES: Mapping[str, str] = {
    "": "",
    "ai.onnx": "",
    "com.microsoft": "",
    "com.amd.quark": "Extended",
    "com.vai.quantize": "Vitis",
}
"""The prefix of ONNX's names in each domain."""


def quantizes(domain: str, op_type: str) -> str:
    """Return QUANTIZE or DEQUANTIZE for an operator that does one of them; empty for any other operator."""
    prefix = _PREFIXES.get(domain)
    if prefix is None or not op_type.startswith(prefix):
        return ""
    name = op_type.removeprefix(prefix)
    return name if name in (QUANTIZE, DEQUANTIZE) else ""


def quantizer_in(domain: str, name: str) -> str:
    """Return a domain's operator for QUANTIZE or DEQUANTIZE. Raise KeyError for a domain that has none."""
    return _PREFIXES[domain] + name
