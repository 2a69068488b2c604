"""The operators whose nodes are checked, each with what is known of it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from onnx import defs

from ...cases import family_of
from ...cases.third_party import OperatorWarning
from ...reference import OPERATORS, Operator, OperatorVersion, operator_version, versions_of
from ...reference.operators.mishap import told_mishap


@dataclass(frozen=True, eq=False)
class CheckedOperator:
    """The checker's knowledge of an operator.

    newest
        The last opset of its domain of which anything is known.
    broken
        Ways to break it, by clause, in words of which the model is the subject.
    """

    operator: Operator
    newest: int
    broken: Mapping[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        """The name of the operator in results and options."""
        return self.operator.document.name

    @property
    def domain(self) -> str:
        return self.operator.document.domain

    @property
    def prefix(self) -> str:
        """The beginning of the ids of its clauses."""
        return self.operator.document.prefix

    def version(self, opset: int) -> OperatorVersion | None:
        """Return the version that a node means under an opset; None where that opset has none."""
        meant = [version for version in versions_of(self.name) if version <= opset]
        return operator_version(self.name, meant[-1], self.domain) if meant else None


@cache
def judged_operators() -> Mapping[tuple[str, str], CheckedOperator]:
    """Return the operators that are judged, by domain and name, former names included."""
    table: dict[tuple[str, str], CheckedOperator] = {}
    for operator in OPERATORS.values():
        document = operator.document
        newest = versions_of(document.name)[-1] if document.domain else defs.onnx_opset_version()
        judged = CheckedOperator(operator, newest, _frozen(_ways(document.name)))
        table.update(dict.fromkeys([document.key, *document.former], judged))
    return table


def _ways(op: str) -> dict[str, list[str]]:
    """Return ways to break an operator's document, by clause; none for one without cases."""
    ways: dict[str, list[str]] = {}
    try:
        family = family_of(op)
    except KeyError:
        return ways
    try:
        for version in versions_of(op):
            for violation in family.violations(op, version):
                ways.setdefault(violation.clause(op), []).append(violation.summary)
    except Exception as error:  # whatever it is, it is the operator's, and costs no other one its rules
        lacking = f"what breaks {op} cannot be listed: {told_mishap(error)}"
        warnings.warn(lacking, OperatorWarning, stacklevel=2)
    return ways


def _frozen(ways: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {clause: tuple(dict.fromkeys(summaries)) for clause, summaries in ways.items()}
