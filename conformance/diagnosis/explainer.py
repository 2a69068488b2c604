"""What explains failing cases of any operator: those of a run all together, or one after the other as they come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..probes.stream import Tried
from ..results.evidence import Kept
from ..results.result import Result
from .search import DIAGNOSED, Search, accepting, explain_results, failing_case_of

__all__ = ["Explainer", "explained"]


def explained(
    results: Sequence[Result], probes: Mapping[str, Probe], kept: Kept, accuracy: str, suspects: Sequence[str] = ()
) -> dict[str, tuple[str, ...]]:
    """For every failing case the ids of the faults that explain all of them together; cases that nothing explains are
    left out. `suspects` are patterns of ids of faults that the target is known for."""
    return explain_results(results, probes, kept, accuracy, suspects)


class Explainer:
    """Explains one failing case after the other: what explained earlier ones is tried first."""

    def __init__(self, accuracy: str, effort: int, suspects: Iterable[str] = ()) -> None:
        """`effort` is how many hypotheses may be tried, all in all; `suspects` are patterns of ids of faults that the
        target is known for, which no case has to show first."""
        self._search = Search(accuracy, effort, suspects=tuple(suspects))

    def explain(self, one: Tried) -> tuple[str, ...]:
        """The ids of the faults that explain a case together; none where it does not fail, or nothing does."""
        probe, judgement = one.probe, one.judgement
        if judgement.verdict is Verdict.NOT_REJECTED:
            return accepting(probe.op, probe.version, judgement.clause)
        if judgement.verdict not in DIAGNOSED or not one.prepared.trials:
            return ()
        trial, slight = one.prepared.trials[0], judgement.verdict is Verdict.INACCURATE
        witness = failing_case_of(probe.id, trial, one.outcomes[0], probe.clauses, probe.size, slight)
        found = self._search.explain(witness) if witness is not None else None
        return tuple(fault.id for fault in found or ())
