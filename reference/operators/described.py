"""Operators that follow from their description: no scan, no cell, no state but what inputs and outputs carry.

Their document (names, types, shapes with sizes by name, rules) says which nodes are legal, and ``equations`` and
``radii`` what they compute. What breaks the form, the faults of optional inputs, outputs and enumerated attributes
(:mod:`..faults.derived`) and most cases (``onnxspec.cases.simple``) are derived.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..documents.interpretations import Interpretations
from ..documents.operators import Needed, OperatorVersion, UnknownOperator
from ..documents.sizes import ShapeError, sizes_of_shapes
from ..faults.computing import Computed
from ..faults.derived import await_derived, topic_of_name
from ..numbers.accuracy import budget
from ..numbers.bounded import Bounded
from ..numbers.formats import FORMATS, Format
from ..recurrent.node import IllegalNode, Node
from .operator import Conforming, Operator
from .written import Diagnostic, Said, Written

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Outputs = dict[str, Array]


_KINDS: Mapping[str, Any] = {
    "INT": (int, np.integer), "FLOAT": (int, float, np.number), "STRING": (str, bytes),
    "INTS": (list, tuple), "FLOATS": (list, tuple), "STRINGS": (list, tuple),
}  # fmt: skip
"""By the kind of an attribute the classes of its values."""


@dataclass(frozen=True)
class Described(Computed):
    """A node with its inputs, resolved.

    operator
        The version of the node.
    inputs
        Arrays by formal name, those that are there.
    attributes
        Values by name; of those that the node leaves out the defaults.
    interpretations
        The meanings that open questions have.
    equations
        From this computation to all outputs in float64. A fault replaces it, or inputs, or attributes.
    bounds
        From this computation, its outputs and the name of an accuracy class to the radius of each number. Infinite
        where nothing can be said.
    """

    operator: OperatorVersion
    inputs: Arrays = field(hash=False)
    attributes: Mapping[str, Any] = field(hash=False)
    interpretations: Interpretations
    equations: Callable[[Described], Outputs]
    bounds: Callable[[Described, Outputs, str], Outputs]

    @cached_property
    def sizes(self) -> Mapping[str, int]:
        """All sizes by name."""
        said = {size: self.attributes[name] for size, name in self.operator.rules.sizes.items()}
        shapes = {name: array.shape for name, array in self.inputs.items()}
        said = {size: int(n) for size, n in said.items()}
        return sizes_of_shapes(self.operator.tensors, shapes, said, self.layout)

    @property
    def layout(self) -> int:  # type: ignore[override]
        """1 where an attribute selects the second shape of tensors."""
        return int(self.attributes.get(self.operator.rules.layout) == 1)

    def wide(self, name: str) -> NDArray[np.float64] | None:
        """Return an input in float64; None for one that is not there."""
        array = self.inputs.get(name)
        return None if array is None else array.astype(np.float64)

    def format_of(self, name: str) -> Format:
        """Return the format of an input or output: that of its kind, or of T where no input has that kind."""
        kind = self.operator.kind_of(name)
        there = [array for each, array in self.inputs.items() if self.operator.kind_of(each) == kind]
        return FORMATS[there[0].dtype.name] if there else self.format

    @property
    def format(self) -> Format:
        """The format of the tensors of type T."""
        first = next(name for name in self.operator.inputs if self.operator.kind_of(name) == "T")
        return FORMATS[self.inputs[first].dtype.name]

    def dtype_of(self, output: str) -> np.dtype[Any]:
        """See :meth:`Computed.dtype_of`."""
        return self.format_of(output).dtype

    def plain(self, observed: Any = None) -> Outputs:
        """See :meth:`Computed.plain`."""
        return self.equations(self)

    def bounded(self, accuracy: str, observed: Arrays) -> dict[str, Bounded]:
        """See :meth:`Computed.bounded`: nothing here starts from what was reported."""
        outputs = self.equations(self)
        radii = self.bounds(self, outputs, accuracy)
        numbers = {}
        for name, value in outputs.items():
            allowed = budget(accuracy, self.format_of(name).name)
            open_ones = ~(np.isfinite(value) & np.isfinite(radii[name]))
            value, radius = (np.where(open_ones, 0.0, each) for each in (value, radii[name]))
            doubt = open_ones if open_ones.any() else None
            numbers[name] = Bounded.in_range(value, radius, doubt, np.abs(value) + radius, allowed)
        return numbers

    def with_input(self, name: str, altered: Described) -> Described:
        """See :meth:`Computed.with_input`."""
        return with_inputs(self, **{name: altered.inputs.get(name)})


def with_inputs(c: Described, **changed: Array | None) -> Described:
    """Return the computation with some inputs replaced; None takes one away."""
    inputs = {**c.inputs, **changed}
    return replace(c, inputs={name: array for name, array in inputs.items() if array is not None})


def with_attributes(c: Described, **changed: Any) -> Described:
    """Return the computation with other values of attributes."""
    return replace(c, attributes={**c.attributes, **changed})


def with_equations(c: Described, equations: Callable[[Described], Outputs]) -> Described:
    """Return the computation with other equations."""
    return replace(c, equations=equations)


class DescribedOperator(Operator):
    """An operator that follows from its description; see :class:`.operator.Operator`."""

    def __init__(self) -> None:
        self.conforming = {"float64": Conforming(lambda node, inputs: self.answer(node, inputs))}

    @abstractmethod
    def equations(self, c: Described) -> Outputs:
        """Return all outputs in float64."""

    @abstractmethod
    def radii(self, c: Described, outputs: Outputs, accuracy: str) -> Outputs:
        """Return how far a right implementation may be from each number of `outputs`; infinity where nothing can be
        said."""

    def check(self, c: Described) -> None:
        """Raise IllegalNode for what the document forbids beyond its form; see :meth:`illegal`."""

    def illegal(self, topic: str, message: str) -> IllegalNode:
        """Return the error that names a clause by its topic."""
        return IllegalNode(f"{self.document.prefix}.{topic}", f"{self.document.title}: {message}")

    def registered(self) -> None:
        """Register the derived faults, once faults are asked for."""
        await_derived(self.document)

    def resolve(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Described:
        """See :meth:`.operator.Operator.resolve`."""
        version = node.operator
        there = {name: array for name, array in inputs.items() if array is not None}
        self._check_inputs(version, there)
        for name, value in node.attributes.items():
            if not isinstance(value, _KINDS[version.attributes[name]]):
                raise self.illegal("attributes", f"attribute {name} is {value!r}, not {version.attributes[name]}")
        attributes = {**version.defaults, **node.attributes}
        if unjudged := version.unjudged(attributes.get):
            raise UnknownOperator(f"{self.document.title}: {unjudged}")
        for topic, message in breaches(version, attributes.get, node.attributes, there):
            raise self.illegal(topic, message)
        c = Described(version, there, attributes, interpretations or Interpretations(), self.equations, self.radii)
        try:
            c.sizes  # noqa: B018 - worked out to see that they agree
        except ShapeError as error:
            raise self.illegal("shapes", str(error)) from None
        except KeyError as error:
            raise self.illegal("attributes", f"attribute {error.args[0]} is missing") from None
        self.check(c)
        return c

    def _check_inputs(self, version: OperatorVersion, inputs: Arrays) -> None:
        """Raise IllegalNode for inputs that the document does not have, lacks, or has in other types."""
        for name in inputs:
            if name not in version.inputs:
                raise self.illegal("inputs", f"no input {name!r} is defined")
        for name in version.inputs:
            if name in version.required and name not in inputs:
                raise self.illegal("inputs", f"input {name} is missing")
        first: dict[str, str] = {}
        for name in filter(inputs.__contains__, version.inputs):
            type, allowed = inputs[name].dtype.name, version.types_of(name)
            if type not in allowed:
                raise self.illegal("types", f"{name} is {' or '.join(allowed)}, not {type}")
            other = first.setdefault(version.kind_of(name), name)
            if inputs[other].dtype.name != type:
                raise self.illegal("types", f"{name} is {type} while {other} is {inputs[other].dtype.name}")

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        """See :meth:`.operator.Operator.diagnostics`."""
        for topic, message in breaches(written.operator, written.chosen, written.attributes, written.inputs):
            yield Diagnostic(topic, message)

    def sizes_said(self, written: Written) -> Mapping[str, Said]:
        """Return the sizes that attributes say."""
        values = {size: (name, written.chosen(name)) for size, name in written.operator.rules.sizes.items()}
        return {size: Said(n, f"{name} is {n}") for size, (name, n) in values.items() if isinstance(n, int)}


def breaches(
    version: OperatorVersion, chosen: Callable[[str], Any], written: Any, inputs: Any
) -> Iterator[tuple[str, str]]:
    """Yield what breaks the rules of a version: the topic of a clause, and a message.

    chosen
        From an attribute to its value, its default where it is left out.
    written, inputs
        The attributes that are written down, and the inputs that are there, by name.
    """
    op = version.known_as
    for name, values in version.rules.choices.items():
        value = chosen(name)
        if name in written and value is not None and value not in values:
            yield topic_of_name(op, name, "attributes"), f"{name} is {value!r}, none of {', '.join(values)}"
    for name, attribute in version.rules.sizes.items():
        value = chosen(attribute)
        if value is None and attribute not in written:
            yield "attributes", f"attribute {attribute} is missing, which says {name}"
        elif isinstance(value, int) and value < 1:
            yield topic_of_name(op, attribute, "attributes"), f"{attribute} is {value}: it counts from 1"
    for name, needed in version.rules.needed.items():
        value = chosen(needed.attribute)
        if value in needed.values and name not in inputs:
            yield "inputs", f"input {name} is missing, which {needed.attribute} {value!r} needs"
        elif needed.refused and value in _others(version, needed) and name in inputs:
            yield "inputs", f"input {name} has no meaning with {needed.attribute} {value!r}"


def _others(version: OperatorVersion, needed: Needed) -> frozenset[str]:
    """Return the values of an attribute with which an input has no meaning: one that there is not is another breach."""
    return frozenset(version.rules.choices.get(needed.attribute, ())) - {*needed.values}
