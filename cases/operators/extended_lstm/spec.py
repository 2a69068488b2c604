"""A case of ExtendedLSTM: the values of its axes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ....reference import document_of, versions_of
from ...specs.illegal import violation_of
from ...specs.spec import RecurrentSpec, spec_class
from .axes import EXTENDED_AXES, is_open

OP_TYPE, VERSION = "ExtendedLSTM", 1


class _ExtendedBase(RecurrentSpec):
    """One model of ExtendedLSTM and its inputs; its fields are those of :mod:`.axes`. What the document holds fast, and
    what its cases do not vary, are no fields."""

    operators = (OP_TYPE,)
    type, direction, layout, outputs = "float32", "bidirectional", 0, ("Y",)
    opset, held, weights_seed, quantization = "first", "fixed", 0, "none"
    shows_pattern = True

    @classmethod
    def known_versions(cls, op: str) -> Sequence[int]:
        """The only one."""
        return versions_of(OP_TYPE)

    @property
    def dimensions(self) -> str:
        """Named where sizes are open."""
        return "symbolic" if is_open(self) else "static"

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
        features = {name for axis in self.axes for name, there in axis.used(self).items() if there}
        violation = violation_of(self)
        if violation:
            features |= {"illegal", f"illegal:{violation.feature}"}
        return frozenset(features)

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
        """The fields that differ from their defaults; there are one operator and one version."""
        return {name: value for name, value in super().to_json().items() if name not in ("op", "version")}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Any:
        """The spec of :meth:`to_json`."""
        return super().from_json({"op": OP_TYPE, "version": VERSION, **value})


ExtendedSpec: Any = spec_class("ExtendedSpec", EXTENDED_AXES, _ExtendedBase, __name__)


def extended(about: str, **fields: Any) -> Any:
    """A case that is about something. Raises ValueError."""
    return ExtendedSpec(OP_TYPE, VERSION, about=about, **fields)
