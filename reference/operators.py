"""Operator versions: what each defines, read from the schemas that ``onnx`` registers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any

import onnx.defs
import onnx.helper

from .errata import Default, corrected
from .formats import FORMATS

__all__ = ["EXTENDED", "OPERATORS", "OWN", "OperatorVersion", "UnknownOperator", "operator_version", "versions_of"]

# ONNX's operators that the reference computes.
OPERATORS: tuple[str, ...] = ("LSTM", "GRU", "RNN")

EXTENDED: tuple[str, ...] = ("ExtendedLSTM",)
"""Operators of other domains, which ``onnx`` has no schemas of: they stand in :data:`OWN`."""

_AMD_QUARK = "com.amd.quark"


class UnknownOperator(ValueError):
    """No such operator, or no such version of it."""


@dataclass(frozen=True)
class OperatorVersion:
    """(domain, op_type, since_version), and what that version defines.

    attributes
        Name to kind: ``INT``, ``FLOAT``, ``FLOATS``, ``STRING`` or ``STRINGS``.
    defaults
        Name to value, for attributes that have one: what the schema registers, errata corrected.
    inputs, outputs
        Formal names in order; ``required`` holds those inputs that must be there, ``required_outputs`` those outputs.
    types
        NumPy's names of the types that T may be.
    """

    domain: str
    op_type: str
    since_version: int
    attributes: Mapping[str, str] = field(hash=False)
    defaults: Mapping[str, Default] = field(hash=False)
    inputs: tuple[str, ...]
    required: frozenset[str]
    outputs: tuple[str, ...]
    required_outputs: frozenset[str]
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


# What the documents say that onnx does not know. y_scale and y_zero_point are in no document, but every implementation
# demands them (clause extendedlstm.output-quantization).
OWN: dict[tuple[str, int], OperatorVersion] = {
    ("ExtendedLSTM", 1): OperatorVersion(
        domain=_AMD_QUARK,
        op_type="ExtendedLSTM",
        since_version=1,
        attributes=MappingProxyType(
            {"direction": "STRING", **dict.fromkeys(("hidden_size", "input_forget", "layout"), "INT")}
            | {f"{name}_{part}": kind for name in "xwrby" for part, kind in (("scale", "FLOAT"), ("zero_point", "INT"))}
        ),
        defaults=MappingProxyType({"direction": "forward", "input_forget": 0, "layout": 0}),
        inputs=("X", "W", "R", "B"),
        required=frozenset({"X", "W", "R"}),
        outputs=("Y",),
        required_outputs=frozenset(),
        types=("float32",),
    )
}


@cache
def versions_of(op_type: str, domain: str = "") -> tuple[int, ...]:
    """Every since_version of an operator, ascending; of one that only another domain has, whether or not that is named.

    Raises UnknownOperator.
    """
    own = tuple(v for (op, v), o in sorted(OWN.items()) if op == op_type and domain in ("", o.domain))
    if own:
        return own
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
    if (op_type, since_version) in OWN:
        return OWN[op_type, since_version]
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
        defaults=MappingProxyType(_defaults(schema)),
        inputs=tuple(i.name for i in schema.inputs),
        required=frozenset(i.name for i in schema.inputs if i.option != optional),
        outputs=tuple(o.name for o in schema.outputs),
        required_outputs=frozenset(o.name for o in schema.outputs if o.option != optional),
        types=tuple(n for t, n in names.items() if t in {strings.get(s) for s in allowed}),
    )


def _defaults(schema: onnx.defs.OpSchema) -> dict[str, Default]:
    """The default values of a schema's attributes, errata corrected."""
    found = {}
    for name, attribute in schema.attributes.items():
        given = attribute.default_value
        registered = _plain(onnx.helper.get_attribute_value(given) if given.type else None)
        if registered is not None:
            value = corrected(schema.name, schema.since_version, name, registered)
            if value is not None:
                found[name] = value
    return found


def _plain(value: Any) -> Default | None:
    """An attribute's value as Python holds it; None where it is empty."""
    if isinstance(value, bytes):
        return value.decode("utf-8")
    if value is None or isinstance(value, (int, float)):
        return value
    return tuple(v.decode("utf-8") for v in value) or None
