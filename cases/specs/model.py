"""Tensors of a case, as its axes draw and change them, and ONNX models of one node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from types import MappingProxyType
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ...reference import FORMATS, Node, cell_named, operator_version
from ...reference.documents.tensors import HIDDEN_SIZE, Extent
from ..axes.generator import gain, uniform
from ..axes.node import by_position
from ..axes.tensors import OVERRIDDEN
from .spec import RecurrentSpec

Array = NDArray[Any]


class TensorDraft:
    """Draft that the effects of :class:`..axes.axis.Axis` change.

    run
        0 for the case's own inputs; other numbers for earlier runs of its session.
    T, N
        Steps and rows of this run.
    precision
        Digits of the numbers.
    of_x, of_states, of_weights
        Exponents of X, of initial states, and of W and R, added to the usual ones.
    inputs
        The tensors drawn so far, by formal name.
    """

    def __init__(self, spec: Any, run: int) -> None:
        self.spec, self.run = spec, run
        self.T, self.N = spec.T, spec.N
        self.D, self.G, self.I, self.H = spec.directions, operator_version(spec.op, spec.version).gates, spec.I, spec.H
        self.format = FORMATS[spec.type]
        self.precision = self.format.precision
        self.of_x = self.of_states = self.of_weights = 0
        self.inputs: dict[str, Array] = {}

    @cached_property
    def cell(self) -> Any:
        """The operator's cell, if it has one."""
        return cell_named(self.spec.op)

    @property
    def of_state(self) -> tuple[int, ...]:
        """The shape of a state."""
        return (self.D, self.N, self.H) if self.spec.layout == 0 else (self.N, self.D, self.H)

    @property
    def of_sequence(self) -> tuple[int, ...]:
        """The shape of X."""
        return (self.T, self.N, self.I) if self.spec.layout == 0 else (self.N, self.T, self.I)

    @property
    def X(self) -> Array:
        """X with its steps first; a view to be changed in place."""
        X = self.inputs["X"]
        return X if self.spec.layout == 0 else X.swapaxes(0, 1)

    @property
    def states(self) -> list[Array]:
        """The initial states with their directions first and rows second; views to be changed in place."""
        states = [array for name, array in self.inputs.items() if name.startswith("initial_")]
        return states if self.spec.layout == 0 else [array.swapaxes(0, 1) for array in states]

    def key(self, name: str, stream: str = "") -> str:
        """Return the random stream of a tensor that changes from run to run, unless it is a constant.

        `stream` distinguishes several streams of one tensor.
        """
        run = 0 if name in self.spec.constants else self.run
        return f"{self.spec.op}/{stream}{name}/{self.spec.seed}/{run}"

    def draw(self, name: str, shape: tuple[int, ...], exponent: int) -> None:
        """Draw a tensor that changes from run to run."""
        drawn = uniform(self.key(name), shape, self.precision, exponent)
        self.inputs[name] = drawn.astype(self.format.dtype)

    def hold(self, name: str, shape: tuple[int, ...], exponent: int) -> None:
        """Store a tensor of weights; cases share it, so it is read-only."""
        key = f"{self.spec.op}/{name}/{self.spec.weights_seed}"
        self.inputs[name] = _held(key, shape, self.precision, exponent, self.spec.type)


@lru_cache(maxsize=64)
def _held(key: str, shape: tuple[int, ...], precision: int, exponent: int, type: str) -> Array:
    return uniform(key, shape, precision, exponent).astype(FORMATS[type].dtype)


def inputs_of(spec: RecurrentSpec, run: int = 0) -> Mapping[str, Array]:
    """Return the inputs of a case by formal name, in its types. The arrays are read-only.

    run
        0 for the case's own inputs; other numbers for earlier runs of its session.
    """
    # With a default argument, the caches would have two entries for run 0.
    return (_drawn if spec.elements > _SMALL else _drawn_small)(spec, run)


_SMALL = 4096
"""Greatest number of elements of a case whose inputs are cached during a whole run, some tens of megabytes."""


@lru_cache(maxsize=256)  # cases are built this far ahead of their results, which need the inputs again
def _drawn(spec: RecurrentSpec, run: int) -> Mapping[str, Array]:
    draft = TensorDraft(spec, run)
    for axis in spec.axes:
        if axis.prepare is not None:
            axis.prepare(spec, draft)
    draft.draw("X", draft.of_sequence, draft.of_x)
    draft.hold("W", (draft.D, draft.G * draft.H, draft.I), gain(draft.I) + draft.of_weights)
    draft.hold("R", (draft.D, draft.G * draft.H, draft.H), gain(draft.H) + draft.of_weights)
    for axis in spec.axes:
        if axis.fill is not None:
            axis.fill(spec, draft)
    for array in draft.inputs.values():
        array.setflags(write=False)
    return MappingProxyType(draft.inputs)


_drawn_small = lru_cache(maxsize=4096)(_drawn.__wrapped__)


_BESIDE = 17
"""The opset of ONNX's own operators in models of an operator of another domain."""


def build_model(spec: RecurrentSpec, node: Node, inputs: Mapping[str, Array], asked: tuple[str, ...]) -> bytes:
    """Return the serialized model of a recurrent case.

    node
        Its attributes are written unchanged, whatever the operator version defines.
    inputs
        Arrays by formal name; constants among them become initializers if the spec says so. Inputs that the operator
        does not have come last.
    asked
        The outputs by position; an empty string is an output that is not requested.
    """
    operator = node.operator
    sizes = {"seq_length": spec.T, "batch_size": spec.N, "input_size": spec.I, HIDDEN_SIZE: spec.H}
    return node_model(
        node,
        inputs,
        asked + ("",) * ((len(operator.outputs) - len(asked)) if spec.placeholders else 0),
        name=spec.called[1].lower(),
        called=spec.called,
        placeholders=spec.placeholders,
        constants={**inputs, **(_others(spec) if spec.held in OVERRIDDEN else {})},
        initializers=spec.constants,
        overridable=spec.held != "fixed",
        symbolic=() if spec.static else ("seq_length", "batch_size"),
        sizes={**sizes, "num_directions": spec.directions},
        like="Y_h",
        layout=spec.layout,
        opset=operator.since_version if spec.opset == "first" else operator.last_opset,
    )


def node_model(
    node: Node,
    inputs: Mapping[str, Array],
    asked: Sequence[str],
    *,
    constants: Mapping[str, Array],
    initializers: Collection[str],
    symbolic: Collection[str],
    sizes: Mapping[str, int],
    like: str,
    layout: int,
    opset: int,
    name: str = "node",
    called: tuple[str, str] | None = None,
    types: Mapping[str, np.dtype[Any]] | None = None,
    placeholders: bool = False,
    overridable: bool = False,
    least_ir: int = 4,
) -> bytes:
    """Return the serialized model of a node.

    node
        Its attributes are written unchanged, whatever its version defines.
    inputs
        Arrays by formal name; inputs that the operator does not have come after the last one.
    asked
        The outputs by position.
    constants, initializers
        Values of inputs that are initializers instead of graph inputs, and their names.
    symbolic, sizes
        Sizes that shapes have by name, and all sizes.
    like
        The output whose shape a surplus output has.
    called
        Domain and name in the model, if they are former ones.
    types
        Type of each output; default: that of the first input.
    placeholders
        Whether absent inputs at the end have an empty name.
    overridable
        Whether initializers are graph inputs too.
    """
    operator = node.operator
    domain, op_type = called or (node.domain, node.op_type)

    def dimension(extent: Extent, actual: int | None) -> int | str:
        named = bool(extent.names & {*symbolic})
        return str(extent) if named or actual is None else actual

    def fed(name: str) -> Any:
        array, form = inputs[name], operator.tensors.get(name)
        shape: list[int | str] = [*array.shape]
        if symbolic and form is not None and len(options := form.options(array.ndim, layout)) == array.ndim:
            # If several extents are possible, take the first one with the same length.
            pairs = [*zip(options, array.shape, strict=True)]
            chosen = [next((e for e in extents if e.known(sizes) == n), None) for extents, n in pairs]
            shape = [n if e is None else dimension(e, n) for e, (_, n) in zip(chosen, pairs, strict=True)]
        return helper.make_tensor_value_info(name, element_type(array.dtype), shape)

    def shown(name: str) -> Any:
        form = operator.tensors.get(name) or operator.tensors[like]
        dtype = (types or {}).get(name) or (types or {}).get(like) or inputs[operator.inputs[0]].dtype
        shape = [dimension(extent, extent.known(sizes)) for extent in form.shape(layout)]
        return helper.make_tensor_value_info(name, element_type(dtype), shape)

    given = by_position(operator.inputs, inputs)
    if placeholders:
        given += ("",) * (len(operator.inputs) - len(given))
    held = {*initializers}.intersection(inputs)
    graph = helper.make_graph(
        [helper.make_node(op_type, given, asked, name, domain=domain or None, **node.attributes)],
        "case",
        [fed(name) for name in given if name and (overridable or name not in held)],
        [shown(name) for name in asked if name],
        [tensor_proto(name, constants[name]) for name in given if name in held],
    )
    opsets = [helper.make_opsetid("", _BESIDE if domain else opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, opset))
    model = helper.make_model(graph, producer_name="onnxspec", opset_imports=opsets, ir_version=least_ir)
    return finished(model, opsets[0].version)


def finished(model: onnx.ModelProto, opset: int) -> bytes:
    """Return a serialized model with this opset of ONNX's own operators, and an IR version that supports it."""
    (onnx_entry,) = (entry for entry in model.opset_import if entry.domain in ("", "ai.onnx"))
    onnx_entry.version = opset
    # onnx's table has no opsets 2 to 4, which are as old as 5.
    model.ir_version = max(model.ir_version, helper.find_min_ir_version_for([helper.make_opsetid("", max(opset, 5))]))
    return bytes(model.SerializeToString(deterministic=True))


def announced(spec: RecurrentSpec) -> bool:
    """Return whether the document of a case has Y; version 1 has it only if ``output_sequence`` is 1."""
    return "output_sequence" not in spec.node.operator.attributes or spec.output_sequence == 1


def _others(spec: RecurrentSpec) -> Mapping[str, Array]:
    """Return the values that a model holds for overridden constants: other values of the same shapes, or zeros.

    Lengths are T.
    """
    others = inputs_of(replace(spec, seed=spec.seed ^ 1, weights_seed=spec.weights_seed ^ 1))
    others = {name: np.zeros_like(array) for name, array in others.items()} if spec.held == "zeroed" else others
    whole = {name: np.full_like(array, spec.T) for name, array in others.items() if name == "sequence_lens"}
    return {name: array for name, array in {**others, **whole}.items() if name in spec.overridden}


@cache
def element_type(dtype: np.dtype[Any]) -> int:
    """Return ONNX's number of the element type of arrays."""
    if dtype.name in FORMATS:
        return FORMATS[dtype.name].onnx_type
    return int(helper.np_dtype_to_tensor_dtype(dtype))


def dtype_named(type: str) -> np.dtype[Any]:
    """Return the NumPy type of that name, bfloat16 included."""
    return FORMATS[type].dtype if type in FORMATS else np.dtype(type)


def tensor_proto(name: str, array: NDArray[Any]) -> TensorProto:
    """Return a tensor in ONNX's form with the bytes of an array; bfloat16 included, in every version of onnx."""
    little = np.ascontiguousarray(array)
    if little.dtype.byteorder == ">":
        little = little.astype(little.dtype.newbyteorder("<"))
    return TensorProto(name=name, data_type=element_type(array.dtype), dims=array.shape, raw_data=little.tobytes())


# Types that are fed to targets: NumPy's number types, and bfloat16.
_NUMBERS = frozenset(
    {
        *(TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.BOOL),
        *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64),
        *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
        *(TensorProto.COMPLEX64, TensorProto.COMPLEX128),
    }
)


def array_of(tensor: TensorProto) -> Array:
    """Return the numbers of a tensor, bfloat16 as the type of ml_dtypes in every version of onnx.

    Raise ValueError for a tensor whose data does not fit its shape, TypeError for one without numbers.
    """
    if tensor.data_type not in TensorProto.DataType.values() or tensor.data_type == TensorProto.UNDEFINED:
        raise ValueError("holds no tensor; is it cut off?")
    if tensor.data_type not in _NUMBERS:
        raise TypeError(f"holds {TensorProto.DataType.Name(tensor.data_type).lower()}, which targets are not fed")
    if any(extent < 0 for extent in tensor.dims):
        raise ValueError(f"holds a tensor of shape {tuple(tensor.dims)}")
    array: Array
    try:
        if tensor.data_type != TensorProto.BFLOAT16:
            array = numpy_helper.to_array(tensor)
            return array
        if tensor.HasField("raw_data"):
            bits = np.frombuffer(tensor.raw_data, "<u2").astype(np.uint16)
        else:
            bits = np.array(tensor.int32_data, np.int64).astype(np.uint16)
        array = bits.view(ml_dtypes.bfloat16).reshape(tuple(tensor.dims))
        return array
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"holds a tensor that is cut off or broken: {error}") from None
