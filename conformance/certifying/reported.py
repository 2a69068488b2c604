"""Reports in a package that nobody can prove from it: a vendor's own machine could have invented them. Statement, page
and documents say so in these words."""

from __future__ import annotations

from collections.abc import Iterator

from ..judging.judgement import DECLINED, Verdict
from ..workers.job import Outcome
from .records import ReportedRecord
from .replay import Replay

_REFUSED = "refused"  # a forbidden model was, as it must be
_TOLD = DECLINED | {Verdict.CRASHED, Verdict.TIMED_OUT}


def reported_in(replay: Replay) -> Iterator[ReportedRecord]:
    """Things in a run that rest on the vendor's word, with the number of cases that do."""
    ran = [outcomes for outcomes in replay.outcomes.values() if any(o.status == "ran" for o in outcomes)]
    counts = {
        "that the device made the outputs, in the environment that is named": len(ran),
        "that no repeated run returned anything else": sum(map(_one_output, ran)),
        "that no run changed its inputs, or what it had returned": sum(
            not any(o.changed or o.altered for o in outcomes) for outcomes in ran
        ),
        "that the outputs of a fresh process came from one": len(replay.repeated),
        "that what was declined, crashed or took too long returned nothing wrong": sum(
            result.verdict in _TOLD or result.reason == _REFUSED for result in replay.results
        ),
    }
    return (ReportedRecord(what=what, cases=cases) for what, cases in counts.items() if cases)


def _one_output(outcomes: tuple[Outcome, ...]) -> bool:
    return all(len(distinct) == 1 for o in outcomes if o.status == "ran" for distinct in o.outputs)
