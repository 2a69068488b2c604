"""Constants: values of names that do not depend on the model's inputs, computed from initializers and Constant nodes.

Exporters compute weights in the graph: sliced out of a larger tensor, transposed, concatenated, dequantized. Operators
of :mod:`.operations` are computed, within a limit of bytes that is checked before a result is allocated. No other part
of a model is ever executed.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, helper

from ...reference.documents.quantizing import quantizes
from .content import ModelError, Unreadable
from .operations import FOLDED, NotFolded, bytes_of_result, outputs_of
from .scope import Scope, domain_of, shown_name

Array = NDArray[Any]

MOST_BYTES = 1 << 28
"""Default limit of the bytes of a folded tensor."""

_DEEPEST = 100
"""Limit of the operators that are followed in a row; exporters put at most ten before weights."""

_KEPT = 1 << 16
"""Limit of the bytes of a cached result: larger ones are used once."""

_REPEATING = ("Expand", "Tile", "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Flatten")
"""Operators whose result has only numbers of their first input, apart from a cast."""

_NUMBERS = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
"""Numeric attributes of a Constant, and their types."""


class NotConstant(ValueError):
    """Name that is not a constant, or cannot be folded; the text has the reason, as a phrase after "it" or the name."""


class UnreadableConstant(NotConstant):
    """Constant of the model whose numbers cannot be read."""


def constant(scope: Scope, name: str, most: int = MOST_BYTES) -> Array:
    """Return the constant value of a name, seen from a scope.

    most
        Limit of the bytes of it and of every tensor from which it is computed.

    Raise NotConstant.
    """
    return _Folder(most).value(scope, name, 0)


def constants_of(scope: Scope, names: Iterable[str], most: int = MOST_BYTES) -> dict[str, Array]:
    """Return the names that are constants, seen from a scope, with their values."""
    constants = {}
    for name in names:
        with contextlib.suppress(NotConstant):
            constants[name] = constant(scope, name, most)
    return constants


def default_value(scope: Scope, name: str, most: int = MOST_BYTES) -> Array | None:
    """Return the default of an input of the model; None if it has none.

    Raise UnreadableConstant.
    """
    origin = scope.origin_of(name)
    if origin is None or origin[1] not in origin[0].initializers:
        return None
    home, name = origin
    try:
        return home.model.content.array(home.initializers[name], most)
    except Unreadable as error:
        raise UnreadableConstant(str(error)) from None


def repeated(scope: Scope, name: str, most: int = MOST_BYTES) -> int | float:
    """Return the number to which all elements of a name are equal, for any shape: an expanded constant.

    Raise NotConstant.
    """
    for _ in range(_DEEPEST):
        try:
            array = constant(scope, name, most)
        except NotConstant:
            producer = scope.producer_of(name)
            if producer is None:
                raise
            home, node = producer[0], producer[0].nodes[producer[1]]
            if domain_of(node.domain) != "" or not node.input or home.model.function_of(node) is not None:
                raise
            if node.op_type in _REPEATING:
                scope, name = home, node.input[0]
                continue
            if node.op_type != "ConstantOfShape":
                raise
            array = _tensors(home, node, most).get("value", np.zeros(1, np.float32))
        if not array.size or not bool((array == array.flat[0]).all()):
            raise NotConstant("holds several numbers")
        first: int | float = array.flat[0].item()
        return first
    raise NotConstant(f"comes through more than {_DEEPEST} operators")


class _Folder:
    """Evaluation of one constant, with a cache of intermediate results."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: dict[tuple[int, str], Array | NotConstant] = {}

    def value(self, scope: Scope, name: str, depth: int) -> Array:
        origin = scope.origin_of(name)
        if origin is None:
            raise NotConstant(f"is {shown_name(name)!r}, which nothing gives")
        home, name = origin
        key = id(home), name
        if key not in self.kept:
            if depth > _DEEPEST:
                raise NotConstant(f"comes through more than {_DEEPEST} operators")
            self.kept[key] = NotConstant("goes in a circle")
            try:
                array = self._value(home, name, depth)
            except NotConstant as error:
                self.kept[key] = error
                raise
            if array.nbytes > _KEPT:
                del self.kept[key]
                return array
            self.kept[key] = array
        result = self.kept[key]
        if isinstance(result, NotConstant):
            raise result
        return result

    def _value(self, home: Scope, name: str, depth: int) -> Array:
        model = home.model.content
        if name in home.initializers:
            # Before IR version 4 every initializer had to be an input as well, so an input may still be constant.
            if name in home.declared and model.proto.ir_version >= 4 and home.parent is None:
                raise NotConstant(f"is the input {shown_name(name)} of the model, which has only a default")
            try:
                return model.array(home.initializers[name], self.most)
            except Unreadable as error:
                raise UnreadableConstant(str(error)) from None
        if name in home.sparse:
            raise NotConstant("is a sparse tensor, which is not unfolded")
        if name in home.producers:
            number, position = home.producers[name]
            return self._output(home, number, position, depth)
        raise NotConstant(f"is the input {shown_name(name)} of {home.kind}")

    def _output(self, scope: Scope, number: int, place: int, depth: int) -> Array:
        node = scope.nodes[number]
        domain = domain_of(node.domain)
        try:
            call = scope.call(number)
        except ModelError as error:
            raise NotConstant(f"comes from a call: {error}") from None
        if call is not None:
            if place >= len(call.outputs):
                raise NotConstant(f"is an output that {call.kind} does not have")
            return self.value(call, call.outputs[place], depth + 1)
        if domain == "":
            if node.op_type == "Constant":
                return self._constant(scope, node)
            if node.op_type == "Shape":
                return self._shape(scope, node)
            if node.op_type == "If":
                return self._branch(scope, number, place, depth)
        meant = quantizes(domain, node.op_type) if domain else node.op_type
        if meant not in FOLDED:
            operator = f"{domain}::{node.op_type}" if domain else node.op_type
            raise NotConstant(f"is computed by {shown_name(operator)}")
        inputs = [self.value(scope, name, depth + 1) if name else None for name in node.input]
        tensors = _tensors(scope, node, self.most)
        if domain:
            node = _renamed(node, meant)
        operator = shown_name(node.op_type)
        try:
            if bytes_of_result(node.op_type, inputs) > self.most:
                raise NotFolded(f"would take more than the {self.most} bytes that are folded")
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return outputs_of(node, inputs, tensors, scope.opsets.get("", 1))[place]
        except NotFolded as error:
            raise NotConstant(f"comes from a {operator} that {error}") from None
        except Exception as error:  # onnx.reference raises many types of errors for inputs that do not fit
            why = " ".join(str(error).split())[:100]
            raise NotConstant(f"comes from a {operator} that cannot be computed: {why}") from None

    def _constant(self, scope: Scope, node: NodeProto) -> Array:
        for attribute in node.attribute:
            if attribute.name == "value" and attribute.HasField("t"):
                return _tensors(scope, node, self.most)["value"]
            if attribute.name in _NUMBERS:
                return np.array(helper.get_attribute_value(attribute), _NUMBERS[attribute.name])
        raise NotConstant("is a Constant that holds no tensor of numbers")

    def _shape(self, scope: Scope, node: NodeProto) -> Array:
        of = node.input[0] if node.input else ""
        source_type = scope.type_of(of)
        if source_type.shape is None or not source_type.certain:
            raise NotConstant(f"is the shape of {shown_name(of)}, which is open")
        bounds = {a.name: a.i for a in node.attribute if a.name in ("start", "end")}
        chosen = source_type.shape[slice(bounds.get("start"), bounds.get("end"))]
        if not all(isinstance(extent, int) for extent in chosen):
            raise NotConstant(f"is the shape of {shown_name(of)}, which is not all known")
        return np.array(chosen, np.int64)

    def _branch(self, scope: Scope, number: int, place: int, depth: int) -> Array:
        """Return the output of the branch of an If that its constant condition chooses."""
        condition = self.value(scope, scope.nodes[number].input[0], depth + 1)
        chosen = "then_branch" if bool(condition.all()) else "else_branch"
        branch = dict(scope.inner(number)).get(chosen)
        if branch is None or place >= len(branch.outputs):
            raise NotConstant(f"is an output that the {chosen} of If does not have")
        return self.value(branch, branch.outputs[place], depth + 1)


def _renamed(node: NodeProto, op_type: str) -> NodeProto:
    """Return a copy of the node with the name and domain of ONNX's equivalent operator."""
    renamed = NodeProto()
    renamed.CopyFrom(node)
    renamed.op_type, renamed.domain = op_type, ""
    return renamed


def _tensors(scope: Scope, node: NodeProto, most: int) -> dict[str, Array]:
    """Return the arrays of a node's attributes that hold tensors. Raise UnreadableConstant."""
    try:
        return {a.name: scope.model.content.array(a.t, most) for a in node.attribute if a.HasField("t")}
    except Unreadable as error:
        raise UnreadableConstant(str(error)) from None
