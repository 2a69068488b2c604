"""Case as a small value, from which its model and its inputs are rebuilt bit for bit."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from typing import Any, ClassVar

from ...reference import CELLS, Node, OperatorVersion, document_of, operator_version, versions_of
from ..axes import activations, lengths, node, numbers, quantized, session, tensors
from ..axes.axis import Axis, Rule, default_of, rules_of

_CANONICAL = json.JSONEncoder(sort_keys=True)

FEW = 3
"""Least number of steps and units that show a pattern."""

MOST_ELEMENTS = 2**26
"""Greatest number of elements of a case's tensors together: half a gigabyte in float64."""

RECURRENT_AXES: tuple[Axis, ...] = (
    *(tensors.ELEMENT_TYPE, node.DIRECTION, node.LAYOUT),
    *(tensors.STEPS, tensors.ROWS, tensors.INPUTS, tensors.UNITS),
    *(node.OPSET, tensors.BIAS, lengths.LENGTHS, lengths.REACH, lengths.ROW_ORDER, tensors.INITIAL, tensors.PEEPHOLES),
    *(activations.ACTIVATIONS_AXIS, activations.ALPHA, activations.BETA),
    *(node.CLIP, node.INPUT_FORGET, node.LINEAR_BEFORE_RESET),
    *(node.OUTPUT_SEQUENCE, node.HIDDEN_SIZE, node.EXPLICIT, node.OUTPUTS),
    *(tensors.WEIGHTS, tensors.CONSTANT, tensors.HELD, tensors.FED, session.DIMENSIONS),
    *(numbers.DATA, numbers.ZEROS, numbers.EXTREMES, numbers.ALIKE),
    *(session.RERUNS, tensors.SEED, tensors.WEIGHTS_SEED, *session.EVENTFUL),
    *(*quantized.QUANTIZED, session.NEIGHBOURS, node.PLACEHOLDERS),
)
"""The axes of LSTM, GRU and RNN, in the order in which their effects are applied."""


class RecurrentSpec:
    """Common part of the specs of recurrent operators: frozen dataclasses whose fields default to the simplest value.

    A class without a field that is listed here has it as a constant. Raise ValueError for impossible values, and those
    that the operator version does not have. Whether the node is valid is decided by its document and by violations.

    axes
        One axis for each field, except ``op``, ``version`` and ``illegal``.
    operators
        The operators with such cases.
    lacking
        Axes that the operators do not have, but whose violations they have.
    illegal
        Id of the violation (see :mod:`..axes.violation`) by which the model breaks its document; empty for a valid one.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    axes: ClassVar[tuple[Axis, ...]]
    operators: ClassVar[tuple[str, ...]]
    lacking: ClassVar[tuple[Axis, ...]] = ()

    op: str
    version: int
    illegal: str
    type: str
    direction: str
    layout: int
    T: int
    N: int
    I: int
    H: int
    opset: str
    initial: str = "none"
    alpha: tuple[float, ...] | None = None
    clip: float | None = None
    output_sequence: int | None = None
    hidden_size: bool
    explicit: bool
    outputs: tuple[str, ...]
    weights: str
    constant: str = "weights"
    held: str = "fixed"
    fed: str = "all"
    data: str
    extremes: str = "none"
    reruns: str
    seed: int
    weights_seed: int
    quantization: str = "none"
    neighbours: str = "none"
    placeholders: bool = False

    def __post_init__(self) -> None:
        for name, (values, kinds, fits) in _checks(self._kind, self.op, self.version).items():
            value = getattr(self, name)
            if (value not in values or type(value) not in kinds) and not (fits and fits[0](value)):
                raise self.refused(name, fits[1] if fits else _either(values))
        row = {name: getattr(self, name) for name, _ in defaults_of(self._kind)}
        for rule in _laws(self.axes):
            if rule.hit(row):
                reason = " and ".join(f"{name} {getattr(self, name)!r}" for name in rule.reads)
                raise self.refused(rule.field, f"{rule.instead!r} with {reason}")
        if self.elements > MOST_ELEMENTS:
            sizes = f"T={self.T}, N={self.N}, I={self.I}, H={self.H}"
            raise ValueError(f"a case has {MOST_ELEMENTS} numbers at most, not {self.elements} ({sizes})")

    @property
    def _kind(self) -> Any:
        return type(self)

    def refused(self, name: str, there: str) -> ValueError:
        """Return an error with the possible values of a field."""
        return ValueError(f"{name} of {self.op}-{self.version} is {there}, not {getattr(self, name)!r}")

    def __repr__(self) -> str:
        """Return the fields that differ from their defaults, as Python source."""
        given = [f"{n}={v!r}" for n, usual in defaults_of(self._kind)[2:] if (v := getattr(self, n)) != usual]
        return f"{type(self).__name__}({', '.join([repr(self.op), repr(self.version), *given])})"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(_values_of(self._kind)(self))

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """Words that summarize the special features of the case."""
        marks = [axis.mark(self) for axis in _marking(self.axes)]
        marks.append(f"illegal-{self.illegal.replace('.', '-')}" if self.illegal else "")
        return tuple(m for m in marks if m)

    @property
    def spoils(self) -> bool:
        """Whether the case may corrupt a runtime's memory: every invalid model that is not refused may."""
        return bool(self.illegal)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, in hexadecimal."""
        return hashlib.sha256(_CANONICAL.encode(self.to_json()).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        pairs = zip(defaults_of(self._kind), _values_of(self._kind)(self), strict=True)
        given = {n: v for (n, default), v in pairs if v != default or n in ("op", "version", "type")}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in given.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle only the fields, without derived values."""
        return type(self).from_json, (self.to_json(),)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Any:
        """Return the spec of :meth:`to_json`. Raise TypeError for an unknown field."""
        plain: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in value.items()}
        return cls(**plain)

    @cached_property
    def node(self) -> Node:
        """The node of the case's model; of an invalid model, before its violation.

        Raise IllegalNode where the operator version does not define it.
        """
        operator = operator_version(self.op, self.version)
        written = {**(operator.defaults if self.explicit else {}), **self.attributes}
        outputs = tuple(name for name in self.outputs if name)
        return Node(operator.op_type, self.version, written, outputs, operator.domain)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes that its fields write into the node."""
        written: dict[str, Any] = {}
        for axis in self.axes:
            if axis.attribute and (value := getattr(self, axis.name)) != default_of(self, axis.name):
                written[axis.attribute] = list(value) if isinstance(value, tuple) else value
        return {**written, "hidden_size": self.H} if self.hidden_size else written

    @property
    def called(self) -> tuple[str, str]:
        """Domain and name of the operator in the model."""
        return document_of(self.op).key

    @cached_property
    def script(self) -> session.SessionScript:
        """The actions of its sessions."""
        script = session.SessionScript()
        for axis in self.axes:
            if axis.script is not None and getattr(self, axis.name) != default_of(self, axis.name):
                axis.script(self, script)
        return script

    @cached_property
    def constants(self) -> frozenset[str]:
        """The inputs that are initializers, if the case has them."""
        return tensors.constants_of(self)

    @property
    def static(self) -> bool:
        """Whether seq_length and batch_size are numbers in the model, not names."""
        raise NotImplementedError

    @cached_property
    def overridden(self) -> frozenset[str]:
        """Constants that are fed instead of using the model's values."""
        return self.constants if self.fed == "all" else self.constants & {self.fed}

    @property
    def alone(self) -> bool:
        """Whether each of its models runs in its own process."""
        return False

    @property
    def quantized(self) -> bool:
        """Whether some of its tensors are quantized."""
        return self.quantization != "none"

    @property
    def graph(self) -> str:
        """The graph around its node (:mod:`.graphs`); ``none`` for a single node."""
        return self.neighbours

    @property
    def directions(self) -> int:
        """The number of directions of the node."""
        return 2 if self.direction == "bidirectional" else 1

    @property
    def elements(self) -> int:
        """The number of elements of the tensors whose size depends on T, N, I and H."""
        D, G = self.directions, operator_version(self.op, self.version).gates
        steps = max(self.T, 1) * max(self.N, 1)
        return int(steps * (self.I + D * self.H) + D * G * self.H * (self.I + self.H + 2))

    @cached_property
    def id(self) -> str:
        """Stable, readable name that is a safe file name: operator, type, special features, shape, digest."""
        shape = f"T{self.T}N{self.N}I{self.I}H{self.H}"
        parts = [
            f"{document_of(self.op).prefix}-{self.version}",
            self.type,
            self.direction,
            *self.marks,
            shape,
            self.digest[:6],
        ]
        return ".".join(parts)

    @property
    def size(self) -> tuple[float, int]:
        """Number of elements of inputs, states and steps, with sizes of 0 counted as 1; then the number of marks."""
        return math.prod(max(n, 1) for n in (self.T, self.N, self.I, self.H)) * self.directions, len(self.marks)

    @property
    def graded(self) -> bool:
        return bool(self.data == "numerics")

    @property
    def shows_pattern(self) -> bool:
        """Whether Y has a few steps and units."""
        return "Y" in self.outputs and self.T >= FEW and self.H >= FEW and self.N > 0


@cache
def defaults_of(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the default of every field, by name."""
    return tuple((f.name, f.default) for f in fields(kind))


@cache
def _values_of(kind: Any) -> attrgetter[Any]:
    """Return the function that returns the values of all fields."""
    return attrgetter(*(name for name, _ in defaults_of(kind)))


@cache
def _laws(axes: tuple[Axis, ...]) -> tuple[Rule, ...]:
    """Return the rules that every case obeys."""
    return tuple(rule for rule in rules_of(axes) if rule.kind == "illegal")


@cache
def _marking(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    return tuple(axis for axis in axes if axis.marked)


@lru_cache(maxsize=None, typed=True)  # called for every case; typed, because 14.0 is not a version
def _checks(kind: Any, op: str, version: int) -> dict[str, tuple[tuple[Any, ...], frozenset[type], Any]]:
    """Return the listed values of fields in an operator version, each with their types, and the test for other values.

    Raise ValueError for an unknown version.
    """
    if op not in kind.operators:
        raise ValueError(f"op is {_either(kind.operators)}, not {op!r}")
    versions = versions_of(op)
    if version not in versions or type(version) is not int:
        raise ValueError(f"version of {op} is {_either(versions)}, not {version!r}")
    operator = operator_version(op, version)
    checks: dict[str, tuple[tuple[Any, ...], frozenset[type], Any]] = {}
    axes = {axis.name: axis.of(operator) for axis in kind.axes}
    for name, default in defaults_of(kind):
        axis = axes.get(name)
        if name in ("op", "version", "illegal"):
            continue
        if name == "outputs":
            checks[name] = (), frozenset(), _outputs_of(operator)
        elif axis is None:
            checks[name] = (default,), frozenset({type(default)}), None
        else:
            checks[name] = axis.values, frozenset(map(type, axis.values)), axis.fits
    return checks


def _outputs_of(operator: OperatorVersion) -> tuple[Any, str]:
    """Return the test for outputs by position, and its description."""
    names = operator.outputs

    def fits(value: Any) -> bool:
        given = value if isinstance(value, tuple) else ()
        in_place = all(name in ("", there) for name, there in zip(given, names, strict=False))
        return any(given) and len(given) <= len(names) and in_place

    return fits, f"{names}, with '' in the place of each that is not asked for"


def _either(values: Sequence[object]) -> str:
    *most, last = map(repr, values)
    return f"{', '.join(most)} or {last}" if most else last


@dataclass(frozen=True, repr=False)
class CaseSpec(RecurrentSpec):
    """One model of LSTM, GRU or RNN with its inputs. docs/cases.md describes the fields."""

    axes = RECURRENT_AXES
    operators = tuple(CELLS)

    op: str
    version: int
    type: str = "float32"
    direction: str = "forward"
    layout: int = 0
    T: int = 1
    N: int = 1
    I: int = 1
    H: int = 1
    opset: str = "first"
    bias: bool = False
    lengths: str = "absent"
    reach: str = "whole"
    row_order: str = "mixed"
    initial: str = "none"
    peepholes: bool = False
    activations: tuple[str, ...] | None = None
    alpha: tuple[float, ...] | None = None
    beta: tuple[float, ...] | None = None
    clip: float | None = None
    input_forget: int | None = None
    linear_before_reset: int | None = None
    output_sequence: int | None = None
    hidden_size: bool = True
    explicit: bool = False
    outputs: tuple[str, ...] = ("Y",)
    weights: str = "input"
    constant: str = "weights"
    held: str = "fixed"
    fed: str = "all"
    dimensions: str = "static"
    data: str = "dense"
    zeros: str = "none"
    extremes: str = "none"
    alike: str = "none"
    reruns: str = "none"
    seed: int = 0
    weights_seed: int = 0
    # Sessions that do more than run
    reweighed: bool = False
    nearly: str = "none"
    waves: bool = False
    beside: bool = False
    many: bool = False
    after_refusal: bool = False
    kept: bool = False
    # Quantized cases
    quantization: str = "none"
    weight_type: str = "same"
    channels: str = "tensor"
    bias_type: str = "same"
    quantized_tensors: str = "all"
    scales: str = "calibrated"
    zero_points: str = "calibrated"
    # The graph around the node
    neighbours: str = "none"
    placeholders: bool = False
    illegal: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        # 1 and 1.0 are the same attribute, so they must be the same case.
        if self.clip is not None:
            object.__setattr__(self, "clip", float(self.clip))
        for name in ("alpha", "beta"):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, tuple(map(float, value)))

    __hash__ = RecurrentSpec.__hash__

    @property
    def static(self) -> bool:
        """Whether seq_length and batch_size are numbers in the model, not names."""
        return self.dimensions == "static"
