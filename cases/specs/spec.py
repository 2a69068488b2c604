"""A case as a small value, from which its model and its inputs are rebuilt bit for bit."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import Any

import numpy as np

from ...reference import CELLS, Node, operator_version, versions_of

__all__ = ["FEW", "HIGHEST_SEED", "LONGEST", "MOST_ELEMENTS", "CaseSpec", "fits_float32"]

FEW = 3
"""Steps and units of which fewer show no pattern."""

_SWITCH = (False, True)
# What fields with few values may be, in the operator versions that have them.
_CHOICES: dict[str, tuple[object, ...]] = {
    "direction": ("forward", "reverse", "bidirectional"),
    "layout": (0, 1),
    "opset": ("first", "last"),
    "bias": _SWITCH,
    "lengths": ("absent", "full", "short", "ragged", "empty"),
    "input_forget": (None, 0, 1),
    "output_sequence": (None, 0, 1),
    "hidden_size": _SWITCH,
    "explicit": _SWITCH,
    "weights": ("input", "initializer"),
    "dimensions": ("static", "symbolic"),
    "data": (
        *("dense", "small", "large", "huge", "heavy", "one-sign", "exact", "numerics"),
        *("nan-row", "inf-row", "nan-padding"),
    ),
    "reruns": ("none", "data", "sizes", "growing"),
}
_ATTRIBUTES = ("layout", "input_forget", "linear_before_reset", "output_sequence")
"""Attributes that not every operator version has."""
LONGEST, HIGHEST_SEED = 2**20, 2**63 - 1
MOST_ELEMENTS = 2**26
"""Of the tensors of a case together: of float64, half a gigabyte."""
_BOUNDS = {"T": (0, LONGEST), "N": (0, LONGEST), "I": (1, LONGEST), "H": (1, LONGEST)}
_BOUNDS |= {"seed": (0, HIGHEST_SEED), "weights_seed": (0, HIGHEST_SEED)}
_NEEDS_NUMBERS = ("nan-row", "inf-row")
_LARGEST = float(np.finfo(np.float32).max)  # attributes hold float32


@dataclass(frozen=True)
class CaseSpec:
    """One model and its inputs. Every field has the simplest value as its default.

    Raises ValueError for what a field cannot be, or the operator version does not have. Whether numbers and names of
    functions are legal is for the node to say, and a violation for what breaks it.

    T, N, I, H
        seq_length, batch_size, input_size, hidden_size.
    opset
        ``first`` or ``last`` opset in which a node means this operator version.
    lengths
        Of sequence_lens: ``absent``, ``full``, ``short`` (equal, less than T), ``ragged`` (unsorted), ``empty``
        (ragged, a row of 0 and a row of 1 among them).
    initial
        Which initial states there are: ``none``, ``all``, or one name (``h``, ``c``).
    activations, alpha, beta, clip, input_forget, linear_before_reset, hidden_size, output_sequence
        Attributes; None where the node does not carry one.
    explicit
        Whether attributes that have their default value are written down all the same.
    outputs
        By position; an empty string stands for one that is not asked for.
    weights
        ``input``: all tensors are graph inputs; ``initializer``: W, R, B and P are constants of the model.
    dimensions
        ``static`` or ``symbolic`` (seq_length and batch_size have names).
    data
        How numbers are drawn: see :mod:`.data`.
    reruns
        What the session runs before the case's own inputs: ``none``, ``data`` (others of the same shape), ``sizes``
        (others of more steps and rows), ``growing`` (others of fewer).
    seed
        Of the inputs that change from run to run. Weights follow ``weights_seed``, so cases can share a model.
    illegal
        Id of the violation (see :mod:`.violations`) by which the model breaks its document; empty for a legal one.
    """

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
    dimensions: str = "static"
    data: str = "dense"
    reruns: str = "none"
    seed: int = 0
    weights_seed: int = 0
    illegal: str = ""

    def __post_init__(self) -> None:
        for name, (values, kinds) in _choices(self.op, self.version).items():
            value = getattr(self, name)
            if value not in values or type(value) not in kinds:  # True is no layout 1
                raise self._wrong(name, _either(values))
        for name, (least, most) in _BOUNDS.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise self._wrong(name, f"a whole number from {least} to {most}")
        if self.elements > MOST_ELEMENTS:
            sizes = f"T={self.T}, N={self.N}, I={self.I}, H={self.H}"
            raise ValueError(f"a case has {MOST_ELEMENTS} numbers at most, not {self.elements} ({sizes})")
        if self.activations is not None and not _all_of(self.activations, lambda value: isinstance(value, str)):
            raise self._wrong("activations", "None or a tuple of names, not an empty one")
        for name in ("alpha", "beta"):
            value = getattr(self, name)
            if value is not None and not _all_of(value, fits_float32):
                raise self._wrong(name, "None or a tuple of finite numbers, not an empty one")
            # 1 and 1.0 are the same attribute, so they are the same case.
            object.__setattr__(self, name, value if value is None else tuple(map(float, value)))
        if self.clip is not None:
            if not fits_float32(self.clip):
                raise self._wrong("clip", "None or a finite number")
            object.__setattr__(self, "clip", float(self.clip))
        linear = self.linear_before_reset
        if linear is not None and (type(linear) is not int or not -(2**63) <= linear < 2**63):
            raise self._wrong("linear_before_reset", "None or a whole number of 64 bits")
        if self.illegal and self.data != "dense":
            raise self._wrong("data", "'dense' in a forbidden model")
        if self.data == "nan-padding" and self.lengths == "absent":
            raise self._wrong("data", "nan-padding only where there are lengths")
        if self.data in _NEEDS_NUMBERS and not self.T * self.N:
            raise self._wrong("data", f"{_either(_NEEDS_NUMBERS)} only where T and N are not 0")
        known = operator_version(self.op, self.version).outputs
        given = self.outputs if isinstance(self.outputs, tuple) else ()
        out_of_place = any(name not in ("", there) for name, there in zip(given, known, strict=False))
        if not any(given) or len(given) > len(known) or out_of_place:
            raise self._wrong("outputs", f"{known}, with '' in the place of each that is not asked for")

    def _wrong(self, name: str, there: str) -> ValueError:
        return ValueError(f"{name} of {self.op}-{self.version} is {there}, not {getattr(self, name)!r}")

    def __repr__(self) -> str:
        """The fields that differ from their defaults, as Python has them: it can be pasted back."""
        given = [f"{n}={v!r}" for n, usual in _usual()[2:] if (v := getattr(self, n)) != usual]
        return f"CaseSpec({', '.join([repr(self.op), repr(self.version), *given])})"

    @cached_property
    def node(self) -> Node:
        """The node of the case's model; of a forbidden model, before its violation.

        Raises IllegalNode where the operator version does not define it.
        """
        attributes: dict[str, Any] = {
            "direction": None if self.direction == "forward" else self.direction,
            "hidden_size": self.H if self.hidden_size else None,
            "activations": None if self.activations is None else list(self.activations),
            "activation_alpha": None if self.alpha is None else list(self.alpha),
            "activation_beta": None if self.beta is None else list(self.beta),
            "clip": self.clip,
            "input_forget": self.input_forget,
            "linear_before_reset": self.linear_before_reset,
            "output_sequence": self.output_sequence,
            "layout": self.layout or None,
        }
        usual = operator_version(self.op, self.version).defaults if self.explicit else {}
        written = {**usual, **{name: value for name, value in attributes.items() if value is not None}}
        return Node(self.op, self.version, written, tuple(o for o in self.outputs if o))

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    @property
    def elements(self) -> int:
        """How many numbers its tensors have together: those that its size makes large."""
        D, G = self.directions, len(CELLS[self.op].gates)
        steps = max(self.T, 1) * max(self.N, 1)
        return steps * (self.I + D * self.H) + D * G * self.H * (self.I + self.H + 2)

    @cached_property
    def id(self) -> str:
        """A stable, readable name that is a safe file name: operator, type, what is special, shape, digest."""
        shape = f"T{self.T}N{self.N}I{self.I}H{self.H}"
        parts = [f"{self.op.lower()}-{self.version}", self.type, self.direction, *self.marks, shape, self.digest[:6]]
        return ".".join(parts)

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What a reader should know of the case at a glance."""
        marks = [
            "layout1" if self.layout else "",
            "bias" if self.bias else "",
            "" if self.lengths == "absent" else f"lengths-{self.lengths}",
            "" if self.initial == "none" else f"initial-{self.initial}",
            "peepholes" if self.peepholes else "",
            "activations" if self.activations else "",
            "clip" if self.clip is not None else "",
            "coupled" if self.input_forget else "",
            "linear-before-reset" if self.linear_before_reset else "",
            "" if "Y" in self.outputs else "no-Y",
            "" if self.data == "dense" else self.data,
            "" if self.reruns == "none" else f"after-other-{self.reruns}",
            f"illegal-{self.illegal.replace('.', '-')}" if self.illegal else "",
        ]
        return tuple(m for m in marks if m)

    @property
    def size(self) -> tuple[float, int]:
        """Elements of inputs, states and steps; a case of nothing at all comes first only among its like."""
        return math.prod(max(n, 1) for n in (self.T, self.N, self.I, self.H)) * self.directions, len(self.marks)

    @property
    def graded(self) -> bool:
        """Whether it is about accuracy alone."""
        return self.data == "numerics"

    @property
    def spoils(self) -> bool:
        """A runtime that takes a forbidden model may spoil its memory."""
        return bool(self.illegal)

    @property
    def shows_pattern(self) -> bool:
        """Whether Y has a few steps and units."""
        return "Y" in self.outputs and self.T >= FEW and self.H >= FEW and self.N > 0

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, in hexadecimal."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as plain values."""
        given = {n: v for n, usual in _usual() if (v := getattr(self, n)) != usual or n in ("op", "version", "type")}
        return {n: list(v) if isinstance(v, tuple) else v for n, v in given.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its fields alone, without what was derived from them."""
        return CaseSpec.from_json, (self.to_json(),)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> CaseSpec:
        """The spec of :meth:`to_json`. Raises TypeError for a field that there is not."""
        plain: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in value.items()}
        return CaseSpec(**plain)


def _all_of(values: object, holds: Callable[[object], bool]) -> bool:
    """Whether values are a tuple of what holds. No list of an attribute is empty: the attribute is absent then."""
    return isinstance(values, tuple) and values != () and all(map(holds, values))


def fits_float32(value: object) -> bool:
    """Whether a value is a finite number that an attribute, which holds float32, can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _LARGEST


@cache
def _usual() -> tuple[tuple[str, Any], ...]:
    """The name of every field, and its default."""
    return tuple((field.name, field.default) for field in fields(CaseSpec))


@lru_cache(maxsize=None, typed=True)  # asked for every case there is; and 14.0 is no version
def _choices(op: str, version: int) -> dict[str, tuple[tuple[object, ...], frozenset[type]]]:
    """What the fields with few values may be in an operator version, each with the types of its values. Raises
    ValueError where there is no such version."""
    if op not in CELLS:
        raise ValueError(f"op is {_either(tuple(CELLS))}, not {op!r}")
    if version not in versions_of(op) or type(version) is not int:
        raise ValueError(f"version of {op} is {_either(versions_of(op))}, not {version!r}")
    operator, cell = operator_version(op, version), CELLS[op]
    choices = {
        "type": operator.types,
        **_CHOICES,
        "initial": ("none", "all", "h", *cell.inner),
        "peepholes": _SWITCH if cell.peepholes else (False,),
    }
    choices |= {name: (usual,) for name, usual in _usual() if name in _ATTRIBUTES and name not in operator.attributes}
    return {name: (values, frozenset(map(type, values))) for name, values in choices.items()}


def _either(values: Sequence[object]) -> str:
    *most, last = map(repr, values)
    return f"{', '.join(most)} or {last}" if most else last
