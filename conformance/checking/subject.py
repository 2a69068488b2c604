"""A node as rules see it: its attributes, the known facts about its inputs, and whether padding of its Y is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import dropwhile
from typing import Any

from onnx import AttributeProto, NodeProto, TensorProto, defs

from ...reference import (
    Operator,
    OperatorVersion,
    document_of,
    operator_names,
    operator_of,
    versions_of,
)
from ...reference.documents.operators import version_in_opset
from ...reference.documents.tensors import SEQ_LENGTH, Extent
from ..models.content import NotConstant
from ..models.folding import constant, repeated
from ..models.scope import Located, Scope, domain_of, shown_name
from ..models.tensor_type import Dimension, Type


@cache
def judged_operators() -> Mapping[tuple[str, str], Operator]:
    """Return the operators that are judged, by domain and name, former names included."""
    documents = [document_of(name) for name in operator_names()]
    operators = [(operator_of(document.op_type, document.domain), document) for document in documents]
    return {key: operator for operator, document in operators for key in (document.key, *document.former)}


def operator_judged(node: NodeProto) -> Operator | None:
    """Return the operator of a node; None for one that is not judged."""
    return judged_operators().get((domain_of(node.domain), node.op_type))


def newest_opset(operator: Operator) -> int:
    """Return the newest known opset of an operator's domain."""
    document = operator.document
    return versions_of(document.name)[-1] if document.domain else defs.onnx_opset_version()


_VALUES = 1 << 24
"""Limit of the bytes of a tensor whose numbers a rule reads: lengths, never weights."""


@dataclass(frozen=True)
class Broken:
    """A rule that a node breaks.

    topic
        The rule's id, or the id without the operator: ``shapes``.
    certain
        Whether it is certain; otherwise it depends on a type that the file only declares.
    advice
        The remedy, if the rule's own advice does not apply.
    """

    topic: str
    message: str
    certain: bool = True
    advice: str = ""


@dataclass(frozen=True)
class Missing:
    """A fact that a rule needs and that is unknown."""

    topic: str
    what: str


Outcome = Broken | Missing


@dataclass(frozen=True)
class Attribute:
    """An attribute of the node: its kind as ONNX names it (``INT``, ``FLOATS``), and its value."""

    kind: str
    value: Any


@dataclass(frozen=True)
class Input:
    """An input that a node has.

    name
        Its formal name.
    given
        Its name in the model.
    """

    name: str
    given: str
    scope: Scope
    type: Type

    @property
    def element(self) -> str | None:
        """Element type as NumPy and ONNX call it in small letters, ``float32``; None if it is unknown."""
        if self.type.element is None:
            return None
        try:
            name = str(TensorProto.DataType.Name(self.type.element)).lower()
        except ValueError:
            return f"of element type {self.type.element}"
        return {"float": "float32", "double": "float64"}.get(name, name)

    @property
    def shape(self) -> tuple[Dimension, ...] | None:
        return self.type.shape


@dataclass(frozen=True)
class NodeSubject:
    """One recurrent node of a model, with the known facts about its inputs.

    located
        Its place in the model.
    attributes
        By name; if one is duplicated, the first.
    twice
        Names of attributes that are duplicated.
    inputs
        By formal name, those that are present.
    surplus
        Number of inputs behind the last one that the operator has.
    outputs
        Names by position, as in the model; empty ones keep positions.
    """

    operator: OperatorVersion
    located: Located
    attributes: Mapping[str, Attribute]
    twice: tuple[str, ...]
    inputs: Mapping[str, Input]
    surplus: int
    outputs: tuple[str, ...]

    @property
    def scope(self) -> Scope:
        return self.located.scope

    @property
    def unread(self) -> frozenset[str]:
        """Outputs, by formal name, that the node has and that nothing in the model reads."""
        named = zip(self.operator.outputs, self.outputs, strict=False)
        return frozenset(formal for formal, name in named if name and name not in self.scope.read)

    def given(self, name: str) -> Any:
        """Return the value of an attribute if it is present and of its kind, None otherwise."""
        attribute = self.attributes.get(name)
        if attribute is None or attribute.kind != self.operator.attributes.get(name):
            return None
        return attribute.value

    @property
    def layout(self) -> int:
        """Layout of its shapes; 0 if it is unknown."""
        return 1 if self.chosen(self.operator.rules.layout) == 1 else 0

    @property
    def sequence(self) -> tuple[Dimension, Dimension]:
        """seq_length and batch_size of X; each None if it is unknown."""
        X, form, layout = self.inputs.get("X"), self.operator.tensors.get("X"), self.chosen("layout") or 0
        printed = form.shape(layout) if form is not None and layout in (0, 1) else ()
        if X is None or X.shape is None or len(X.shape) != len(printed):
            return None, None
        extents = dict(zip(printed, X.shape, strict=True))
        return extents.get(Extent(SEQ_LENGTH)), extents.get(Extent("batch_size"))

    @property
    def steps(self) -> int | None:
        """seq_length if it is certain."""
        steps = self.sequence[0]
        return steps if isinstance(steps, int) and self.inputs["X"].type.certain else None

    def lengths(self) -> tuple[int, int] | None:
        """Return the least and the largest number of sequence_lens; None if it is empty.

        Raise NotConstant.
        """
        source = self.inputs["sequence_lens"]
        try:
            values = constant(source.scope, source.given, _VALUES)
        except NotConstant as why:
            try:
                same = int(repeated(source.scope, source.given, _VALUES))
            except NotConstant:
                raise why from None
            return same, same
        return (int(values.min()), int(values.max())) if values.size else None

    def chosen(self, name: str) -> Any:
        """Return the value of an attribute, or its default."""
        return self.operator.defaults.get(name) if name not in self.attributes else self.given(name)


def subject_of(located: Located, operator: OperatorVersion) -> NodeSubject:
    """Return a node as rules see it."""
    scope, node = located.scope, located.node
    names, outputs = _without_end(node.input), _without_end(node.output)
    attributes: dict[str, Attribute] = {}
    for proto in node.attribute:
        attributes.setdefault(proto.name, _attribute(proto))
    counts = Counter(proto.name for proto in node.attribute)
    twice = tuple(shown_name(name) for name, count in counts.items() for _ in range(count - 1))
    inputs = {
        formal: Input(formal, name, scope, scope.type_of(name))
        for formal, name in zip(operator.inputs, names, strict=False)
        if name
    }
    return NodeSubject(
        operator, located, attributes, twice, inputs, max(len(names) - len(operator.inputs), 0), tuple(outputs)
    )


def _without_end(names: Iterable[str]) -> list[str]:
    """Return names without the empty ones at the end."""
    return [*dropwhile(lambda name: not name, [*names][::-1])][::-1]


def subject_at(scope: Scope, number: int) -> NodeSubject | None:
    """Return the node of a number in its scope as rules see it; None for one that is not judged."""
    node = scope.nodes[number]
    operator = operator_judged(node)
    if operator is None:
        return None
    version = version_in_opset(operator.document, scope.opsets.get(domain_of(node.domain), 1))
    return None if version is None else subject_of(Located(scope, number), version)


_FIELDS = {
    **{"FLOAT": "f", "INT": "i", "STRING": "s"},
    **{"FLOATS": "floats", "INTS": "ints", "STRINGS": "strings"},
}
"""The field that holds the value, by kind of attribute."""


def _attribute(proto: AttributeProto) -> Attribute:
    kind = AttributeProto.AttributeType.Name(proto.type)
    if kind == "UNDEFINED":  # models of IR version 1 and 2 may omit the kind
        present = {field.name for field, _ in proto.ListFields()}
        kind = next((kind for kind, field in _FIELDS.items() if field in present), kind)
    value: Any = getattr(proto, _FIELDS[kind]) if kind in _FIELDS else None
    if kind == "STRING":
        value = value.decode("utf-8", "replace")
    elif kind in ("FLOATS", "INTS", "STRINGS"):
        value = [item.decode("utf-8", "replace") if kind == "STRINGS" else item for item in value]
    return Attribute(kind, value)


_PASSING = frozenset(
    {
        *("Identity", "Cast", "Dropout", "Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Clip", "Neg"),
        *("Transpose", "Squeeze", "Reshape"),
    }
)
"""Operators that compute each element from one element of their first input: padding stays apart from other numbers."""


def padding_is_read(subject: NodeSubject) -> bool:
    """Return whether some node may read Y past the lengths of its rows.

    The padding is not read if Y is used only as the X of nodes with the same lengths, because these ignore it.
    """
    lengths = subject.inputs.get("sequence_lens")
    outputs = dict(zip(subject.operator.outputs, subject.outputs, strict=False))
    if lengths is None or not outputs.get("Y"):
        return True
    scope, origin = subject.scope, lengths.scope.origin_of(lengths.given)
    pending = [outputs["Y"]]
    while pending:
        name = pending.pop()
        if name in scope.outputs:
            return True
        for number in scope.consumers.get(name, ()):
            node = scope.nodes[number]
            if operator_judged(node) is not None:
                if not _skips_padding(scope, number, name, origin):
                    return True
            elif node.op_type in _PASSING and not domain_of(node.domain) and node.output and node.input[0] == name:
                pending.append(node.output[0])
            else:
                return True
    return False


def _skips_padding(scope: Scope, number: int, name: str, lengths: tuple[Scope, str] | None) -> bool:
    """Return whether a recurrent node takes a tensor only as its X, and has the same lengths."""
    subject = subject_at(scope, number)
    if subject is None or "sequence_lens" not in subject.inputs:
        return False
    takes_as = [formal for formal, source in subject.inputs.items() if source.given == name]
    return takes_as == ["X"] and scope.origin_of(subject.inputs["sequence_lens"].given) == lengths
