"""One failing case by itself, diagnosed as a run diagnoses it: by the same search, and by experiments of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from msgspec import structs

from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..probes.stream import Tried
from ..results.evidence import Kept
from ..results.expected.entries import Entry
from ..results.result import result_of
from ..targets.target import Target
from ..workers.process import TargetProcess
from .causes import Subject, experiments_of
from .explainer import Explainer, accepting, arithmetics_of, explained
from .failing_case import DIAGNOSED
from .findings import findings_of
from .telling import with_causes

__all__ = ["Single", "diagnosed"]

_EFFORT = 6000
"""Hypotheses that are tried on a case where experiments named nothing: as many as on the smallest case of a finding."""


@dataclass(frozen=True)
class Single:
    """The explanation of one case.

    faults
        The ids of the faults that do so together.
    foretold
        Fresh cases, of other sizes and numbers, that each of them foretold.
    accepts
        Whether that is to take a forbidden model, which one case shows.
    """

    faults: tuple[str, ...] = ()
    foretold: int = 0
    accepts: bool = False

    @property
    def certain(self) -> bool:
        """Tell whether this is a fact; else one case is all that speaks for it."""
        return self.accepts or self.foretold > 0


def diagnosed(
    one: Tried, target: Target, process: TargetProcess, repeat: Callable[[Probe], str], entries: Sequence[Entry] = ()
) -> Single:
    """The explanation of a case, if it fails and anything does.

    entries
        The target's known failures.
    """
    probe, judgement, accuracy = one.probe, one.judgement, target.accuracy
    if judgement.verdict is Verdict.NOT_REJECTED:
        return Single(accepting(probe.op, probe.version, judgement.clause), accepts=True)
    if judgement.verdict not in DIAGNOSED or not one.prepared.trials:
        return Single()
    kept, probes = Kept(), {probe.id: probe}
    kept.offer(one)
    result = result_of(probe, target.name, judgement, 0.0, None, repeat(probe))
    causes = explained([result], probes, kept, accuracy, entries)
    results = [structs.replace(result, diagnosis=causes.get(probe.id, ()))]
    arithmetics = arithmetics_of(results, accuracy)
    subject = Subject(process, accuracy, repeat, results, probes, kept, arithmetics=arithmetics)
    findings, better = with_causes(findings_of(results, probes), subject, experiments_of(results))
    named = [f for f in findings if f["fault"]]
    faults = next((r.diagnosis for r in better), results[0].diagnosis) or tuple(f["fault"] for f in named)
    if faults:
        certain = {f["fault"]: f["foretold"] for f in named}
        return Single(faults, min(certain.get(id, 0) for id in faults))
    return Single(Explainer(accuracy, _EFFORT, entries, share=1).explain(one))
