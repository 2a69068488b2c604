"""ExtendedLSTM as documented: a bidirectional LSTM of quantized tensors (com.amd.quark::ExtendedLSTM-1).

X, W, R and B are dequantized, and the exact LSTM computes Y from them. Where y_scale and y_zero_point are given, Y is
quantized with them, saturating. So a node is an LSTM node whose tensors have codecs (:mod:`.computation`). The
arithmetic of the shipped kernel is in :mod:`.faults`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...documents.interpretations import Question
from ...documents.operators import Document, OperatorVersion
from ...documents.tensors import Stated, recurrent_forms
from ...numbers.affine import Affine
from ...recurrent.configuration import Configuration, configure
from ...recurrent.node import Diagnostic, IllegalNode, Node, require_inputs, sizes_of_inputs, text_of
from ...recurrent.rnn import LSTM
from .arithmetic import STATES


def codecs_of(operator: OperatorVersion) -> Mapping[str, Stated]:
    """Return the attributes that set the quantization of tensors, by tensor."""
    return {name: form.codec for name, form in operator.tensors.items() if isinstance(form.codec, Stated)}


def diagnostics(
    operator: OperatorVersion, attributes: Collection[str], given: Callable[[str], Any]
) -> Iterator[Diagnostic]:
    """Yield the violations in a node's attributes.

    attributes
        Names of the attributes that the node has.
    given
        Function from a name to the value; None if it is absent or of the wrong type.
    """
    codecs = codecs_of(operator)
    for tensor, codec in codecs.items():
        for name in (codec.scale, codec.zero_point) if tensor in operator.inputs else ():
            if name not in attributes:
                yield Diagnostic("scales.required", f"attribute {name} is missing, and there is no default for it")
    if "direction" not in attributes:
        message = "there is no direction, so it would be forward: only bidirectional is supported"
        yield Diagnostic("directions.default", message)
    elif (direction := given("direction")) not in ("bidirectional", None):
        yield Diagnostic("directions.supported", f"direction is {direction!r}: only bidirectional is supported")
    for name, topic in (("input_forget", "input-forget"), ("layout", "layout")):
        value = given(name)
        if value not in (0, None):
            yield Diagnostic(topic, f"{name} is {value}: only 0 is supported")
    for codec in codecs.values():
        scale, zero_point = given(codec.scale), given(codec.zero_point)
        if scale is not None and not 0 < np.float32(scale) < math.inf:
            yield Diagnostic("scales.range", f"{codec.scale} is {scale:g}: a scale is positive and finite")
        if zero_point is not None and not 0 <= zero_point < 2**codec.bits:
            message = f"{codec.zero_point} is {zero_point}: it lies between 0 and {2**codec.bits - 1}"
            yield Diagnostic("zero-points.range", message)


Array = NDArray[np.float64]

OP_TYPE, _DOMAIN = "ExtendedLSTM", "com.amd.quark"
PLAIN = Node("LSTM", 14, {"direction": "bidirectional"}, ("Y",))
"""The LSTM node between dequantizing and quantizing."""

_KINDS: Mapping[str, tuple[type, ...]] = {"FLOAT": (float,), "INT": (int, np.integer), "STRING": (str, bytes)}


def _version() -> OperatorVersion:
    """Return the version: tensors of LSTM that exist here, each with its scale and zero point.

    The quantization of Y is in no document, but every implementation demands it (clause
    extendedlstm.output-quantization).
    """
    forms = recurrent_forms(len(LSTM.gates))
    inputs, outputs = ("X", "W", "R", "B"), ("Y",)
    codecs = {name: Stated(f"{name.lower()}_scale", f"{name.lower()}_zero_point") for name in (*inputs, *outputs)}
    quantization = {codec.scale: "FLOAT" for codec in codecs.values()}
    quantization |= {codec.zero_point: "INT" for codec in codecs.values()}
    quantized = {name: replace(forms[name], codec=codec) for name, codec in codecs.items()}
    return OperatorVersion(
        domain=_DOMAIN,
        op_type=OP_TYPE,
        since_version=1,
        attributes=MappingProxyType(
            {"direction": "STRING", **dict.fromkeys(("hidden_size", "input_forget", "layout"), "INT"), **quantization}
        ),
        defaults=MappingProxyType({"direction": "forward", "input_forget": 0, "layout": 0}),
        inputs=inputs,
        required=frozenset({"X", "W", "R"}),
        outputs=outputs,
        required_outputs=frozenset(),
        types=("float32",),
        tensors=MappingProxyType({**forms, **quantized}),
    )


DOCUMENT = Document(
    OP_TYPE,
    _DOMAIN,
    Path(__file__).with_name("clauses.toml"),
    {1: _version()},
    questions=(Question("state_quantization", STATES),),
    former=(("com.vai.quantize", "VitisLSTM"),),
)


def _illegal(topic: str, message: str) -> IllegalNode:
    return IllegalNode(f"extendedlstm.{topic}", f"com.amd.quark::{OP_TYPE}-1: {message}")


@dataclass(frozen=True)
class ExtendedLSTM(Configuration):
    """A resolved node with its inputs: a bidirectional LSTM with quantized tensors.

    given
        X (T, N, I), W (2, 4H, I), R (2, 4H, H) and, if present, B (2, 8H), not quantized.
    affine
        The quantization of X, W, R, B and, where it is quantized, Y.
    """

    given: Mapping[str, NDArray[Any]] = field(default_factory=dict, hash=False)
    affine: Mapping[str, Affine] = field(default_factory=dict, hash=False)

    @property
    def y(self) -> Affine | None:
        """The quantization of Y; None where Y is not quantized."""
        return self.affine.get("Y")

    @property
    def states(self) -> tuple[str, ...]:
        """Names of outputs other than Y: none."""
        return ()


def resolve(attributes: Mapping[str, Any], inputs: Mapping[str, NDArray[Any]]) -> ExtendedLSTM:
    """Return a resolved node with its inputs. Raise IllegalNode, with the clause, for a node that the document
    forbids."""
    inputs = {name: array for name, array in inputs.items() if array is not None}
    node = Node(OP_TYPE, 1, attributes, ("Y",), _DOMAIN)
    operator = node.operator
    for name, value in attributes.items():
        if not isinstance(value, _KINDS[operator.attributes[name]]) or isinstance(value, bool):
            raise _illegal("attributes.types", f"{name} is {value!r}, which is not of its type")
    given = {name: text_of(value) if isinstance(value, bytes) else value for name, value in attributes.items()}
    for diagnostic in diagnostics(operator, attributes, given.get):
        raise _illegal(*diagnostic)
    require_inputs(operator, inputs, _illegal)
    sizes_of_inputs(node, inputs, 2, 0, _illegal)
    affine = {}
    for name, codec in codecs_of(operator).items():
        scale, zero_point = attributes.get(codec.scale), attributes.get(codec.zero_point)
        if scale is not None and zero_point is not None:
            affine[name] = Affine(float(scale), int(zero_point), codec.bits)
        elif (scale, zero_point) != (None, None):
            message = f"{codec.scale} and {codec.zero_point} are given together or not at all"
            raise _illegal("output-quantization", message)
    lstm = configure(PLAIN, inputs)
    return ExtendedLSTM(**{f.name: getattr(lstm, f.name) for f in fields(lstm)}, given=inputs, affine=affine)
