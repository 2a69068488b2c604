"""Operator versions of recurrent operators: those whose cases are rows of axes."""

from __future__ import annotations

from onnxspec.cases import family_of, operator_versions


def recurrent_versions(domain: str | None = "") -> list[tuple[str, int]]:
    """Return every recurrent (operator, since_version) of a domain, or of all domains if it is None."""
    return [(op, v) for op, v in operator_versions(domain) if getattr(family_of(op).spec, "axes", ())]
