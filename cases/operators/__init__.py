"""Cases of single operators, a folder or module each, loaded when first asked for.

Operators of other distributions are found by their entry points in the group ``onnxspec.operators``. An entry point
names a module, which registers an operator and its cases on import: see docs/operators.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import partial
from importlib import import_module, metadata

from ...reference import clauses_of, forget_operator, operator_names, versions_of
from ...reference.documents.clauses import ILLEGAL, ClauseError
from ...reference.errors import format_internal_error
from ..specs.family import await_family, family_of
from ..specs.family import forget as forget_cases

MODULES: Mapping[str, str] = {
    "LSTM": "profiles.recurrent",
    "GRU": "profiles.recurrent",
    "RNN": "profiles.recurrent",
    "ExtendedLSTM": "operators.extended_lstm.family",
    "DynamicQuantizeLSTM": "operators.dynamic_quantize_lstm",
    "CausalConvWithState": "operators.causal_conv_with_state",
    "com.microsoft::CausalConvWithState": "operators.causal_conv_with_state",
    "LinearAttention": "operators.linear_attention.family",
    "com.microsoft::LinearAttention": "operators.linear_attention.family",
}
"""The module that registers the cases of each operator of this package."""

for _op, _module in MODULES.items():
    if _op in operator_names():  # no cases for operators that the installed onnx lacks
        await_family(_op, partial(import_module, f"..{_module}", __name__))


GROUP = "onnxspec.operators"
"""The group of entry points."""


class OperatorWarning(UserWarning):
    """An operator of another distribution cannot be loaded; the message has its name, its distribution and the
    reason."""


def load_operators() -> tuple[str, ...]:
    """Import the operators of other distributions, in the order of names, and return the names of the loaded entry
    points.

    The order is fixed because the first of two operators with one name keeps the bare name. Operators that raise an
    error or are inconsistent are skipped with an OperatorWarning.
    """
    loaded = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        before = operator_names()
        try:
            import_module(entry.module)
            for op in operator_names()[len(before) :]:
                _require_whole(op)
        except Exception as error:  # an error of one operator must not affect the others
            from ...reference.faults.fault import FaultError

            reason = format_internal_error(error, entry.module.partition(".")[0])
            if isinstance(error, (ClauseError, FaultError)):  # their messages have a place
                reason = f"{type(error).__name__}: {' '.join(str(error).split())}"
            for op in operator_names()[len(before) :]:
                forget_cases(op)
                forget_operator(op)
            owner = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
            message = f"operator {entry.name!r}{owner} is left out: {reason}"
            warnings.warn(message, OperatorWarning, stacklevel=2)
        else:
            loaded.append(entry.name)
    return tuple(loaded)


def _require_whole(op: str) -> None:
    """Raise ClauseError for an invalid clause table, and ValueError for an invalid violation."""
    clauses = clauses_of(op)
    clause_ids = {clause.id for clause in clauses}
    features = frozenset().union(*(clause.needs | clause.or_needs for clause in clauses))
    try:
        family = family_of(op)
    except KeyError:  # it has no cases
        return
    for version in versions_of(op):
        for violation in family.violations(op, version):
            if violation.clause(op) not in clause_ids and f"{ILLEGAL}{violation.topic}" not in features:
                raise ValueError(f"violation {violation.id!r}: there is no clause {violation.clause(op)}")
