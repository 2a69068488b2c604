"""The operators whose nodes are checked, each with its rules; and those that are known to be recurrent and have no
document here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import defs

from ...cases import family_of
from ...reference import CELLS, OperatorVersion, document_of, operator_version, versions_of
from . import extended_lstm, recurrent
from .sizes import Extent
from .subject import Outcome, Subject

__all__ = ["UNJUDGED", "Judged", "judged_operators"]

UNJUDGED: frozenset[tuple[str, str]] = frozenset(
    {("com.microsoft", "DynamicQuantizeLSTM"), ("com.microsoft", "AttnLSTM")}
)
"""Recurrent operators of other domains for which there is no document here."""


# By operator the module that has its rules.
_RULES: Mapping[str, Any] = {**dict.fromkeys(CELLS, recurrent), "ExtendedLSTM": extended_lstm}


@dataclass(frozen=True, eq=False)
class Judged:
    """What the checker knows of an operator.

    newest
        The last opset of its domain of which anything is known.
    outcomes
        From a node to what is wrong with it, and what is not known of it.
    shapes
        From a node to the shapes that the document prints for its inputs.
    features
        From a node that breaks nothing to the features by which open clauses know their cases.
    broken
        Ways to break it, by clause, in words of which the model is the subject.
    """

    op_type: str
    domain: str
    newest: int
    outcomes: Callable[[Subject], Iterator[Outcome]]
    shapes: Callable[[Subject], Mapping[str, tuple[Extent, ...]]]
    features: Callable[[Subject], frozenset[str]]
    broken: Mapping[str, tuple[str, ...]]

    @property
    def prefix(self) -> str:
        """How the ids of its clauses begin."""
        return self.op_type.lower()

    def version(self, opset: int) -> OperatorVersion | None:
        """The version that a node means under an opset; None where that opset has none."""
        meant = [version for version in versions_of(self.op_type, self.domain) if version <= opset]
        return operator_version(self.op_type, meant[-1], self.domain) if meant else None


@cache
def judged_operators() -> Mapping[tuple[str, str], Judged]:
    """By domain and name, old names included."""
    table: dict[tuple[str, str], Judged] = {}
    for op, rules in _RULES.items():
        ways: dict[str, list[str]] = {}
        for version in versions_of(op):
            for violation in family_of(op).violations(op, version):
                ways.setdefault(violation.clause(op), []).append(violation.summary)
        newest = versions_of(op)[-1]
        domain = operator_version(op, newest).domain
        newest = newest if domain else defs.onnx_opset_version()
        judged = Judged(op, domain, newest, rules.outcomes, rules.shapes_of, rules.open_features, _frozen(ways))
        table.update(dict.fromkeys([(domain, op), *document_of(op).former], judged))
    return table


def _frozen(ways: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {clause: tuple(dict.fromkeys(summaries)) for clause, summaries in ways.items()}
