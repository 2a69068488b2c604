"""What explains failing cases of any operator: those of a run all together, or one after the other as they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from ..reference import DEVIATIONS, OPERATORS, versions_of
from .diagnosis import DIAGNOSED, Search, explain_results, witness_of
from .evidence import Kept
from .extended_diagnosis import ExtendedSearch, explain_extended
from .extended_probe import ExtendedProbe
from .judgement import Verdict
from .probe import Probe
from .result import Result
from .stream import Tried

__all__ = ["Explainer", "explained"]


def explained(
    results: Sequence[Result], probes: Mapping[str, Probe], kept: Kept, accuracy: str, suspects: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """For every failing case the ids of the mistakes that explain all of them together; cases that nothing explains are
    left out. `suspects` are patterns of ids of mistakes that the target is known for."""
    return explain_results(results, probes, kept, accuracy) | explain_extended(results, probes, kept, suspects)


class Explainer:
    """Explains one failing case after the other: what explained earlier ones is tried first."""

    def __init__(self, accuracy: str, effort: int, suspects: Iterable[str] = ()) -> None:
        """`effort` is how many hypotheses may be tried, all in all; `suspects` are patterns of ids of mistakes that the
        target is known for, which no case has to show first."""
        patterns = tuple(suspects)
        self._extended = ExtendedSearch(effort, patterns)
        self._search = Search(accuracy, effort)
        for op in OPERATORS:
            known = (d for d in DEVIATIONS.values() if not d.accepts and any(fnmatchcase(d.id, p) for p in patterns))
            self._search.known[op] += [d for d in known if any(d.applies(op, v) for v in versions_of(op))]

    def explain(self, one: Tried) -> tuple[str, ...]:
        """The ids of the mistakes that explain a case together; none where it does not fail, or nothing does."""
        probe = one.probe
        if isinstance(probe, ExtendedProbe):
            return self._extended.diagnosis(probe, one.judgement, one.outcomes[0])
        if one.judgement.verdict not in DIAGNOSED or not one.prepared.trials:
            return ()
        trial, slight = one.prepared.trials[0], one.judgement.verdict is Verdict.INACCURATE
        witness = witness_of(probe.id, trial, one.outcomes[0], probe.clauses, probe.size, slight)
        found = self._search.explain(witness) if witness is not None else None
        return tuple(mistake.id for mistake in found or ())
