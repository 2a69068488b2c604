"""Case of ExtendedLSTM: the values of its axes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ....reference import document_of
from ....reference.documents.clauses import ILLEGAL
from ...specs.features import case_features, node_features, violation_of
from ...specs.model import inputs_of
from ...specs.spec import RecurrentSpec
from .axes import EXTENDED_AXES

OP_TYPE, VERSION = "ExtendedLSTM", 1


@dataclass(frozen=True, repr=False)
class ExtendedSpec(RecurrentSpec):
    """One model of ExtendedLSTM and its inputs. Facts that the document fixes, or that no case varies, are no
    fields."""

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
        """Whether sizes of the model have no names; several runs may have different sizes."""
        return not (self.open or self.reruns == "sizes")

    @property
    def called(self) -> tuple[str, str]:
        """The domain and name of the node, current or former."""
        document = document_of(OP_TYPE)
        return document.former[0] if self.old else document.key

    @property
    def spoils(self) -> bool:
        """Whether an implementation that does not check shapes may corrupt its memory with the case."""
        violation = violation_of(self)
        return violation.spoils if violation else bool(self.N != 1)

    @property
    def alone(self) -> bool:
        """Whether the case runs in its own process, because it may corrupt memory."""
        return self.spoils

    @cached_property
    def features(self) -> frozenset[str]:
        """The features of the case, as in the clause table and in files of expected failures."""
        about = f"about-{self.about}"
        if violation := violation_of(self):
            return frozenset({about, "illegal", f"{ILLEGAL}{violation.feature}"})
        return case_features(self) | node_features(self.node, inputs_of(self), self.axes) | {about}

    @property
    def size(self) -> tuple[float, int]:
        """Number of elements of inputs, states and steps; then the number of features."""
        return float(math.prod(max(n, 1) for n in (self.T, self.N, self.I, self.H)) * 2), len(self.features)

    @cached_property
    def id(self) -> str:
        """The id: like other ids, with the subject of the case in place of features."""
        shape = f"T{self.T}N{self.N}I{self.I}H{self.H}"
        subject = f"illegal-{self.illegal}" if self.illegal else self.about
        return f"{document_of(OP_TYPE).prefix}-{VERSION}.{self.type}.{subject}.{shape}.{self.digest[:6]}"

    def to_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults; operator and version are left out, because there is only
        one."""
        return {name: value for name, value in super().to_json().items() if name not in ("op", "version")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Any:
        return super().from_json({"op": OP_TYPE, "version": VERSION, **value})


def extended(about: str, **fields: Any) -> Any:
    """Return a case with a subject. Raise ValueError."""
    return ExtendedSpec(OP_TYPE, VERSION, about=about, **fields)
