"""Case of an operator as a value, whose fields are derived from the operator's form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from ...reference import Node, OperatorVersion, document_of, operator_version
from ...reference.faults.derived import in_ids

SESSIONS = ("one", "chain", "cut", "other-lengths", "other-weights")
"""Runs of a session.

``one`` run; ``chain``, a decode chain (the case's own length, then three runs of one position, each from the previous
state); ``cut``, a sequence cut in two; ``other-lengths``, two more independent runs of other lengths;
``other-weights``, one more run of the same sizes with other numbers, fed weights included.
"""

DIMENSIONS = ("static", "symbolic", "all-symbolic")
"""Dimensions of inputs and outputs: numbers; names for rows and positions; names for all."""

_MARKED_APART = frozenset({"type", "seed", "illegal"})


@dataclass(frozen=True)
class SimpleSpec:
    """Fields that cases of every such operator have.

    A subclass adds its own: one for each size of the document that no attribute sets, and one for each attribute, by
    their names. An attribute that is None is left out. Every field has a default.

    type
        Type of the tensors of type T.
    session
        One of SESSIONS.
    weights
        ``input`` or ``initializer``: how the family's `constants` are fed.
    dimensions
        One of DIMENSIONS.
    absent
        Optional inputs that are left out.
    numbers
        The family's name for how tensors are drawn.
    seed
        Seed of the numbers.
    illegal
        The id of a violation; empty for a legal model.
    """

    type: str = "float32"
    session: str = "one"
    weights: str = "input"
    dimensions: str = "static"
    absent: tuple[str, ...] = ()
    numbers: str = "usual"
    seed: int = 0
    illegal: str = ""

    op: ClassVar[str]
    version: ClassVar[int] = 1
    graded: ClassVar[bool] = False
    shows_pattern: ClassVar[bool] = False

    @cached_property
    def operator(self) -> OperatorVersion:
        return operator_version(self.op, self.version)

    @property
    def given(self) -> tuple[str, ...]:
        """Formal names of the present inputs."""
        operator = self.operator
        return tuple(name for name in operator.inputs if self.has(operator, name))

    def has(self, operator: OperatorVersion, name: str) -> bool:
        """Return whether an input is present."""
        needed = operator.rules.needed.get(name)
        if needed is not None and needed.refused:
            return self.node_attributes.get(needed.attribute, operator.defaults.get(needed.attribute)) in needed.values
        return name in operator.required or name not in self.absent

    @property
    def node_attributes(self) -> dict[str, Any]:
        """The attributes that are written in the node."""
        values = {name: getattr(self, name, None) for name in self.operator.attributes}
        return {name: value for name, value in values.items() if value is not None}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """All sizes by name."""
        extents = [e for form in self.operator.tensors.values() for shape in form.shapes for e in shape]
        names = frozenset().union(*(extent.names for extent in extents))
        attributes = self.operator.rules.sizes
        values = {name: getattr(self, attributes.get(name, name)) for name in sorted(names)}
        usual: Mapping[str, Any] = self.operator.defaults
        return {name: usual[attributes[name]] if value is None else value for name, value in values.items()}

    @property
    def selected_layout(self) -> int:
        """1 where an attribute selects the second layout of tensors, else 0."""
        return int(self.node_attributes.get(self.operator.rules.layout) == 1)

    @property
    def node(self) -> Node:
        """The node, before its violation. Raise IllegalNode."""
        operator = self.operator
        return Node(operator.op_type, self.version, self.node_attributes, operator.outputs, operator.domain)

    def type_of(self, name: str) -> str:
        """Return the type of an input: that of its type variable, which a field like ``type_S`` may set (empty: as
        T)."""
        kind = self.operator.kind_of(name)
        return self.type if kind == "T" else getattr(self, f"type_{kind}", "") or self.type

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([self.op, self.version, self.to_json()]).encode()).hexdigest()

    @cached_property
    def id(self) -> str:
        marks = [mark for mark in (self._sizes_marked, *self._words) if mark]
        broken = [f"illegal-{self.illegal}"] if self.illegal else []
        first = f"{document_of(self.op).prefix}-{self.version}"
        return ".".join((first, self.type, *marks, *broken, self.digest[:6]))

    @property
    def _sizes_marked(self) -> str:
        by_attribute = self.operator.rules.sizes.values()
        names = [name for name in self.sizes if name not in by_attribute]
        return "-".join(f"{in_ids(name)[0]}{getattr(self, name)}" for name in names if hasattr(self, name))

    @property
    def _words(self) -> list[str]:
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _MARKED_APART or field.name in self.sizes or value == field.default:
                continue
            if isinstance(value, tuple):
                words += [f"no-{in_ids(item)}" for item in value]
            elif isinstance(value, str) and value and field.name not in self.operator.attributes:
                words.append(in_ids(value))
            else:
                words.append(in_ids(f"{field.name}-{value}".replace(" ", "")))
        return words

    @property
    def size(self) -> tuple[float, int]:
        elements = 1.0
        for name in self.sizes:
            elements *= max(int(self.sizes[name]), 1)
        return elements, len(self._words)

    @property
    def spoils(self) -> bool:
        return bool(self.illegal)

    def to_json(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
        return {field.name: plain[field.name] for field in fields(self) if values[field.name] != field.default}
