"""A node of a model as a model of its own, and random numbers for its inputs if the user gave none.

The model has only the node's attributes, its weights and its declared shapes. An activation with an argument far beyond
a few units tests nothing (every gate is open or shut), and one near zero little. So X is drawn from (-a, a). a is the
power of two for which sums over W have a standard deviation between one and two; a uniform number from (-a, a) has
a / sqrt(3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import AttributeProto, NodeProto, ValueInfoProto, helper

from ...cases.axes.generator import uniform
from ...cases.axes.tensors import held
from ...cases.directories.graph_reading import OneNode, read_model
from ...cases.directories.reading import NotOneNode
from ...cases.specs.model import dtype_named, element_type, finished, tensor_proto
from ...reference import FORMATS, IllegalNode
from ...reference.documents.tensors import Levels, Shape, sizes_known
from ...reference.recurrent.computation import dequantized
from ..checking.check import check_node
from ..checking.general import shapes_of
from ..checking.problem import Level
from ..checking.sizes import printed_extents
from ..checking.subject import NodeSubject, operator_judged, subject_at
from ..models.content import NotConstant, Unreadable
from ..models.folding import constant, default_value
from ..models.scope import Located, domain_of

Array = NDArray[Any]

MOST_BYTES = 1 << 30
"""Limit of the bytes of one tensor of a node that is taken out."""


class NotPortable(ValueError):
    """Node that cannot be taken out of its model, or run; the text gives the reason in one line."""


@dataclass(frozen=True)
class PortableNode:
    """A node that can be run by itself.

    model
        Serialized: the node, its constant inputs as initializers, the others as graph inputs under their formal names.
    read
        The same as the reference sees it.
    flowing
        Formal names of the inputs that are not constant, with their names in the original model.
    defaults
        By formal name, weights that are inputs of the model with a default.
    sizes
        The known ones of ``seq_length``, ``batch_size``, ``input_size``, ``hidden_size`` and ``num_directions``.
    formal
        By formal input, the shape that its document prints.
    elements
        By formal input or output its element type as NumPy calls it.
    """

    subject: NodeSubject
    model: bytes
    read: OneNode
    constants: Mapping[str, Array]
    flowing: Mapping[str, str]
    defaults: Mapping[str, Array]
    sizes: Mapping[str, int]
    formal: Mapping[str, Shape]
    elements: Mapping[str, str]

    @property
    def path(self) -> str:
        return self.subject.located.path

    @property
    def weights(self) -> list[str]:
        """Formal names of its inputs that are the same in every run."""
        given, operator = {*self.constants, *self.flowing}, self.subject.operator
        return [name for name in operator.inputs if name in given and held(operator, name)]

    @property
    def unknown_weights(self) -> list[str]:
        """Formal names of the weights whose numbers are not in the model."""
        return [name for name in self.weights if name not in self.constants and name not in self.defaults]

    @property
    def fixed_sizes(self) -> dict[str, int]:
        """Sizes that its weights leave open, but that X, a state or a Reshape fixes."""
        weights = {extent.size for name in self.weights for extent in self.formal[name]}
        flowing = {extent.size for name in self.flowing for extent in self.formal[name]}
        return {size: value for size, value in self.sizes.items() if size in flowing - weights}


def portable(located: Located) -> PortableNode:
    """Return a node taken out of its model. Raise NotPortable if it is illegal or has no document here."""
    domain = domain_of(located.node.domain)
    operator = operator_judged(located.node)
    if operator is None:
        raise NotPortable(f"there is no document of {domain}::{located.node.op_type} here")
    checked = check_node(located)
    broken = next((p for p in checked.problems if p.level is Level.ERROR), None)
    if broken is not None:
        raise NotPortable(f"is illegal by {broken.rule}: {broken.message}")
    if not_judged := next((unchecked.missing for unchecked in checked.unchecked if not unchecked.rule), ""):
        raise NotPortable(f"is not judged: {not_judged}")
    subject = subject_at(located.scope, located.number)
    assert subject is not None
    constants: dict[str, Array] = {}
    flowing: dict[str, str] = {}
    defaults: dict[str, Array] = {}
    formal = shapes_of(subject)
    for name, source in subject.inputs.items():
        try:
            constants[name] = constant(source.scope, source.given, MOST_BYTES)
        except Unreadable as error:
            raise NotPortable(f"{name} cannot be read: {error}") from None
        except NotConstant:
            flowing[name] = source.given
            default = _default(subject, name)
            if default is not None and default.ndim == len(formal[name]):
                defaults[name] = default
    extents = [pair for n, a in {**constants, **defaults}.items() for pair in zip(formal[n], a.shape, strict=True)]
    stated = {size: entry.value for size, entry in operator.stated_sizes(subject).items()}
    sizes = sizes_known(printed_extents(subject, formal), stated)
    sizes |= sizes_known(extents, stated)  # the file may claim other shapes
    elements = _elements(subject, constants)
    model = _model(subject, constants, sizes, formal, elements)
    try:
        read = read_model(model)
    except (NotOneNode, IllegalNode) as error:
        raise NotPortable(str(error)) from None
    return PortableNode(subject, model, read, constants, flowing, defaults, sizes, formal, elements)


def _default(subject: NodeSubject, name: str) -> Array | None:
    """Return the default of a weight that is an input of the model; None without one. Raise NotPortable."""
    source = subject.inputs[name]
    try:
        return default_value(source.scope, source.given, MOST_BYTES) if held(subject.operator, name) else None
    except Unreadable as error:
        raise NotPortable(f"{name} cannot be read: {error}") from None


def _elements(subject: NodeSubject, constants: Mapping[str, Array]) -> dict[str, str]:
    """Return the element types of all inputs and outputs: those of one type parameter are equal. Raise NotPortable."""
    operator = subject.operator
    found: dict[str, str] = {}
    for name, source in subject.inputs.items():
        element = constants[name].dtype.name if name in constants else source.element
        if element is not None and element in operator.types_of(name):
            found.setdefault(operator.kind_of(name), element)
    if "T" not in found:
        raise NotPortable("has inputs of unknown type")
    elements = {}
    for name in (*operator.inputs, *operator.outputs):
        allowed = operator.types_of(name)
        elements[name] = found.get(operator.kind_of(name)) or (found["T"] if found["T"] in allowed else allowed[0])
    return elements


def _model(
    subject: NodeSubject,
    constants: Mapping[str, Array],
    sizes: Mapping[str, int],
    formal: Mapping[str, Shape],
    elements: Mapping[str, str],
) -> bytes:
    operator, located = subject.operator, subject.located
    scope, original = located.scope, located.node
    if any(a.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS) for a in original.attribute):
        raise NotPortable("holds a graph")
    names = [name if name in subject.inputs else "" for name in operator.inputs]
    while names and not names[-1]:
        names.pop()
    asked = [f if name else "" for f, name in zip(operator.outputs, subject.outputs, strict=False)]
    domain = domain_of(original.domain)
    node = NodeProto(op_type=original.op_type, name=located.path, domain=domain, input=names, output=asked)
    node.attribute.extend(original.attribute)
    # Outputs have shapes, too: onnx.checker requires them, and so do backends that prepare models like onnx's own.
    shapes = {**{name: operator.tensors[name].shape(subject.layout) for name in asked if name}, **formal}

    def info(name: str) -> ValueInfoProto:
        values = ((extent, extent.known(sizes)) for extent in shapes[name])
        shape = [str(extent) if value is None else value for extent, value in values]
        return helper.make_tensor_value_info(name, element_type(dtype_named(elements[name])), shape)

    graph = helper.make_graph(
        [node],
        located.path,
        [info(name) for name in names if name and name not in constants],
        [info(name) for name in asked if name],
        [tensor_proto(name, constants[name]) for name in names if name in constants],
    )
    opsets = {"": scope.opsets.get("", 1), domain: scope.opsets[domain]}
    ids = [helper.make_opsetid(d, v) for d, v in opsets.items()]
    # From IR version 4 on initializers need not be inputs.
    model = helper.make_model(graph, producer_name="onnxspec", opset_imports=ids, ir_version=4)
    return finished(model, opsets[""])


SEQUENCES = ((6, 2), (3, 1), (9, 3))
"""seq_length and batch_size of each data set, if the model leaves them open."""

_MOST_EXPONENT = 14
"""Limit of the exponent, within float16."""


def drawn(node: PortableNode) -> list[dict[str, Array]]:
    """Return random arrays by formal input, for several runs of a session. Raise NotPortable."""
    longest = int(node.constants["sequence_lens"].max(initial=1)) if "sequence_lens" in node.constants else 1
    named = {extent.size for shape in node.formal.values() for extent in shape}
    runs = []
    for number, (steps, batch) in enumerate(SEQUENCES):
        usual = {"seq_length": max(steps, longest), "batch_size": batch, "input_size": 4, "hidden_size": 4}
        sizes = {**dict.fromkeys(named, steps), "num_directions": 1, **usual, **node.sizes}
        runs.append({name: _input(node, name, sizes, number) for name in node.flowing})
    return runs


def _input(node: PortableNode, name: str, sizes: Mapping[str, int], number: int) -> Array:
    if name in node.defaults:
        return node.defaults[name]
    shape = tuple(extent.value(sizes) for extent in node.formal[name])
    key = f"{node.subject.operator.name}/{node.path}/{name}/{number}"
    if name == "sequence_lens":
        # From one step to all of them, the first row whole.
        steps = sizes["seq_length"]
        lengths = np.minimum((np.abs(uniform(key, shape, 24, 0)) * steps).astype(np.int32) + 1, steps)
        lengths[:1] = steps
        return lengths.astype(np.int32)
    if node.elements[name] not in FORMATS:
        raise NotPortable(f"computes {name} in the graph: no data is drawn for that, give some with --inputs")
    form, exponent = FORMATS[node.elements[name]], 0
    if name == "X":
        exponent = _exponent(node, sizes)
    elif node.subject.operator.kind_of(name) == "T" and not name.startswith("initial_"):
        # Weights for which sums of this many products are about 1.
        exponent = -round(math.log2(math.sqrt(max(sizes["hidden_size"], 1))))
    return uniform(key, shape, form.precision, exponent).astype(form.dtype)


def _exponent(node: PortableNode, sizes: Mapping[str, int]) -> int:
    """Return the exponent of a."""
    weights, form = {**node.defaults, **node.constants}, node.subject.operator.tensors.get("W")
    if "W" not in weights or form is None:
        return 0
    W = weights["W"].astype(np.float64)
    if isinstance(form.codec, Levels):
        if form.codec.scale not in weights or form.codec.zero_point not in weights:
            return 0
        W = dequantized(W, weights[form.codec.scale], weights[form.codec.zero_point])
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(np.sqrt(np.mean(np.square(W)))) * math.sqrt(sizes["input_size"] / 3) if W.size else 0.0
    if not 0 < spread < math.inf:
        return 0
    return max(-_MOST_EXPONENT, min(_MOST_EXPONENT, math.ceil(-math.log2(spread))))
