"""Operators that other distributions bring, found by their entry points in the group ``onnxspec.operators``.

An entry point names a module, which registers an operator and its cases when it is imported: see docs/operators.md.
"""

from __future__ import annotations

import importlib
import warnings
from importlib import metadata

from ..reference import clauses_of, forget_operator, operator_names, versions_of
from ..reference.documents.clauses import ILLEGAL
from .axes.violation import DUE
from .specs.family import family_of
from .specs.family import forget as forget_cases

GROUP = "onnxspec.operators"
"""The group of entry points."""


class OperatorWarning(UserWarning):
    """An operator of another distribution cannot be loaded; the message says which, whose, and why."""


def load_operators() -> tuple[str, ...]:
    """Import the operators of other distributions, in the order of names, so that the order of installation does not
    decide which of two operators of one name keeps the bare name. Skip, with an OperatorWarning, those that fail or
    contradict themselves.

    Return the names of the loaded entry points.
    """
    loaded = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        known = operator_names()
        try:
            importlib.import_module(entry.module)
            for op in operator_names()[len(known) :]:
                _require_whole(op)
        except Exception as error:  # whatever it is, it is theirs, and costs nobody else's operators
            for op in operator_names()[len(known) :]:
                forget_cases(op)
                forget_operator(op)
            owner = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
            words = " ".join(str(error).split())
            what = f"operator {entry.name!r}{owner} is left out: {type(error).__name__}: {words}"
            warnings.warn(what, OperatorWarning, stacklevel=2)
        else:
            loaded.append(entry.name)
    return tuple(loaded)


def _require_whole(op: str) -> None:
    """Raise ClauseError for a clause table that cannot be read, and ValueError for a violation of no clause."""
    clauses = clauses_of(op)
    known = {clause.id for clause in clauses}
    called = frozenset().union(*(clause.needs | clause.or_needs for clause in clauses))
    try:
        family = family_of(op)
    except KeyError:  # it has no cases
        return
    for version in versions_of(op):
        for violation in family.violations(op, version):
            if violation.clause(op) not in known and f"{ILLEGAL}{violation.topic}" not in called:
                raise ValueError(f"violation {violation.id!r}: there is no clause {violation.clause(op)}")
            if violation.due not in DUE:
                raise ValueError(f"violation {violation.id!r}: is due in {', '.join(DUE)}, not {violation.due!r}")
