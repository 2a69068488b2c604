"""Value of names: how many failing results of a target get one, how many the right one, and at what cost.

    python -m benchmarks.naming [TARGET ...] [--targets-file FILE] [--profile core] [--json FILE] [--wrong]

Without a target it runs the kernels of `benchmarks/kernels`, whose faults `benchmarks.truths` knows. The true faults of
other targets are unknown; the command then counts names, and names that predicted fresh cases. A kernel of the zoo is
``batch_halite:FAULT``, a whole batch ``batch_halite``: its author's description is printed below the table, with its
findings. The command prints a table in Markdown; ``--wrong`` lists wrong names, and cases without one, below it. Exit
code 1 if a kernel's result has a wrong name, or its first finding does not name its fault.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks import zoo
from benchmarks.sentences import false_sentences
from benchmarks.staging import words_of_zoo, zoo_names
from benchmarks.truths import TRUTHS, Truth
from onnxspec.conformance.cli.command import targets_of
from onnxspec.conformance.diagnosis.failing_case import DIAGNOSED
from onnxspec.conformance.judging.judgement import Verdict
from onnxspec.conformance.judging.vocabulary import NO_FAILURE
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.results.lines import Line, ResultUpdate
from onnxspec.conformance.results.records import Finding
from onnxspec.conformance.results.result import Result
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.run import Plan, TargetRun
from onnxspec.conformance.targets.target import Target

KERNELS = Path(__file__).parent / "kernels" / "targets.toml"
ZOO = Path(zoo.__file__).parent
OPERATORS = ("GRU", "LSTM", "RNN")
_PLAIN = ("plain", "right")


@dataclass(frozen=True)
class Row:
    """One line of the table.

    failing, named, right
        Results with wrong outputs, those of them with a name, and those whose names are all true.
    described
        Results with a name, or in a finding that states their position, or the wider class that holds all of them.
    foretold
        Number of findings whose fault predicted fresh cases.
    first
        Title of the first finding, and ``leads`` whether it names a true cause.
    false
        False sentences (:mod:`.sentences`).
    run, search, experiments
        Seconds of processor time: running and judging; searching names; experiments on the target.
    """

    target: str
    failing: int
    named: int
    described: int
    right: int | None
    foretold: int
    first: str
    leads: bool | None
    false: int
    run: float
    search: float
    experiments: float

    def cells(self) -> list[str]:
        """Return the cells of the line."""
        share = f"{self.named} ({_percent(self.named, self.failing)})"
        described = f"{self.described} ({_percent(self.described, self.failing)})"
        right = "" if self.right is None else f"{self.right} ({_percent(self.right, self.failing)})"
        leads = "" if self.leads is None else "yes" if self.leads else "**no**"
        cost = f"{self.search:.1f} + {self.experiments:.1f} of {self.run:.1f} s"
        cells = [self.target, str(self.failing), share, right, described, str(self.foretold), self.first, leads]
        return [*cells, str(self.false), cost]


HEADINGS = [
    "target",
    "failing",
    "named",
    "rightly",
    "named or described",
    "findings that foretold",
    "first finding",
    "true",
    "false sentences",
    "search + experiments",
]


def _percent(part: int, whole: int) -> str:
    return f"{1000 * part // whole / 10:g} %" if whole else "-"  # never rounded up to 100 %


@dataclass(frozen=True)
class Spent:
    """Seconds of processor time: of this process, and of ended targets."""

    own: float
    targets: float

    @staticmethod
    def by_now() -> Spent:
        times = os.times()
        return Spent(times.user + times.system, times.children_user + times.children_system)


@dataclass
class Clock:
    """Processor time at the end of each part of a run; other programs on the machine do not count."""

    started: Spent
    judged: Spent
    named: Spent

    def observe(self, target: TargetRun, line: Line) -> None:
        """Record the processor time up to a line."""
        if isinstance(line, Result) or (isinstance(line, ResultUpdate) and line.by == "needed-classes"):
            self.judged = self.named = Spent.by_now()
        elif isinstance(line, ResultUpdate) and line.by == "diagnosis":
            self.named = Spent.by_now()

    def parts(self, ended: Spent) -> tuple[float, float, float]:
        """Return the seconds for running and judging, for searching names, and for experiments.

        The run of the target has ended by the time of the names.
        """
        run = self.judged.own - self.started.own + self.named.targets - self.started.targets
        experiments = ended.own - self.named.own + ended.targets - self.named.targets
        return run, self.named.own - self.judged.own, experiments


def targets_named(names: Sequence[str], targets_file: Path) -> Iterator[Target]:
    """Yield the targets of these names; all kernels without names."""
    of_zoo = [fault for name in names for fault in zoo_names() if fault == name or fault.partition(":")[0] == name]
    batches = {fault.partition(":")[0] for fault in of_zoo}
    other_names = [name for name in names if name.partition(":")[0] not in batches]
    if other_names or not of_zoo:
        yield from targets_of(other_names or list(TRUTHS), targets_file)
    for name in of_zoo:
        batch, _, fault = name.partition(":")
        yield Target(name, str(ZOO / "adapter.py"), {"batch": str(ZOO / f"{batch}.py"), "fault": fault})


def measured(target: Target, profile: str, targets_file: Path, remarks: list[str]) -> Row:
    """Run a target like a user, and return the line on its names."""
    selection = Selection(profile, ops=OPERATORS)
    probes = tuple(select_probes(selection, OPERATORS))
    plan = Plan(selection, probes, (target,), expected=False, targets_file=targets_file)
    with tempfile.TemporaryDirectory() as folder:
        now = Spent.by_now()
        clock = Clock(now, now, now)
        with RunWriter(Path(folder) / "run") as writer:
            run = execute(plan, writer, clock.observe)
        parts = clock.parts(Spent.by_now())
    truth = TRUTHS.get(target.name)
    (ran,) = run.targets
    if ran.unavailable:
        raise SystemExit(f"{target.name} could not start: {ran.unavailable}")
    probes_by_id = {probe.id: probe for probe in run.plan.probes_of(target)}
    false = false_sentences(ran.findings, ran.results, probes_by_id, truth)
    remarks += [f"{target.name}: false: {line}" for line in false]
    remarks += _remarks(target.name, ran.results, truth)
    remarks += _beside_words(target.name, ran.findings)
    return _row(ran, parts, len(false))


def _row(target: TargetRun, parts: tuple[float, float, float], false: int) -> Row:
    failing = [r for r in target.results if r.verdict in DIAGNOSED]
    truth = TRUTHS.get(target.target.name)
    verdicts = {verdict.value for verdict in DIAGNOSED}
    described = {case for finding in target.findings if _describes(finding) for case in finding["cases"]}
    first = next((finding for finding in target.findings if finding["verdict"] in verdicts), None)
    return Row(
        target.target.name,
        len(failing),
        sum(_named(r) for r in failing),
        sum(_named(r) or r.case in described for r in failing),
        None if truth is None else sum(_right(r, truth) for r in failing),
        sum(bool(f["foretold"]) for f in target.findings),
        first["title"] if first else "",
        None if truth is None or first is None else truth.right(first["fault"]),
        false,
        *parts,
    )


def _named(result: Result) -> bool:
    """Return whether a result has a name. A wrong number or shape of outputs counts as a name."""
    return bool(result.diagnosis) or result.verdict is Verdict.MALFORMED


def _describes(finding: Finding) -> bool:
    """Return whether an unnamed finding describes an observation and its cases, confirmed by experiments."""
    of_a_class = finding["what"].startswith("inaccurate (no better than ")
    return finding["tried"] and bool(finding["place"] or of_a_class)


def _right(result: Result, truth: Truth) -> bool:
    if result.verdict is Verdict.MALFORMED and not result.diagnosis:
        return True
    return bool(result.diagnosis) and all(map(truth.right, result.diagnosis))


def _remarks(name: str, results: Iterable[Result], truth: Truth | None) -> list[str]:
    """Return the untrue names, most frequent first, and the cases without one."""
    failing = [r for r in results if r.verdict in DIAGNOSED]
    wrong = [r for r in failing if r.diagnosis and (truth is None or not _right(r, truth))]
    counts = Counter(" + ".join(r.diagnosis) for r in wrong)
    examples = {" + ".join(r.diagnosis): r.case for r in reversed(wrong)}
    lines = [f"{name}: {count} {names}, e.g. {examples[names]}" for names, count in counts.most_common()]
    return lines + [f"{name}: no name: {r.case}" for r in failing if not r.diagnosis][:20]


def _beside_words(name: str, findings: Iterable[Finding]) -> Iterator[str]:
    """Yield a zoo kernel's fault in its author's description, and the titles of the findings."""
    if name in zoo_names():
        yield f"{name} is: {words_of_zoo(name)}"
        reported = (f for f in findings if f["kind"] not in NO_FAILURE and f["kind"] != Verdict.UNSUPPORTED.value)
        yield from (f"{name}: {len(f['cases'])} cases: {f['title']}" for f in reported)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*")
    parser.add_argument("--targets-file", type=Path, default=KERNELS)
    parser.add_argument("--profile", default="core")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--wrong", action="store_true", help="list wrong names, and cases without one")
    options = parser.parse_args()
    rows: list[Row] = []
    remarks: list[str] = []
    print(f"| {' | '.join(HEADINGS)} |\n|{' --- |' * len(HEADINGS)}", flush=True)
    for target in targets_named(options.targets, options.targets_file):
        rows.append(measured(target, options.profile, options.targets_file, remarks))
        print(f"| {' | '.join(rows[-1].cells())} |", flush=True)
    if options.json:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")
    for line in remarks:
        if options.wrong or line.partition(":")[0].startswith("batch_"):
            print(line)
    with_truth = [row for row in rows if row.right is not None]
    return int(any(row.named != row.right or row.leads is False for row in with_truth))


if __name__ == "__main__":
    sys.exit(main())
