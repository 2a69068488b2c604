"""A case as a small value, from which its model and its inputs are rebuilt bit for bit."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import Any

from ..reference import CELLS, OPERATORS, Node, operator_version, versions_of

__all__ = ["CaseSpec"]

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
        *("dense", "small", "large", "huge", "one-sign", "exact", "numerics"),
        *("nan-row", "inf-row", "nan-padding"),
    ),
    "reruns": ("none", "data", "sizes"),
}
_ATTRIBUTES = ("layout", "input_forget", "linear_before_reset", "output_sequence")
"""Attributes that not every operator version has."""
_LEAST = {"T": 0, "N": 0, "I": 1, "H": 1, "seed": 0, "weights_seed": 0}
_LISTS = (("activations", str, "names"), ("alpha", (int, float), "numbers"), ("beta", (int, float), "numbers"))


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
        (others of another length and batch size).
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
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if type(value) is not int or value < least:
                raise self._wrong(name, f"a whole number from {least} on")
        for name, of, words in _LISTS:
            value = getattr(self, name)
            if value is not None and not (isinstance(value, tuple) and all(isinstance(v, of) for v in value)):
                raise self._wrong(name, f"None or a tuple of {words}")
        if self.clip is not None and type(self.clip) not in (int, float):
            raise self._wrong("clip", "None or a number")
        if self.linear_before_reset is not None and type(self.linear_before_reset) is not int:
            raise self._wrong("linear_before_reset", "None or a whole number")
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


@cache
def _usual() -> tuple[tuple[str, Any], ...]:
    """The name of every field, and its default."""
    return tuple((field.name, field.default) for field in fields(CaseSpec))


@lru_cache(maxsize=None, typed=True)  # asked for every case there is; and 14.0 is no version
def _choices(op: str, version: int) -> dict[str, tuple[tuple[object, ...], frozenset[type]]]:
    """What the fields with few values may be in an operator version, each with the types of its values. Raises
    ValueError where there is no such version."""
    if op not in OPERATORS:
        raise ValueError(f"op is {_either(OPERATORS)}, not {op!r}")
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
