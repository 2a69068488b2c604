"""Nodes as models contain them, which may be illegal, and what a version of an operator allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from ..documents.operators import OperatorVersion, UnknownOperator, document_of, operator_version
from ..documents.tensors import HIDDEN_SIZE, ShapeError, sizes_of_shapes, units_place
from .cell import Cell, cell_of

if TYPE_CHECKING:
    from ..numbers.affine import Codec


class IllegalNode(ValueError):
    """The document of the operator version does not allow this node. ``clause`` names the clause that it breaks."""

    def __init__(self, clause: str, message: str) -> None:
        super().__init__(message)
        self.clause = clause


@dataclass(frozen=True)
class Node:
    """Node of a model: operator version, written attributes, requested outputs.

    codecs
        Of inputs that come through DequantizeLinear and outputs that go through QuantizeLinear: the node is judged
        together with these, and such tensors are arrays of levels.
    exact
        Whether no conforming implementation that follows the default interpretations rounds any number between the
        node's inputs and outputs: their error bound is then 0. That depends on the inputs; tests prove it.

    Raise UnknownOperator for an operator version that does not exist, and IllegalNode for attributes and outputs that
    it does not define: nothing is accepted and ignored.
    """

    op_type: str
    since_version: int
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    outputs: tuple[str, ...] = ("Y",)
    domain: str = ""
    codecs: Mapping[str, Codec] = field(default_factory=dict, hash=False)
    exact: bool = False

    def __post_init__(self) -> None:
        operator = self.operator
        object.__setattr__(self, "attributes", MappingProxyType(dict(self.attributes)))
        object.__setattr__(self, "codecs", MappingProxyType(dict(self.codecs)))
        # An empty string only keeps the place of an output that is not asked for.
        object.__setattr__(self, "outputs", tuple(name for name in self.outputs if name))
        for name in self.attributes:
            if name not in operator.attributes:
                raise IllegalNode(clause_of(self, "attributes"), f"{operator.name} defines no attribute {name!r}")
        for name in self.outputs:
            if name not in operator.outputs:
                raise IllegalNode(clause_of(self, "outputs"), f"{operator.name} defines no output {name!r}")
        for name in operator.outputs:
            if name in operator.required_outputs and name not in self.outputs:
                raise IllegalNode(clause_of(self, "outputs"), f"{operator.name} demands output {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as plain dictionaries: views that cannot be written to are not."""
        attributes, codecs = dict(self.attributes), dict(self.codecs)
        return Node, (self.op_type, self.since_version, attributes, self.outputs, self.domain, codecs, self.exact)

    @property
    def operator(self) -> OperatorVersion:
        return operator_version(self.op_type, self.since_version, self.domain)

    @cached_property
    def key(self) -> tuple[object, ...] | None:
        """The key that tells this node from others; None for attributes of kinds that no model holds. Their text is
        compared, since 0.0 equals -0.0 and 1 equals True."""
        if not all(_plain(value) for value in self.attributes.values()):
            return None
        described = repr(sorted(self.attributes.items()))
        return self.op_type, self.since_version, self.domain, self.outputs, described, tuple(self.codecs.items())

    @property
    def bits(self) -> int:
        """Bits of the levels of outputs, else of X, else of any tensor with levels; 0 for a node of numbers."""
        for names in (self.outputs, ("X",), tuple(self.codecs)):
            widest = max((self.codecs[name].bits for name in names if name in self.codecs), default=0)
            if widest:
                return widest
        return 0


def _plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(each, str | bytes | int | float) for each in value)
    return isinstance(value, str | bytes | int | float)


def clause_of(node: Node, topic: str) -> str:
    return f"{document_of(node.op_type, node.domain).prefix}.{topic}"


def cell_of_version(operator: OperatorVersion) -> Cell:
    return cell_of(operator.op_type, operator.domain) or cell_named(f"{operator.domain}::{operator.op_type}")


def cell_named(op_type: str) -> Cell:
    """Return the cell of an operator, by its name. Raise UnknownOperator if it has none."""
    document = document_of(op_type)
    cell = cell_of(document.op_type, document.domain)
    if cell is None:
        raise UnknownOperator(f"{document.title} has no cell: it is no recurrent operator like ONNX's")
    return cell


Illegal = Callable[[str, str], IllegalNode]
"""A function from the topic of a clause and a message to the error that is raised."""


def require_inputs(operator: OperatorVersion, inputs: Mapping[str, NDArray[Any]], illegal: Illegal) -> None:
    """Raise IllegalNode for unknown and missing inputs, and for wrong types: those that the document has not, and two
    of one kind."""
    for name in inputs:
        if name not in operator.inputs:
            raise illegal("inputs", f"no input {name!r} is defined")
    for name in operator.inputs:
        if name in operator.required and name not in inputs:
            raise illegal("inputs", f"input {name} is missing")
    first: dict[str, str] = {}
    for name in filter(inputs.__contains__, operator.inputs):
        type, allowed = inputs[name].dtype.name, operator.types_of(name)
        if type not in allowed:
            raise illegal("types", f"{name} is {' or '.join(allowed)}, not {type}")
        other = first.setdefault(operator.kind_of(name), name)
        if inputs[other].dtype.name != type:
            raise illegal("types", f"{name} is {type} while {other} is {inputs[other].dtype.name}")


def sizes_of_inputs(
    node: Node, inputs: Mapping[str, NDArray[Any]], directions: int, layout: int, illegal: Illegal
) -> tuple[int, int, int, int]:
    """Return T, N, I and H from the description of each tensor. Raise IllegalNode for wrong shapes and hidden_size."""
    shapes = {name: array.shape for name, array in inputs.items()}
    place = units_place(node.operator.tensors, node.operator.inputs)
    assert place is not None
    units, stated = shapes[place[0]][place[1] :][:1], node.attributes.get("hidden_size")
    if stated is not None and units and units != (stated,):
        raise illegal("hidden-size", f"hidden_size is {stated}, but {place[0]} has shape {shapes[place[0]]}")
    try:
        sizes = sizes_of_shapes(node.operator.tensors, shapes, {"num_directions": directions}, layout)
    except ShapeError as error:
        raise illegal("shapes", str(error)) from None
    return sizes["seq_length"], sizes["batch_size"], sizes["input_size"], sizes[HIDDEN_SIZE]


def text_of(value: Any) -> str:
    """Return an attribute of text, which models hold as bytes."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


class Written(Protocol):
    """A node that may violate its document."""

    @property
    def operator(self) -> OperatorVersion: ...
    @property
    def attributes(self) -> Collection[str]:
        """Names of the attributes that the node has."""

    @property
    def inputs(self) -> Collection[str]:
        """Formal names of the inputs that the node has."""

    def given(self, name: str) -> Any:
        """Return the value of an attribute; None if it is absent or of the wrong kind."""

    def chosen(self, name: str) -> Any:
        """Return the value of an attribute, or its default."""


class Diagnostic(NamedTuple):
    """A violation of a document: the topic of the clause, and a message."""

    topic: str
    message: str


class StatedSize(NamedTuple):
    """A size that an attribute states: its value, and the attribute in words."""

    value: int
    by: str


@dataclass(frozen=True)
class Steps:
    """One direction of a node, step by step in processing order.

    positions
        (T, N): which position of X each row processes at each step.
    lengths
        (N,): how many of these steps each row has; those after them are padding.
    numbers
        Name to (T, N, H): the gates in the order of the cell's blocks, then its inner states (``C``), then ``H``.
    """

    direction: str
    positions: NDArray[np.int64]
    lengths: NDArray[np.int64]
    numbers: Mapping[str, NDArray[np.float64]] = field(hash=False)


def output_type(computation: Any, output: str) -> np.dtype[Any]:
    """Return the type of an output's array: that of all tensors, unless the computation defines ``dtype_of``."""
    dtype: np.dtype[Any] = getattr(computation, "dtype_of", lambda output: computation.format.dtype)(output)
    return dtype
