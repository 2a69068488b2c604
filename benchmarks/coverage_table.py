"""The tables of docs/coverage.md: `python -m benchmarks.coverage_table [RUN ...]`.

How far ``core`` reaches before and after cases have followed: on targets that are made up of what they lack, and on
those of runs, each with as many models as chance has them (``--dice``, which measures cases and takes minutes).
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from onnxspec.cases.profiles.fresh import fresh_stream
from onnxspec.cases.profiles.pool import pool_of
from onnxspec.cases.specs.family import counted_operators
from onnxspec.conformance.judging.judgement import Judgement, Verdict
from onnxspec.conformance.probes.probe import Probe, SpecProbe
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.proof.coverage import Shares
from onnxspec.conformance.proof.exposure import parts_shown
from onnxspec.conformance.proof.interactions import Score, faults_of, measurable, pool_tally, space_of, tally
from onnxspec.conformance.results.folder import read_folder
from onnxspec.conformance.results.records import OperatorCoverage, SharesRecord
from onnxspec.conformance.results.result import Result
from onnxspec.conformance.running.filling import Filling, shares_record
from onnxspec.conformance.running.loop import judged_result
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.targets.target import Target

DEVICE = (
    *("lengths=ragged", "lengths=full", "lengths=short", "lengths=empty", "layout=1", "clip", "activations"),
    *("dimensions=symbolic", "weights=input", "type=float64", "type=bfloat16"),
)
"""What a compiler for a device lacks: whatever makes a graph dynamic, and all but the default cell."""

HALF_ONLY = ("type=float32", "type=float64", "type=bfloat16", "layout=1", "clip")
"""What lacks a target that computes in float16 alone."""


def on_made_up(op: str, lacks: Collection[str]) -> OperatorCoverage:
    """How far ``core`` reaches in an operator on a target that refuses whatever has one of these contexts, and passes
    all else."""
    target, space = Target("made up", "backend"), space_of(op)
    places = [space.position[id] for id in lacks if id in space.position]
    core = tuple(select_probes(Selection("core", (op,)), (op,)))
    filling = Filling(Plan(Selection("core", (op,)), core, (target,), fills=True), target)
    results: list[Result] = []

    def judged(probe: Probe) -> Judgement:
        spec = probe.spec if isinstance(probe, SpecProbe) else None
        refused = spec is not None and not spec.illegal and space.held(spec)[:, places].any()
        return Judgement(Verdict.UNSUPPORTED if refused else Verdict.PASS)

    batch: Sequence[Probe] = core
    while batch:
        results += [judged_result(p, target, judged(p), (), lambda p: "") for p in batch]
        batch = filling.next(results)
    (coverage,) = filling.record(results)["operators"]
    return coverage


def _dice(op: str, lacks: Collection[str], models: int) -> Score:
    """What fresh cases in so many models show, of what is left without some contexts; quantized ones are not drawn."""
    space = space_of(op)
    drawn = list(itertools.islice(filter(measurable, fresh_stream("dice", (op,), lacks=lacks)), models))
    costs = itertools.accumulate(space.models(spec) for spec in drawn)
    within = [spec for spec, cost in zip(drawn, costs, strict=True) if cost <= models]
    without = frozenset((space.position[id],) for id in lacks if id in space.position)
    return tally(op, ([(spec, parts_shown(spec))] for spec in within)).score(faults_of(op, without))


def _percent(shares: SharesRecord | Score) -> str:
    if isinstance(shares, Score):
        shares = shares_record(Shares.of(shares))
    three = (shares["pairs"], shares["twice"], shares["triples"])
    return " / ".join(f"{1000 * shown // there / 10:.1f}" for shown, there in three)


def _blocks() -> Iterator[str]:
    yield "| dense block of `core` | models | pairs / twice / triples | as many at random |"
    yield "| --- | --- | --- | --- |"
    for op in counted_operators():
        pool, faults = pool_of(op), faults_of(op)
        pinned = pool.dense
        models = sum(case.models for case in {case.model: case for case in pinned}.values())
        dice = sorted((c for c in pool.cases if c.level == "complete" and not c.sibling), key=lambda c: c.index)
        costs = itertools.accumulate(case.models for case in dice)
        within = [case for case, cost in zip(dice, costs, strict=True) if cost <= models]
        ours, theirs = pool_tally(op, pinned).score(faults), pool_tally(op, within).score(faults)
        yield f"| {op} | {models} | {_percent(ours)} | {_percent(theirs)} |"


def _row(name: str, each: OperatorCoverage, dice: str) -> str:
    before, after = _percent(each["before"]), _percent(each["after"])
    return f"| {name} | {each['operator']} | {before} | {each['models']} | {after} | {dice} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="folders of runs")
    parser.add_argument("--dice", action="store_true", help="measure as many models at random, too")
    asked = parser.parse_args()
    print("\n".join(_blocks()), "\n")
    print("| target | operator | `core` | models that follow | then | as many at random |")
    print("| --- | --- | --- | --- | --- | --- |")
    made_up = {"device": DEVICE, "float16 alone": HALF_ONLY}
    for (name, lacks), op in itertools.product(made_up.items(), counted_operators()):
        each = on_made_up(op, lacks)
        print(_row(name, each, _percent(_dice(op, lacks, each["models"])) if asked.dice else "-"), flush=True)
    for folder in asked.runs:
        info = read_folder(folder).info
        for target in info["targets"] if info else ():
            for each in target["coverage"]["operators"] if "coverage" in target else ():
                if each["after"]["pairs"][1]:
                    print(_row(target["name"], each, "-"), flush=True)


if __name__ == "__main__":
    main()
