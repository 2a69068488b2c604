"""Operator versions: what each defines, read from the schemas that ``onnx`` registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

import onnx.defs

from .formats import FORMATS

__all__ = ["OPERATORS", "OperatorVersion", "UnknownOperator", "operator_version", "versions_of"]

# Operators that the reference computes.
OPERATORS: tuple[str, ...] = ("LSTM",)


class UnknownOperator(ValueError):
    """No such operator, or no such version of it."""


@dataclass(frozen=True)
class OperatorVersion:
    """(domain, op_type, since_version), and what that version defines.

    attributes
        Name to kind: ``INT``, ``FLOAT``, ``FLOATS``, ``STRING`` or ``STRINGS``.
    inputs, outputs
        Formal names in order; ``required`` holds those inputs that must be there.
    types
        NumPy's names of the types that T may be.
    """

    domain: str
    op_type: str
    since_version: int
    attributes: Mapping[str, str] = field(hash=False)
    inputs: tuple[str, ...]
    required: frozenset[str]
    outputs: tuple[str, ...]
    types: tuple[str, ...]

    @property
    def name(self) -> str:
        """``LSTM-14``; with its domain in front where that is not ONNX's own."""
        prefix = f"{self.domain}::" if self.domain else ""
        return f"{prefix}{self.op_type}-{self.since_version}"

    @property
    def last_opset(self) -> int:
        """The last opset before the operator's next version; for the newest version its own, since what onnx adds later
        must not change what is built here."""
        later = [v for v in versions_of(self.op_type, self.domain) if v > self.since_version]
        return later[0] - 1 if later else self.since_version


@cache
def versions_of(op_type: str, domain: str = "") -> tuple[int, ...]:
    """Every since_version of an operator, ascending. Raises UnknownOperator."""
    if op_type in OPERATORS:
        found = {
            schema.since_version
            for schema in onnx.defs.get_all_schemas_with_history()
            if schema.name == op_type and schema.domain == domain
        }
        if found:
            return tuple(sorted(found))
    raise UnknownOperator(f"no operator {op_type!r} in domain {domain!r}; there are: {', '.join(OPERATORS)}")


@cache
def operator_version(op_type: str, since_version: int, domain: str = "") -> OperatorVersion:
    """One version of an operator. Raises UnknownOperator where there is none of exactly that since_version."""
    known = versions_of(op_type, domain)
    if since_version not in known:
        raise UnknownOperator(f"no {op_type}-{since_version}; versions are {', '.join(map(str, known))}")
    schema = onnx.defs.get_schema(op_type, since_version, domain)
    names = {FORMATS[n].onnx_type: n for n in FORMATS}
    strings = {"tensor(float16)": 10, "tensor(bfloat16)": 16, "tensor(float)": 1, "tensor(double)": 11}
    allowed = next(c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == "T")
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    return OperatorVersion(
        domain=domain,
        op_type=op_type,
        since_version=since_version,
        attributes=MappingProxyType({n: str(a.type).rpartition(".")[2] for n, a in schema.attributes.items()}),
        inputs=tuple(i.name for i in schema.inputs),
        required=frozenset(i.name for i in schema.inputs if i.option != optional),
        outputs=tuple(o.name for o in schema.outputs),
        types=tuple(n for t, n in names.items() if t in {strings.get(s) for s in allowed}),
    )
