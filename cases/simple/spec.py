"""The case of an operator as a value, its fields derived from the operator's form."""

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
"""Runs of a session: one; a decode chain (the case's own length, then three runs of one position, each from the state
before); a sequence cut in two; two further runs of other lengths, which have nothing to do with each other; a further
run of the same sizes with other numbers, those of weights that are fed among them."""

DIMENSIONS = ("static", "symbolic", "all-symbolic")
"""Dimensions of inputs and outputs: numbers; names for rows and positions; names for all."""

_MARKED_APART = frozenset({"type", "seed", "illegal"})


@dataclass(frozen=True)
class SimpleSpec:
    """Fields that cases of every such operator have. A subclass adds its own: one for each size of the document
    that no attribute says, and one for each attribute, by their names; an attribute that is None is left out. Every
    field has a default.

    type
        Of the tensors of type T.
    session
        One of SESSIONS.
    weights
        ``input``, or ``initializer``: what the family's `constants` are.
    dimensions
        One of DIMENSIONS.
    absent
        Optional inputs that are left out.
    numbers
        The family's word for how tensors are drawn.
    seed
        Of the numbers.
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
        """The operator version."""
        return operator_version(self.op, self.version)

    @property
    def given(self) -> tuple[str, ...]:
        """Formal names of the inputs that are there."""
        operator = self.operator
        return tuple(name for name in operator.inputs if self.has(operator, name))

    def has(self, operator: OperatorVersion, name: str) -> bool:
        """Return whether an input is there."""
        needed = operator.rules.needed.get(name)
        if needed is not None and needed.refused:
            return self.node_attributes.get(needed.attribute, operator.defaults.get(needed.attribute)) in needed.values
        return name in operator.required or name not in self.absent

    @property
    def node_attributes(self) -> dict[str, Any]:
        """The attributes that are written down."""
        known = {name: getattr(self, name, None) for name in self.operator.attributes}
        return {name: value for name, value in known.items() if value is not None}

    @cached_property
    def sizes(self) -> dict[str, int]:
        """All sizes by name."""
        extents = [e for form in self.operator.tensors.values() for shape in form.shapes for e in shape]
        names = frozenset().union(*(extent.names for extent in extents))
        said = self.operator.rules.sizes
        values = {name: getattr(self, said.get(name, name)) for name in sorted(names)}
        usual: Mapping[str, Any] = self.operator.defaults
        return {name: usual[said[name]] if value is None else value for name, value in values.items()}

    @property
    def selected_layout(self) -> int:
        """1 where an attribute selects the second shape of tensors."""
        return int(self.node_attributes.get(self.operator.rules.layout) == 1)

    @property
    def node(self) -> Node:
        """The node, before its violation. Raises IllegalNode."""
        operator = self.operator
        return Node(operator.op_type, self.version, self.node_attributes, operator.outputs, operator.domain)

    def type_of(self, name: str) -> str:
        """Return the type of an input: that of its kind, which a field ``type_S`` may say (empty: as T)."""
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
        said = self.operator.rules.sizes.values()
        own = [name for name in self.sizes if name not in said]
        return "-".join(f"{in_ids(name)[0]}{getattr(self, name)}" for name in own if hasattr(self, name))

    @property
    def _words(self) -> list[str]:
        words = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in _MARKED_APART or field.name in self.sizes or value == field.default:
                continue
            if isinstance(value, tuple):
                words += [f"no-{in_ids(each)}" for each in value]
            elif isinstance(value, str) and value and field.name not in self.operator.attributes:
                words.append(in_ids(value))
            else:
                words.append(in_ids(f"{field.name}-{value}".replace(" ", "")))
        return words

    @property
    def size(self) -> tuple[float, int]:
        """Smaller is simpler to look at."""
        elements = 1.0
        for name in self.sizes:
            elements *= max(int(self.sizes[name]), 1)
        return elements, len(self._words)

    @property
    def spoils(self) -> bool:
        return bool(self.illegal)

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        there = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(value) if isinstance(value, tuple) else value for name, value in there.items()}
        return {field.name: plain[field.name] for field in fields(self) if there[field.name] != field.default}
