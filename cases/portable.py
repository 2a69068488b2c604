"""Cases as one line of text, which rebuilds them bit for bit anywhere.

The line is the JSON of the case's spec: the operator version, and every field that differs from its default.

::

    {"op":"GRU","version":14,"type":"float32","T":3,"H":4,"lengths":"ragged"}

A line may come from an untrusted source, so it is checked completely: each field's name, type and range, all sizes
together, and that the document allows the case, or that the case has exactly its violation.
"""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import msgspec

from ..reference import IllegalNode, operator_names, resolve, versions_of
from .specs.case import Spec
from .specs.family import build_case, family_of

_LIKE = '{"op":"GRU","version":14,"type":"float32","T":3}'


class CaseTextError(ValueError):
    """The JSON is not a case; the message has the reason in one line."""


def case_text(spec: Spec) -> str:
    """Return the line of a case."""
    return json.dumps({"op": spec.op, "version": spec.version, **spec.to_json()}, separators=(",", ":"))


def case_from_json(value: object) -> Spec:
    """Return the case of the JSON of such a line. Raise CaseTextError."""
    if not isinstance(value, dict):
        raise CaseTextError(f"the JSON of a case is an object, like {_LIKE}")
    spec = _spec_of(value)
    check_case(spec)
    return spec


def check_case(spec: Spec) -> None:
    """Check that a case can be built: its node is valid, or its violation can be made. Raise CaseTextError."""
    own = family_of(spec.op).violations(spec.op, spec.version)
    if spec.illegal and spec.illegal not in {violation.id for violation in own}:
        raise CaseTextError(f"there is no violation {_short(spec.illegal)} of {spec.op}-{spec.version}")
    try:
        legal: Any = replace(spec, illegal="")  # type: ignore[type-var]
        first = build_case(legal).trial.first
        for feed in first.feeds:
            resolve(first.node, feed.inputs)
    except IllegalNode as error:
        raise CaseTextError(f"{error} ({error.clause}), and no violation is named that does so") from None
    try:
        build_case(spec)
    except (KeyError, IndexError) as error:
        raise CaseTextError(f"the violation {spec.illegal!r} cannot be made in it: there is no {error}") from None


def _spec_of(value: dict[str, Any]) -> Spec:
    op, version = value.get("op"), value.get("version")
    if not isinstance(op, str) or op not in operator_names():
        raise CaseTextError(f"op is {' or '.join(operator_names())}, not {_short(op)}")
    if type(version) is not int or version not in versions_of(op):
        numbers = " or ".join(map(str, versions_of(op)))
        raise CaseTextError(f"version of {op} is {numbers}, not {_short(version)}")
    kind = family_of(op).spec
    own = {"op", "version", "illegal", *(axis.name for axis in getattr(kind, "axes", ()))}
    names = [field.name for field in fields(kind) if field.name in own or not hasattr(kind, "axes")]
    for name in value:
        if name not in (*names, "op", "version"):
            raise CaseTextError(f"a case of {op} has no field {_short(name)}; it has {', '.join(names)}")
    try:
        spec: Spec = msgspec.convert({n: v for n, v in value.items() if n in names}, type=kind)
        return spec
    except msgspec.ValidationError as error:
        raise CaseTextError(str(error)) from None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
