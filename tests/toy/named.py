"""toy.example::LSTM: Leaky by a name that another domain has, whose input has another name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from onnxspec.cases import register as register_cases
from onnxspec.reference import Node, register
from onnxspec.reference.documents import Document

from .leaky import DOMAIN, VERSION, Leak, Leaky, LeakyFamily, LeakySpec

OP = f"{DOMAIN}::LSTM"
_FORMS = {"signal": replace(VERSION.tensors["X"], name="signal"), "Y": VERSION.tensors["Y"]}
NAMED = replace(VERSION, op_type="LSTM", inputs=("signal",), required=frozenset({"signal"}), tensors=_FORMS)


class NamedLeak(Leak):
    operator = NAMED

    @property
    def signal(self) -> Any:
        return self.X


class Named(Leaky):
    document = Document("LSTM", DOMAIN, Path(__file__).with_name("named.toml"), {1: NAMED})

    def resolve(self, node: Node, inputs: Mapping[str, Any], interpretations: Any = None) -> Leak:
        leak = super().resolve(node, {"X": inputs["signal"]})
        return NamedLeak(leak.X, leak.decay)


@dataclass(frozen=True)
class NamedSpec(LeakySpec):
    op = OP


class NamedFamily(LeakyFamily):
    operators = (OP,)
    spec = NamedSpec


register(Named())
register_cases(NamedFamily())
