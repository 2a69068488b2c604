"""Loop of all runs: sends probes to a target and yields events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..judging.judgement import Judgement
from ..probes.probe import Probe
from ..probes.stream import tried
from ..results.expected.entries import Entry, matching
from ..results.result import Result, result_of
from ..targets.target import Target
from ..workers.pool import Pool
from ..workers.process import TargetProcess
from .events import CaseJudged


def cases_judged(
    process: TargetProcess,
    probes: Iterable[Probe],
    target: Target,
    entries: Sequence[Entry],
    repeat: Callable[[Probe], str],
    pool: Pool | None = None,
) -> Iterator[CaseJudged]:
    """Yield an event for every case on a running target, in order.

    probes
        Read ahead, as far as the target takes jobs.
    entries
        The expected failures that apply to this runtime.
    repeat
        Returns the command that shows a case on the target.
    pool
        Processes that judge; None: this one.
    """
    for case_run in tried(process, probes, target.accuracy, pool):
        printed = "\n".join(outcome.captured for outcome in case_run.outcomes if outcome.captured)
        result = judged_result(case_run.probe, target, case_run.judgement, entries, repeat, case_run.seconds, printed)
        yield CaseJudged(result, case_run)


def judged_result(
    probe: Probe,
    target: Target,
    judgement: Judgement,
    entries: Sequence[Entry],
    repeat: Callable[[Probe], str],
    seconds: float = 0.0,
    printed: str = "",
) -> Result:
    """Return the result for a judgement of a case, with the reason for an expected failure."""
    entry = matching(entries, probe, judgement)
    why = entry.reason if entry else None
    return result_of(probe, target.name, judgement, seconds, why, repeat(probe), printed)
