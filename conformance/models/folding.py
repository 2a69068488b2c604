"""Constants: values of names that do not depend on the model's inputs, computed from initializers and Constant nodes.

Exporters compute weights in the graph: sliced out of a larger tensor, transposed, concatenated, dequantized. Operators
in `FOLDED` are computed by onnx.reference, within a limit of bytes that is checked before a result is allocated. Casts
are not, because its representation of bfloat16 differs between releases. Nodes with a tensor among their attributes are
not either, because it might read that from a file. No other part of a model is ever executed.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper

from ...reference.documents.tensors import quantizes
from .content import ModelError, NotConstant
from .scope import LONGEST_CHAIN, Scope, domain_of, shown_name

Array = NDArray[Any]

_BROADCASTING = ("Add", "Sub", "Mul", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or")
_QUANTIZING = ("DequantizeLinear", "QuantizeLinear")
_QUANTIZING_OPSET = 21
"""The opset whose versions of both know all types of levels; other domains have these types with older opsets, too."""

FOLDED = frozenset(
    {
        *("Identity", "Reshape", "Squeeze", "Flatten", "Transpose", "Concat", "Slice", "Gather", "Split"),
        *("Expand", "Tile", "Size", "Range", "Neg", "Abs", "Floor", "Ceil", "Not", "Mod", "Min", "Max", "Where"),
        *("ReduceProd", "Unsqueeze", "Cast", "ConstantOfShape", *_BROADCASTING, *_QUANTIZING),
    }
)
"""Operators through which constants are folded: none does more work than its result has elements."""

_REFUSED = {
    # Before version 7, shapes were broadcast by other rules.
    **dict.fromkeys(_BROADCASTING, ("broadcast", "axis")),
    **dict.fromkeys(_QUANTIZING, ("block_size", "output_dtype", "precision")),
}
"""Attributes with which an operator is not computed here."""


def outputs_of(
    node: NodeProto, inputs: Sequence[Array | None], tensors: Mapping[str, Array], opset: int
) -> list[Array]:
    """Return the outputs of a node of an operator that is folded, by its version in an opset.

    inputs
        By position; None for an absent one.
    tensors
        Arrays of those attributes that hold tensors.

    Raise ValueError for a form that is not computed here, and any error of onnx.reference for inputs that do not fit.
    """
    present = [array for array in inputs if array is not None]
    if not inputs or inputs[0] is None:
        raise ValueError("it has no input 0")
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute if a.name not in tensors}
    for name in _REFUSED.get(node.op_type, ()):
        if name in attributes:
            raise ValueError(f"it has the attribute {name}")
    if node.op_type == "Cast":
        return [_cast(inputs[0], attributes.get("to"))]
    if node.op_type == "ConstantOfShape":
        value = tensors.get("value", np.zeros(1, np.float32))
        return [np.broadcast_to(value.reshape(()), tuple(int(n) for n in inputs[0]))]
    if node.op_type == "Unsqueeze":  # onnx.reference fails for several axes in an attribute
        axes = attributes.get("axes", ()) if len(present) < 2 else present[1].ravel()
        return [np.expand_dims(inputs[0], tuple(int(axis) for axis in axes))]
    if node.op_type in _QUANTIZING:
        opset = max(opset, _QUANTIZING_OPSET)
    from onnx.reference import ReferenceEvaluator  # takes seconds to import

    feeds = dict(zip((name for name in node.input if name), present, strict=True))
    return [np.asarray(output) for output in ReferenceEvaluator(node, opsets={"": opset}).run(None, feeds)]


def _cast(array: Array, to: Any) -> Array:
    if not isinstance(to, int):  # version 1 has the type's name
        raise ValueError("it is of version 1")
    dtype = ml_dtypes.bfloat16 if to == TensorProto.BFLOAT16 else helper.tensor_dtype_to_np_dtype(to)
    if np.dtype(dtype).kind not in "fiub" and dtype is not ml_dtypes.bfloat16:
        raise ValueError(f"it casts to {TensorProto.DataType.Name(to)}")
    return array.astype(dtype)


def bytes_of_result(op_type: str, inputs: Sequence[Array | None]) -> float:
    """Return an upper bound of the bytes of an operator's outputs, to check before it is computed."""
    present = [array for array in inputs if array is not None]
    if not present:
        return 0.0
    width = float(max(8, *(array.itemsize for array in present)))
    if op_type == "ConstantOfShape":
        return width * math.prod(max(int(n), 0) for n in np.ravel(present[0])[:64])
    if op_type in ("Expand", "Tile"):
        return width * present[0].size * math.prod(max(int(n), 1) for n in np.ravel(present[-1])[:64])
    if op_type == "Range":
        start, limit, delta = (float(array.reshape(())) for array in present)
        return width * abs((limit - start) / delta) if delta else 0.0
    if op_type == "Gather":
        return width * present[0].size * max(present[1].size, 1)
    if op_type in _BROADCASTING or op_type in ("Where", "Min", "Max", "Mod"):
        return width * math.prod(np.broadcast_shapes(*(array.shape for array in present)))
    return width * sum(array.size for array in present)


MOST_BYTES = 1 << 28
"""Default limit of the bytes of a folded tensor."""

_KEPT = 1 << 16
"""Limit of the bytes of a cached result: larger ones are used once."""

_REPEATING = ("Expand", "Tile", "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Flatten")
"""Operators whose result has only numbers of their first input, apart from a cast."""

_NUMBERS = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32}
"""Numeric attributes of a Constant, and their types."""


def constant(scope: Scope, name: str, most: int = MOST_BYTES) -> Array:
    """Return the constant value of a name, seen from a scope.

    most
        Limit of the bytes of it and of every tensor from which it is computed.

    Raise NotConstant.
    """
    return _Folder(most).value(scope, name, 0)


def constants_of(scope: Scope, names: Iterable[str]) -> dict[str, Array]:
    """Return the names that are constants, seen from a scope, with their values."""
    constants = {}
    for name in names:
        with contextlib.suppress(NotConstant):
            constants[name] = constant(scope, name)
    return constants


def default_value(scope: Scope, name: str, most: int) -> Array | None:
    """Return the default of an input of the model, of at most `most` bytes; None if it has none.

    Raise Unreadable.
    """
    origin = scope.origin_of(name)
    if origin is None or origin[1] not in origin[0].initializers:
        return None
    home, name = origin
    return home.model.content.array(home.initializers[name], most)


def repeated(scope: Scope, name: str, most: int) -> int | float:
    """Return the number to which all elements of a name are equal, for any shape: an expanded constant.

    Raise NotConstant.
    """
    try:
        array = constant(scope, name, most)
    except NotConstant as why:
        for home, node in scope.chain_before(name):
            if domain_of(node.domain) or not node.input or home.model.function_of(node) is not None:
                raise
            if node.op_type == "ConstantOfShape":
                array = _tensors(home, node, most).get("value", np.zeros(1, np.float32))
                break
            if node.op_type not in _REPEATING:
                raise
            with contextlib.suppress(NotConstant):
                array = constant(home, node.input[0], most)
                break
        else:
            raise why from None
    if not array.size or not bool((array == array.flat[0]).all()):
        raise NotConstant("holds several numbers")
    first: int | float = array.flat[0].item()
    return first


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
            if depth > LONGEST_CHAIN:
                raise NotConstant(f"comes through more than {LONGEST_CHAIN} operators")
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
            return model.array(home.initializers[name], self.most)
        if name in home.sparse:
            raise NotConstant("is a sparse tensor, which is not unfolded")
        if name in home.producers:
            number, position = home.producers[name]
            return self._output(home, number, position, depth)
        raise NotConstant(f"is the input {shown_name(name)} of {home.kind}")

    def _output(self, scope: Scope, number: int, place: int, depth: int) -> Array:
        node = scope.nodes[number]
        domain = domain_of(node.domain)
        if scope.model.function_of(node) is not None:
            try:
                call = scope.call(number)
            except ModelError as error:
                raise NotConstant(f"comes from a call: {error}") from None
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
                raise ValueError(f"it takes more than the {self.most} bytes that are folded")
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return outputs_of(node, inputs, tensors, scope.opsets.get("", 1))[place]
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
    """Return the arrays of a node's attributes that hold tensors. Raise Unreadable."""
    return {a.name: scope.model.content.array(a.t, most) for a in node.attribute if a.HasField("t")}
