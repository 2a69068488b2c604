"""toy.example::LSTM: Leaky by a name that another domain has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from onnxspec.cases import register as register_cases
from onnxspec.reference import Node, register
from onnxspec.reference.documents import Document

from ..cases_leaky import LeakyFamily, LeakySpec
from ..reference_leaky import DOMAIN, VERSION, Leaky

OP = f"{DOMAIN}::LSTM"


class Named(Leaky):
    document = Document("LSTM", DOMAIN, Path(__file__).with_name("clauses.toml"), {1: replace(VERSION, op_type="LSTM")})


@dataclass(frozen=True)
class NamedSpec(LeakySpec):
    op = OP

    @property
    def node(self) -> Node:
        return Node("LSTM", 1, {"decay": self.decay}, ("Y",), DOMAIN)


class NamedFamily(LeakyFamily):
    operators = (OP,)
    spec = NamedSpec

    def profile(self, name: str, op: str, version: int) -> list[LeakySpec]:
        own = (
            {key: value for key, value in spec.to_json().items() if key != "op"}
            for spec in super().profile(name, op, version)
        )
        return [NamedSpec(**fields) for fields in own]


register(Named())
register_cases(NamedFamily())
