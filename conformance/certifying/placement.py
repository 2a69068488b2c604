"""Placement of models on a device: read case by case from the runtime's own records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..workers.job import Outcome
from .records import PlacementRecord

_CPU = "CPUExecutionProvider"
_SOURCES = {"assignment record": "record", "profile": "profile"}
_NODE = re.compile(r"(\w+): (\S+)")
_SURROUNDINGS = ("Cast", "QuantizeLinear", "DequantizeLinear", "Neg", "Add", "Squeeze", "Transpose", "Reshape")
"""Operators that a wrap puts around a node, which need not run where it does."""


def placement_of(provider: str, wrapped: bool, outcomes: Mapping[str, tuple[Outcome, ...]]) -> PlacementRecord:
    """Return the proof that models ran on a provider; a target without one, or on the CPU's, needs none."""
    if not provider or provider == _CPU:
        return PlacementRecord(proof="not needed", provider=provider, cases=0)
    ran = [[outcome for outcome in some if outcome.status == "ran"] for some in outcomes.values()]
    sources = [{_source(outcome.proof, provider, wrapped) for outcome in some} for some in ran if some]
    kinds = set().union(*sources) - {""}
    kind = "mixed" if len(kinds) > 1 else next(iter(kinds), "none")
    return PlacementRecord(proof=kind, provider=provider, cases=sum("" not in each for each in sources))


def unproved(provider: str, wrapped: bool, outcomes: Mapping[str, tuple[Outcome, ...]]) -> Iterator[str]:
    """Cases that ran and are not shown to have run on the provider."""
    if provider and provider != _CPU:
        for case, some in outcomes.items():
            if any(o.status == "ran" and not _source(o.proof, provider, wrapped) for o in some):
                yield case


def _source(proof: str, provider: str, wrapped: bool) -> str:
    """Return the kind of a proof; empty if it proves nothing. A long one ends in the mark of the cut."""
    kind, _, nodes = proof.partition(": ")
    if kind not in _SOURCES:
        return ""
    matches = [match for node in nodes.split("; ") if (match := _NODE.match(node)) is not None]
    counting = [match[1] for match in matches if not (wrapped and match[2] in _SURROUNDINGS)]
    return _SOURCES[kind] if counting and all(where == provider for where in counting) else ""
