"""A case of ExtendedLSTM as a small immutable value, and its node and inputs rebuilt bit for bit from it."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ....reference import Node, document_of, operator_version
from ...axes.attributes import finite_float32
from ...axes.generator import uniform
from ...axes.tensors.size import HIGHEST_SEED, LONGEST, MOST_ELEMENTS
from ...specs.violations import Draft
from .violations import extended_violation

__all__ = ["DOMAIN", "MIDDLE", "OLD", "ExtendedSpec", "calibrated"]

OP_TYPE, DOMAIN, VERSION = "ExtendedLSTM", "com.amd.quark", 1
(OLD,) = document_of(OP_TYPE).former
"""Domain and name in older models."""

HIGHEST = 65535
MIDDLE = 32768
"""Of the levels of uint16."""
_OPSET, _IR_VERSION = 17, 8

_CHOICES = {
    "data": ("dense", "ties", "inf", "nan", "far"),
    "weights": ("initializer", "input"),
    "reruns": ("none", "data", "sizes"),
}
_BOUNDS = {"T": (0, LONGEST), "N": (0, LONGEST), "I": (0, LONGEST), "H": (1, LONGEST), "seed": (0, HIGHEST_SEED)}

Array = NDArray[Any]
Affine = tuple[float, int]


def calibrated(low: float, high: float) -> Affine:
    """Scale and zero point of a range, as the producer's calibration makes them: range/65535 in float32, uint16."""
    low, high = min(low, 0.0), max(high, 0.0)
    scale = float(np.float32((high - low) / HIGHEST)) or 1.0  # of nothing but zeros
    return scale, int(np.clip(np.rint(-low / scale), 0, HIGHEST))


@dataclass(frozen=True)
class ExtendedSpec:
    """One case. ``seed`` is the last word: everything else follows from the fields.

    Raises ValueError for what a field cannot be. Whether the node is legal is for the document to say.

    about
        What it is about, as words of its id: ``realistic``, ``x-scale-power-of-two``. They are letters, digits, dots
        and hyphens.
    x, w, r, b, y
        Scale and zero point of each tensor; None for a Y that is not quantized.
    fill
        By tensor how much of its range the numbers use: more than 1 saturates.
    data
        ``dense``; ``ties`` (X between two levels); ``inf``, ``nan``, ``far`` (some of X is infinite, NaN, 1e30).
    weights
        ``initializer`` or ``input``.
    reruns
        What the session runs before: ``none``, ``data``, ``sizes``.
    old
        Whether the node has its old domain and name.
    explicit
        Whether input_forget and layout are written down.
    illegal
        Id of the violation by which the model breaks its document.
    """

    about: str
    T: int = 4
    N: int = 1
    I: int = 3
    H: int = 3
    x: Affine = (0.0, 0)
    w: Affine = (0.0, 0)
    r: Affine = (0.0, 0)
    b: Affine = (0.0, 0)
    y: Affine | None = None
    fill: tuple[tuple[str, float], ...] = ()
    data: str = "dense"
    bias: bool = True
    hidden_size: bool = True
    weights: str = "initializer"
    reruns: str = "none"
    old: bool = False
    explicit: bool = False
    seed: int = 0
    illegal: str = ""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9.-]{0,59}", self.about):
            raise self._wrong("about", "one to 60 letters, digits, dots and hyphens")
        for name, values in _CHOICES.items():
            if getattr(self, name) not in values:
                raise self._wrong(name, " or ".join(map(repr, values)))
        for name in ("bias", "hidden_size", "old", "explicit"):
            if type(getattr(self, name)) is not bool:
                raise self._wrong(name, "False or True")
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise self._wrong(name, f"a whole number from {least} to {most}")
        elements = max(self.T, 1) * max(self.N, 1) * (self.I + 2 * self.H) + 8 * self.H * (self.I + self.H + 2)
        if elements > MOST_ELEMENTS:
            raise ValueError(f"a case has {MOST_ELEMENTS} numbers at most, not {elements}")
        for name in "xwrby":
            affine = getattr(self, name)
            if affine is None and name == "y":
                continue
            if affine is None or not (finite_float32(affine[0]) and affine[0] >= 0 and affine[1] in range(HIGHEST + 1)):
                raise self._wrong(name, f"a scale from 0 on and a zero point from 0 to {HIGHEST}")
        for name, share in self.fill:
            if name not in ("X", "W", "R", "B", "Y") or not (finite_float32(share) and share > 0):
                raise self._wrong("fill", "pairs of a tensor's name and a positive number")
        if self.data != "dense" and self.illegal:
            raise self._wrong("data", "'dense' in a forbidden model")
        if self.data != "dense" and not self.T * self.N * self.I * self.x[0]:
            raise self._wrong("data", "'dense' where X is empty or has no scale")

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone, as what follows from them is worked out anew where a case is sent to another process."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def _wrong(self, name: str, there: str) -> ValueError:
        return ValueError(f"{name} of {OP_TYPE}-{VERSION} is {there}, not {getattr(self, name)!r}")

    @property
    def op(self) -> str:
        return OP_TYPE

    @property
    def version(self) -> int:
        return VERSION

    @property
    def type(self) -> str:
        return "float32"

    @property
    def directions(self) -> int:
        return 2

    @cached_property
    def attributes(self) -> Mapping[str, Any]:
        """The node's, as they are written down; of a forbidden model, before its violation."""
        attributes: dict[str, Any] = {"direction": "bidirectional"}
        attributes |= {"hidden_size": self.H} if self.hidden_size else {}
        attributes |= {"input_forget": 0, "layout": 0} if self.explicit else {}
        for name in "xwrby":
            affine = getattr(self, name)
            if affine is not None:
                attributes |= {f"{name}_scale": affine[0], f"{name}_zero_point": affine[1]}
        return MappingProxyType(attributes)

    def inputs(self, run: int = 0) -> dict[str, Array]:
        """The inputs by formal name, float32. `run` is 0 for the case's own, others for what runs before."""
        T = self.T + 2 if run and self.reruns == "sizes" else self.T
        shapes: dict[str, tuple[int, ...]] = {
            "X": (T, self.N, self.I),
            "W": (2, 4 * self.H, self.I),
            "R": (2, 4 * self.H, self.H),
        }
        shapes |= {"B": (2, 8 * self.H)} if self.bias else {}
        fed = shapes if self.weights == "input" else ("X",)
        return {name: self._tensor(name, shape, run if name in fed else 0) for name, shape in shapes.items()}

    def _tensor(self, name: str, shape: tuple[int, ...], run: int) -> Array:
        scale, zero_point = getattr(self, name.lower())
        fill = dict(self.fill).get(name, 1.0)
        number = uniform(f"ExtendedLSTM/{name}/{self.seed}/{run}", shape, 24, 0)
        low, high = -zero_point * scale * fill, (HIGHEST - zero_point) * scale * fill
        array: Array = ((low + high) / 2 + (high - low) / 2 * number).astype(np.float32)
        if name == "X" and self.data != "dense" and array.size:
            if self.data == "ties":
                array = ((np.floor(array.astype(np.float64) / scale) + 0.5) * scale).astype(np.float32)
            else:
                wild = {"inf": np.inf, "nan": np.nan, "far": 1e30}[self.data]
                array[array.shape[0] // 2, 0, 0] = wild
                if self.data != "nan" and array.size > 1:
                    array[-1, 0, -1] = -wild
        array.setflags(write=False)
        return array

    def model(self, draft: Draft) -> bytes:
        """A model of one node; its graph's inputs and outputs have the formal names."""
        domain, op_type = OLD if self.old else (DOMAIN, OP_TYPE)
        constants = [name for name in self.constants if name in draft.inputs]
        inputs = [name if name in draft.inputs else "" for name in ("X", "W", "R", "B")]
        inputs += [name for name in draft.inputs if name not in inputs]
        while inputs and not inputs[-1]:
            inputs.pop()
        node = helper.make_node(op_type, inputs, draft.outputs, "lstm", domain=domain, **draft.attributes)
        kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in draft.inputs.items()}
        given = [
            helper.make_tensor_value_info(n, kinds[n], self._dims(n, a))
            for n, a in draft.inputs.items()
            if n not in constants
        ]
        # Sizes stay open: the kernel infers no shape, and what a forbidden model gives is not known.
        sizes = [None] * len(draft.operator.tensors["Y"].shape())
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, sizes) for n in draft.outputs if n]
        held = [numpy_helper.from_array(draft.inputs[n], n) for n in constants]
        graph = helper.make_graph([node], "extended_lstm", given, outputs, held)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(domain, VERSION)]
        made: bytes = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION).SerializeToString(
            deterministic=True
        )
        return made

    def _dims(self, name: str, array: Array) -> list[Any]:
        dims: list[Any] = list(array.shape)
        return ["seq_length", *dims[1:]] if name == "X" and self.reruns == "sizes" else dims

    @property
    def constants(self) -> tuple[str, ...]:
        """The inputs that are initializers."""
        return ("W", "R", "B") if self.weights == "initializer" else ()

    @property
    def node(self) -> Node:
        """The node as its document has it, also where its model calls it by its old name."""
        return Node(OP_TYPE, VERSION, self.attributes, ("Y",), DOMAIN)

    @property
    def draft(self) -> Draft:
        """What the model is made of, before its violation."""
        return Draft(operator_version(OP_TYPE, VERSION), self.H, dict(self.attributes), self.inputs(), ["Y"])

    @property
    def broken(self) -> Draft:
        """What the model is made of, its violation committed."""
        draft = self.draft
        if self.illegal:
            extended_violation(self.illegal).change(draft)
        return draft

    @property
    def size(self) -> tuple[float, int]:
        """Elements of inputs, states and steps."""
        return float(math.prod(max(n, 1) for n in (self.T, self.N, self.I, self.H)) * 2), len(self.features)

    @property
    def graded(self) -> bool:
        """No case is about accuracy alone."""
        return False

    @property
    def shows_pattern(self) -> bool:
        """Whatever is shown is shown as it is."""
        return True

    @cached_property
    def features(self) -> frozenset[str]:
        """What the case contains, as the clause table and files of expected failures name it."""
        features = {f"about-{self.about}", self.weights, "quantized-output" if self.y is not None else "float-output"}
        sizes = (self.T, self.N, self.I, self.H)
        features |= {"size-one"} if 1 in (self.T, self.I, self.H) else set()
        features |= {"size-zero"} if 0 in sizes else set()
        features |= {"several-rows"} if self.N > 1 else set()
        features |= {"rerun"} if self.reruns != "none" else set()
        features |= {"old-domain"} if self.old else set()
        features |= set() if self.bias else {"bias-absent"}
        features |= set() if self.hidden_size else {"hidden-size-absent"}
        features |= {"near-tie"} if self.data == "ties" else set()
        features |= {"nonfinite"} if self.data in ("inf", "nan") else set()
        if self.data in ("inf", "far") or any(f > 1 and n != "Y" for n, f in self.fill):
            features.add("saturating-input")
        if self.y is not None and min(self.y[1], HIGHEST - self.y[1]) * self.y[0] < 0.999:
            features.add("saturating-output")
        if self.illegal:
            features |= {"illegal", f"illegal:{extended_violation(self.illegal).feature}"}
        return frozenset(features)

    @property
    def spoils(self) -> bool:
        """Whether an implementation that looks at no shape may spoil its memory with it."""
        if self.illegal:
            return extended_violation(self.illegal).spoils
        return self.N != 1

    @cached_property
    def id(self) -> str:
        """A stable, readable name that is a safe file name."""
        shape = f"T{self.T}N{self.N}I{self.I}H{self.H}"
        subject = f"illegal-{self.illegal}" if self.illegal else self.about
        return f"extendedlstm-{VERSION}.float32.{subject}.{shape}.{self.digest[:6]}"

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as plain values."""
        plain = asdict(self)
        return {f.name: plain[f.name] for f in fields(self) if f.name == "about" or plain[f.name] != f.default}
