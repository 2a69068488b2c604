"""A case as a small value, from which its model and its inputs are rebuilt bit for bit: an operator version, and the
values of its axes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import Field as DataclassField
from dataclasses import field, fields, make_dataclass
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar

from ...reference import CELLS, Node, document_of, operator_version, versions_of
from ..axes.axis import Axis, acting, marking
from ..axes.course import CourseDraft
from ..axes.recurrent import RECURRENT_AXES

_CANONICAL = json.JSONEncoder(sort_keys=True)

FEW = 3
"""Steps and units of which fewer show no pattern."""


class Specification:
    """Common part of the specs of all operators. Fields are those of its axes; every default is the simplest value.

    Raises ValueError for impossible values, and those that the operator version does not have. Whether the node is
    valid is decided by its document and by violations.

    axes
        Of the operators whose cases have this class.
    """

    axes: ClassVar[tuple[Axis, ...]]

    if TYPE_CHECKING:  # a dataclass is made of the axes when the class is (spec_class)
        __dataclass_fields__: ClassVar[dict[str, DataclassField[Any]]]
        op: str
        version: int
        illegal: str

        def __init__(self, op: str, version: int, *values: Any, **named: Any) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

    def __post_init__(self) -> None:
        for name, (values, kinds) in _choices(self._own, self.op, self.version).items():
            value = getattr(self, name)
            if value not in values or type(value) not in kinds:  # True is no layout 1
                raise self.refused(name, _either(values))
        for refuse in acting(self.axes, "refusal"):
            if (refusal := refuse(self)) is not None:
                raise self.refused(*refusal)

    @property
    def _own(self) -> Any:
        return type(self)

    def refused(self, name: str, there: str) -> ValueError:
        """Return an error with the possible values of a field."""
        return ValueError(f"{name} of {self.op}-{self.version} is {there}, not {getattr(self, name)!r}")

    @classmethod
    def known_versions(cls, op: str) -> Sequence[int]:
        """Return the versions of an operator that cases of this class may have. Raise ValueError for another
        operator."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the fields that differ from their defaults, as Python source."""
        given = [f"{n}={v!r}" for n, usual in defaults_of(self._own)[2:] if (v := getattr(self, n)) != usual]
        return f"{type(self).__name__}({', '.join([repr(self.op), repr(self.version), *given])})"

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(_values_of(self._own)(self))

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """The words that a reader should know of the case at a glance."""
        marks = [mark(self) for mark in marking(self.axes)]
        marks.append(f"illegal-{self.illegal.replace('.', '-')}" if self.illegal else "")
        return tuple(m for m in marks if m)

    @property
    def spoils(self) -> bool:
        """A runtime that takes a forbidden model may spoil its memory."""
        return bool(self.illegal)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, in hexadecimal."""
        return hashlib.sha256(_CANONICAL.encode(self.to_json()).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults, as plain values."""
        pairs = zip(defaults_of(self._own), _values_of(self._own)(self), strict=True)
        given = {n: v for (n, default), v in pairs if v != default or n in ("op", "version", "type")}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in given.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields alone, without derived values."""
        return type(self).from_json, (self.to_json(),)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Any:
        """Return the spec of :meth:`to_json`. Raise TypeError for an unknown field."""
        plain: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in value.items()}
        return cls(**plain)


def spec_class(name: str, axes: tuple[Axis, ...], base: type[Specification], module: str) -> Any:
    """Return the frozen dataclass of cases that have these axes."""
    own = [(f.name, f.type, field(default=f.default)) for axis in axes for f in axis.fields]
    all_fields: list[Any] = [("op", str), ("version", int), *own, ("illegal", str, field(default=""))]
    names = {"axes": axes, "__module__": module, "__doc__": base.__doc__, "__hash__": base.__hash__}
    return make_dataclass(name, all_fields, bases=(base,), frozen=True, repr=False, namespace=names)


@cache
def defaults_of(kind: Any) -> tuple[tuple[str, Any], ...]:
    """Return the default of every field, by name."""
    return tuple((f.name, f.default) for f in fields(kind))


@cache
def _values_of(kind: Any) -> attrgetter[Any]:
    """Return the function that gives the values of all fields."""
    return attrgetter(*(name for name, _ in defaults_of(kind)))


@lru_cache(maxsize=None, typed=True)  # asked for every case there is; and 14.0 is no version
def _choices(kind: Any, op: str, version: int) -> dict[str, tuple[tuple[object, ...], frozenset[type]]]:
    """Return the possible values of fields with few in an operator version, each with its types. Raise ValueError for
    an unknown version."""
    versions = kind.known_versions(op)
    if version not in versions or type(version) is not int:
        raise ValueError(f"version of {op} is {_either(versions)}, not {version!r}")
    operator = operator_version(op, version)
    choices = {name: values for axis in kind.axes for name, values in axis.choices(operator).items()}
    return {name: (values, frozenset(map(type, values))) for name, values in choices.items()}


def _either(values: Sequence[object]) -> str:
    *most, last = map(repr, values)
    return f"{', '.join(most)} or {last}" if most else last


class RecurrentSpec(Specification):
    """Model of LSTM, GRU or RNN with its inputs; its fields are those of :mod:`..axes.recurrent`.

    operators
        The operators with such cases.
    illegal
        Id of the violation (see :mod:`..axes.violation`) by which the model breaks its document; empty for a valid one.
    lacking
        Axes that its operators do not have, and whose violations they have all the same.
    """

    operators: ClassVar[tuple[str, ...]] = tuple(CELLS)
    lacking: ClassVar[tuple[Axis, ...]] = ()

    @classmethod
    def known_versions(cls, op: str) -> Sequence[int]:
        """Versions of its operators."""
        if op not in cls.operators:
            raise ValueError(f"op is {_either(cls.operators)}, not {op!r}")
        return versions_of(op)

    @cached_property
    def node(self) -> Node:
        """The node of the case's model; of a forbidden model, before its violation.

        Raises IllegalNode where the operator version does not define it.
        """
        operator = operator_version(self.op, self.version)
        written = dict(operator.defaults) if self.explicit else {}
        for axis in self.axes:
            written |= axis.attributes(self)
        outputs = tuple(name for name in self.outputs if name)
        return Node(operator.op_type, self.version, written, outputs, operator.domain)

    @property
    def called(self) -> tuple[str, str]:
        """Domain and name of the operator as its model has them."""
        return document_of(self.op).key

    @cached_property
    def course(self) -> CourseDraft:
        """The course of its sessions."""
        draft = CourseDraft()
        for axis in self.axes:
            axis.course(self, draft)
        return draft

    @cached_property
    def constants(self) -> frozenset[str]:
        """The inputs that are initializers, where the case has them."""
        names = frozenset[str]()
        for axis in self.axes:
            names = axis.constants(self, names)
        return names

    @cached_property
    def overridden(self) -> frozenset[str]:
        """Constants that are fed in place of the model's numbers."""
        return self.constants if self.fed == "all" else self.constants & {self.fed}

    @property
    def alone(self) -> bool:
        """Whether each of its models runs in a process of its own."""
        return False

    @property
    def quantized(self) -> bool:
        """Tell whether there are levels in the place of some of its numbers."""
        return getattr(self, "quantization", "none") != "none"

    @property
    def graph(self) -> str:
        """The graph that its node stands in (:mod:`.graphs`); ``none`` of a lone one."""
        return str(getattr(self, "neighbours", "none"))

    @property
    def directions(self) -> int:
        """The number that the node has."""
        return 2 if self.direction == "bidirectional" else 1

    @property
    def elements(self) -> int:
        """The number of elements of its tensors together: those that its size makes large."""
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
        """Elements of inputs, states and steps; a case of nothing at all comes first only among its like."""
        return math.prod(max(n, 1) for n in (self.T, self.N, self.I, self.H)) * self.directions, len(self.marks)

    @property
    def graded(self) -> bool:
        """Tell whether it is about accuracy alone."""
        return bool(self.data == "numerics")

    @property
    def shows_pattern(self) -> bool:
        """Tell whether Y has a few steps and units."""
        return "Y" in self.outputs and self.T >= FEW and self.H >= FEW and self.N > 0


if TYPE_CHECKING:

    class CaseSpec(RecurrentSpec):
        """See :class:`RecurrentSpec`."""

else:
    CaseSpec = spec_class("CaseSpec", RECURRENT_AXES, RecurrentSpec, __name__)
