"""Padding of Y: whether any node may read values past the lengths of its rows."""

from __future__ import annotations

from ..models.scope import Scope, domain_of
from .subject import NodeSubject, operator_judged, subject_at

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
