"""Cost of a case on a target, without judging: processor time of the worker and all its processes, with compilers.

    python -m benchmarks.costs [--targets-file FILE] TARGET ...

Cases are those of `smoke` that the target supports, float32 and valid, each loaded and run as in a run; the start of
the runtime is subtracted.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measuring import child_seconds
from onnxspec.conformance.cli.command import targets_of
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.probes.probe import Probe
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.probes.stream import tried
from onnxspec.conformance.targets.target import Target
from onnxspec.conformance.workers.job import TargetUnavailable
from onnxspec.conformance.workers.process import TargetProcess

RAN = {Verdict.PASS, Verdict.WRONG, Verdict.INACCURATE, Verdict.INCONCLUSIVE}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--targets-file", type=Path)
    parser.add_argument("targets", nargs="+", metavar="TARGET")
    options = parser.parse_args()
    print("| target | its start, s | a case, ms | cases |\n| --- | --- | --- | --- |")
    for target in targets_of(options.targets, options.targets_file):
        try:
            print(_row(target), flush=True)
        except TargetUnavailable as error:
            print(f"| {target.name} | {error} | | |", flush=True)
    return 0


def _row(target: Target) -> str:
    taken = _taken(target)
    start = child_seconds(lambda: _run(target, ()))
    total = child_seconds(lambda: _run(target, taken))
    cost = f"{1000 * (total - start) / len(taken):.1f}" if taken else ""
    return f"| {target.name} | {start:.1f} | {cost} | {len(taken)} |"


def _taken(target: Target) -> tuple[Probe, ...]:
    selection = Selection("smoke", types=("float32",), legal=True)
    probes = tuple(select_probes(selection, target.operators))
    with TargetProcess(target) as process:
        process.start()
        return tuple(one.probe for one in tried(process, probes, target.accuracy) if one.judgement.verdict in RAN)


def _run(target: Target, probes: Sequence[Probe]) -> None:
    with TargetProcess(target) as process:
        process.start()
        for _ in tried(process, probes, target.accuracy):
            pass


if __name__ == "__main__":
    raise SystemExit(main())
