"""Padding of Y: whether any node may read values past the lengths of its rows."""

from __future__ import annotations

from onnx import NodeProto

from ...cases.directories.graph_reading import axes_of
from ...cases.directories.reading import NotOneNode
from ..models.folding import constants_of
from ..models.scope import Scope, domain_of
from .subject import NodeSubject, operator_judged, subject_at

_ELEMENTWISE = ("Identity", "Cast", "Dropout", "Relu", "LeakyRelu", "Elu", "Tanh", "Sigmoid", "Clip", "Neg")
"""Operators that keep each element of their first input at its position."""

_MOST_BYTES = 1 << 12
"""Limit of the bytes of a list of axes, or of a shape."""

_Axes = tuple[int, ...]
"""Meaning of the axes of a tensor, in order: steps, rows, or another one."""

_STEPS, _ROWS, _OTHER = range(3)


def padding_is_read(subject: NodeSubject) -> bool:
    """Return whether some node may read Y past the lengths of its rows.

    The padding is not read if Y is used only as the X of nodes with the same lengths, because these ignore it.
    """
    Y = dict(zip(subject.operator.outputs, subject.outputs, strict=False)).get("Y")
    lengths = subject.inputs.get("sequence_lens")
    if lengths is None or not Y:
        return True
    scope, origin = subject.scope, lengths.scope.origin_of(lengths.given)
    printed: _Axes = (_STEPS, _OTHER, _ROWS, _OTHER)
    pending = [(Y, (_ROWS, _STEPS, _OTHER, _OTHER) if subject.layout == 1 else printed)]
    while pending:
        name, axes = pending.pop()
        if name in scope.outputs:
            return True
        for number in scope.consumers.get(name, ()):
            node = scope.nodes[number]
            if operator_judged(node) is not None:
                if not _skips_padding(scope, number, name, axes, origin):
                    return True
            elif (moved := _moved(scope, node, name, axes)) is not None:
                pending.append((node.output[0], moved))
            else:
                return True
    return False


def _skips_padding(scope: Scope, number: int, name: str, axes: _Axes, lengths: tuple[Scope, str] | None) -> bool:
    """Return whether a recurrent node takes a tensor only as its X, in its layout, and has the same lengths."""
    subject = subject_at(scope, number)
    if subject is None or "sequence_lens" not in subject.inputs:
        return False
    expected = (_ROWS, _STEPS, _OTHER) if subject.layout == 1 else (_STEPS, _ROWS, _OTHER)
    takes_as = [formal for formal, source in subject.inputs.items() if source.given == name]
    same_lengths = scope.origin_of(subject.inputs["sequence_lens"].given) == lengths
    return takes_as == ["X"] and axes == expected and same_lengths


def _moved(scope: Scope, node: NodeProto, name: str, axes: _Axes) -> _Axes | None:
    """Return the axes of a node's output, computed from a tensor.

    None if they are unknown or the padding may be read.
    """
    if (
        domain_of(node.domain)
        or scope.model.function_of(node) is not None
        or list(node.input).count(name) != 1
        or node.input[0] != name
        or not node.output
    ):
        return None
    if node.op_type in _ELEMENTWISE:
        return axes
    if node.op_type not in ("Transpose", "Squeeze", "Reshape"):
        return None
    try:
        numbers = axes_of(node, constants_of(scope, node.input[1:], _MOST_BYTES))
    except NotOneNode:
        return None
    rank = len(axes)
    if node.op_type == "Transpose":
        order = numbers or tuple(range(rank))[::-1]
        return tuple(axes[k] for k in order) if sorted(order) == [*range(rank)] else None
    if numbers is None:
        return None
    if node.op_type == "Squeeze":
        dropped = {axis + rank if axis < 0 else axis for axis in numbers}
        return tuple(axis for position, axis in enumerate(axes) if position not in dropped)
    # Leading axes that are copied stay; those after them may be merged.
    copied = next((k for k, extent in enumerate(numbers) if extent != 0), len(numbers))
    if {_STEPS, _ROWS} & {*axes[copied:]}:
        return None
    return (*axes[:copied], *(_OTHER for _ in numbers[copied:]))
