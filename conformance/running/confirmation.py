"""Cases once more, each in a process of its own: does what was seen then show now?"""

from __future__ import annotations

from collections.abc import Sequence

from ..judging.judgement import Verdict
from ..probes.probe import Probe
from ..probes.selection import Selection, select_probes
from ..probes.stream import tried
from ..probes.wrapped import wrapped_probes
from ..targets.target import Target
from ..workers.process import TargetProcess


def verdicts_now(target: Target, ids: Sequence[str]) -> dict[str, Verdict]:
    """The outcomes of cases on a target now, by id.

    Raises UnknownName for an id that no case has, and TargetUnavailable where the target does not start.
    """
    probes: Sequence[Probe] = tuple(select_probes(Selection(cases=tuple(ids)), target.operators))
    if target.wrap:
        probes = wrapped_probes(probes, target.wrap)
    verdicts: dict[str, Verdict] = {}
    for probe in probes:
        with TargetProcess(target) as process:
            process.start()
            verdicts |= {one.probe.id: one.judgement.verdict for one in tried(process, [probe], target.accuracy)}
    return verdicts
