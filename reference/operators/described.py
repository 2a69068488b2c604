"""Base of operators that are derived from a description: no scan over steps, no state except in inputs and outputs.

The document (names, types, shapes with named sizes, rules) says which nodes are legal. ``equations`` and ``radii``
compute the outputs and their error bounds. Violations of the form, most cases (``onnxspec.cases.simple``) and the
faults of optional inputs, outputs and enumerated attributes (:mod:`..faults.derived`) are derived.
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
from ..documents.tensors import ShapeError, sizes_of_shapes
from ..faults.computing import Computed
from ..faults.derived import await_derived, topic_of_name
from ..numbers.accuracy import FORMATS, Format, budget
from ..numbers.bounded import Bounded
from ..recurrent.node import Diagnostic, IllegalNode, Node, StatedSize, Written, require_inputs
from .operator import Conforming, Operator

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Outputs = dict[str, Array]


_KINDS: Mapping[str, Any] = {
    "INT": (int, np.integer), "FLOAT": (int, float, np.number), "STRING": (str, bytes),
    "INTS": (list, tuple), "FLOATS": (list, tuple), "STRINGS": (list, tuple),
}  # fmt: skip
"""Classes of an attribute's value, by the attribute's type."""


@dataclass(frozen=True)
class Described(Computed):
    """A resolved node with its inputs.

    operator
        The version of the node.
    inputs
        Arrays by formal name; absent inputs are left out.
    attributes
        Values by name, defaults included.
    interpretations
        The chosen meanings of ambiguous clauses.
    equations
        Function from this computation to all outputs in float64. A fault replaces it, or inputs, or attributes.
    bounds
        Function from this computation, its outputs and the name of an accuracy class to the radius of each number. An
        infinite radius means that there is no bound.
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
        sizes = {size: self.attributes[name] for size, name in self.operator.rules.sizes.items()}
        shapes = {name: array.shape for name, array in self.inputs.items()}
        sizes = {size: int(n) for size, n in sizes.items()}
        return sizes_of_shapes(self.operator.tensors, shapes, sizes, self.layout)

    @property
    def layout(self) -> int:  # type: ignore[override]
        """1 where an attribute selects the second layout of tensors, else 0."""
        return int(self.attributes.get(self.operator.rules.layout) == 1)

    def wide(self, name: str) -> NDArray[np.float64] | None:
        """Return an input in float64; None for an absent input."""
        array = self.inputs.get(name)
        return None if array is None else array.astype(np.float64)

    def format_of(self, name: str) -> Format:
        """Return the format of an input or output: that of the inputs with the same type variable, else that of T."""
        kind = self.operator.kind_of(name)
        arrays = [array for other, array in self.inputs.items() if self.operator.kind_of(other) == kind]
        return FORMATS[arrays[0].dtype.name] if arrays else self.format

    @property
    def format(self) -> Format:
        """The format of the tensors of type T."""
        first = next(name for name in self.operator.inputs if self.operator.kind_of(name) == "T")
        return FORMATS[self.inputs[first].dtype.name]

    def dtype_of(self, output: str) -> np.dtype[Any]:
        """Return the type of an output's array."""
        return self.format_of(output).dtype

    def plain(self, observed: Any = None) -> Outputs:
        """Return all outputs in float64; ``observed`` is not used."""
        return self.equations(self)

    def bounded(self, accuracy: str, observed: Arrays) -> dict[str, Bounded]:
        """Return all outputs with their radii; ``observed`` is not used, because there are no steps."""
        outputs = self.equations(self)
        radii = self.bounds(self, outputs, accuracy)
        numbers = {}
        for name, value in outputs.items():
            allowed = budget(accuracy, self.format_of(name).name)
            unbounded = ~(np.isfinite(value) & np.isfinite(radii[name]))
            value, radius = (np.where(unbounded, 0.0, array) for array in (value, radii[name]))
            undefined = unbounded if unbounded.any() else None
            numbers[name] = Bounded.in_range(value, radius, undefined, np.abs(value) + radius, allowed)
        return numbers

    def with_input(self, name: str, altered: Described) -> Described:
        """Return the computation with one input taken from another computation."""
        return with_inputs(self, **{name: altered.inputs.get(name)})


def with_inputs(c: Described, **changed: Array | None) -> Described:
    """Return the computation with some inputs replaced; None removes an input. Raise KeyError for a new input."""
    for name, array in changed.items():
        if array is not None and name not in c.operator.inputs:
            raise KeyError(f"{c.operator.name} has no input {name}; it has: {', '.join(c.operator.inputs)}")
    inputs = {**c.inputs, **changed}
    return replace(c, inputs={name: array for name, array in inputs.items() if array is not None})


def with_attributes(c: Described, **changed: Any) -> Described:
    """Return the computation with other values of attributes."""
    return replace(c, attributes={**c.attributes, **changed})


def with_equations(c: Described, equations: Callable[[Described], Outputs]) -> Described:
    """Return the computation with other equations."""
    return replace(c, equations=equations)


class DescribedOperator(Operator):
    """Base class of operators that are derived from a description."""

    def __init__(self) -> None:
        self.conforming = {"float64": Conforming(lambda node, inputs: self.answer(node, inputs))}

    @abstractmethod
    def equations(self, c: Described) -> Outputs:
        """Return all outputs in float64."""

    @abstractmethod
    def radii(self, c: Described, outputs: Outputs, accuracy: str) -> Outputs:
        """Return how far a correct implementation may be from each number of `outputs`; infinity where there is no
        bound."""

    def check(self, c: Described) -> None:
        """Raise IllegalNode for a node that breaks rules beyond the document's form; use :meth:`illegal`."""

    def illegal(self, topic: str, message: str) -> IllegalNode:
        """Return the error for the clause of a topic."""
        return IllegalNode(f"{self.document.prefix}.{topic}", f"{self.document.title}: {message}")

    def registered(self) -> None:
        """Register the derived faults as soon as faults are needed."""
        await_derived(self.document)

    def resolve(self, node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Described:
        """Return the resolved node. Raise IllegalNode or UnknownOperator."""
        version = node.operator
        present = {name: array for name, array in inputs.items() if array is not None}
        require_inputs(version, present, self.illegal)
        for name, value in node.attributes.items():
            if not isinstance(value, _KINDS[version.attributes[name]]):
                raise self.illegal("attributes", f"attribute {name} is {value!r}, not {version.attributes[name]}")
        attributes = {**version.defaults, **node.attributes}
        if unjudged := version.unjudged(attributes.get):
            raise UnknownOperator(f"{self.document.title}: {unjudged}")
        for topic, message in breaches(version, attributes.get, node.attributes, present):
            raise self.illegal(topic, message)
        c = Described(version, present, attributes, interpretations or Interpretations(), self.equations, self.radii)
        try:
            c.sizes  # noqa: B018 - worked out to see that they agree
        except ShapeError as error:
            raise self.illegal("shapes", str(error)) from None
        except KeyError as error:
            raise self.illegal("attributes", f"attribute {error.args[0]} is missing") from None
        self.check(c)
        return c

    def diagnostics(self, written: Written) -> Iterator[Diagnostic]:
        """Yield the violations in the attributes and inputs of a written node."""
        for topic, message in breaches(written.operator, written.chosen, written.attributes, written.inputs):
            yield Diagnostic(topic, message)

    def stated_sizes(self, written: Written) -> Mapping[str, StatedSize]:
        """Return the sizes that attributes set."""
        values = {size: (name, written.chosen(name)) for size, name in written.operator.rules.sizes.items()}
        return {size: StatedSize(n, f"{name} is {n}") for size, (name, n) in values.items() if isinstance(n, int)}


def breaches(
    version: OperatorVersion, chosen: Callable[[str], Any], written: Any, inputs: Any
) -> Iterator[tuple[str, str]]:
    """Yield the broken rules of a version, as (topic of a clause, message).

    chosen
        Function from an attribute to its value or its default.
    written, inputs
        The attributes that are written in the node, and the inputs that are present, by name.
    """
    op = version.known_as
    for name, values in version.rules.choices.items():
        value = chosen(name)
        if name in written and value is not None and value not in values:
            yield topic_of_name(op, name, "attributes"), f"{name} is {value!r}, none of {', '.join(map(str, values))}"
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


def _others(version: OperatorVersion, needed: Needed) -> frozenset[str | int]:
    """Return the attribute values with which an input has no meaning. Unknown values are another violation and left
    out."""
    return frozenset(version.rules.choices.get(needed.attribute, ())) - {*needed.values}
