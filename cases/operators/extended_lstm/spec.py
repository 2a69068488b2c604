"""A case of ExtendedLSTM: the values of its axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....reference import document_of
from ...specs.features import case_features
from ...specs.illegal import violation_of
from ...specs.spec import RecurrentSpec
from .axes import EXTENDED_AXES

OP_TYPE, VERSION = "ExtendedLSTM", 1


@dataclass(frozen=True, repr=False)
class ExtendedSpec(RecurrentSpec):
    """One model of ExtendedLSTM and its inputs. Facts that the document holds fast, and those that its cases do not
    vary, are no fields."""

    axes = EXTENDED_AXES
    operators = (OP_TYPE,)
    type, direction, layout, outputs = "float32", "bidirectional", 0, ("Y",)
    opset, weights_seed = "first", 0
    shows_pattern = True

    op: str
    version: int
    about: str = ""
    T: int = 4
    N: int = 1
    I: int = 3
    H: int = 3
    x: tuple[float, int] = (0.0, 0)
    w: tuple[float, int] = (0.0, 0)
    r: tuple[float, int] = (0.0, 0)
    b: tuple[float, int] = (0.0, 0)
    y: tuple[float, int] | None = None
    fill: tuple[tuple[str, float], ...] = ()
    data: str = "dense"
    bias: bool = True
    hidden_size: bool = True
    weights: str = "initializer"
    reruns: str = "none"
    open: bool = False
    old: bool = False
    explicit: bool = False
    seed: int = 0
    illegal: str = ""

    __hash__ = RecurrentSpec.__hash__

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.data != "dense" and not self.T * self.N * self.I * self.x[0]:
            raise self.refused("data", "'dense' where X is empty or has no scale")

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the node: direction, and the scale and zero point of each quantized tensor."""
        codecs = {name: codec for name in "xwrby" if (codec := getattr(self, name)) is not None}
        return {
            "direction": self.direction,
            **{f"{name}_scale": scale for name, (scale, _) in codecs.items()},
            **{f"{name}_zero_point": zero_point for name, (_, zero_point) in codecs.items()},
            **super().attributes,
        }

    @property
    def static(self) -> bool:
        """Whether sizes of the model have no names: several runs may need other sizes."""
        return not (self.open or self.reruns == "sizes")

    @property
    def called(self) -> tuple[str, str]:
        """Also its old domain and name."""
        document = document_of(OP_TYPE)
        return document.former[0] if self.old else document.key

    @property
    def spoils(self) -> bool:
        """Tell whether an implementation that looks at no shape may spoil its memory with it."""
        violation = violation_of(self)
        return violation.spoils if violation else bool(self.N != 1)

    @property
    def alone(self) -> bool:
        """True for what may spoil memory."""
        return self.spoils

    @cached_property
    def features(self) -> frozenset[str]:
        """The features of the case, as the clause table and files of expected failures name it."""
        violation = violation_of(self)
        illegal = {"illegal", f"illegal:{violation.feature}"} if violation else set()
        return frozenset({*case_features(self), f"about-{self.about}", *illegal})

    @property
    def size(self) -> tuple[float, int]:
        """Elements of inputs, states and steps."""
        return float(math.prod(max(n, 1) for n in (self.T, self.N, self.I, self.H)) * 2), len(self.features)

    @cached_property
    def id(self) -> str:
        """The text as others have it; of what is special, what it is about."""
        shape = f"T{self.T}N{self.N}I{self.I}H{self.H}"
        subject = f"illegal-{self.illegal}" if self.illegal else self.about
        return f"{document_of(OP_TYPE).prefix}-{VERSION}.{self.type}.{subject}.{shape}.{self.digest[:6]}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults; there are one operator and one version."""
        return {name: value for name, value in super().to_json().items() if name not in ("op", "version")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Any:
        """Return the spec of :meth:`to_json`."""
        return super().from_json({"op": OP_TYPE, "version": VERSION, **value})


def extended(about: str, **fields: Any) -> Any:
    """Return a case that is about something. Raise ValueError."""
    return ExtendedSpec(OP_TYPE, VERSION, about=about, **fields)
