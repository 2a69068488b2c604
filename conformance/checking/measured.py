"""Findings of recorded runs that concern a node.

No statement is made about a configuration that was not tested.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...reference import fault_named
from ...reference.errors import UserError
from ..judging.judgement import DECLINED, Verdict
from ..judging.vocabulary import NO_FAILURE
from ..probes.probe import worded
from ..results.folder import read_folder
from ..results.records import Finding
from ..results.result import Result
from ..text import listed, plural
from .rule import MEASURED, rules, workaround
from .sample_node import SampleNode
from .subject import Broken, Missing, Outcome


@dataclass(frozen=True)
class MeasuredTarget:
    """A target in recorded runs.

    findings
        Those that state which nodes they affect: by a condition or by a fault.
    """

    name: str
    results: list[Result] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def results_like(self, node: SampleNode) -> list[Result]:
        """Return the results of a node's operator version and type."""
        meant = node.node.domain, node.node.op_type, node.node.since_version, node.element
        return [r for r in self.results if (r.domain, r.op, r.version, r.type) == meant]


def measured_outcomes(targets: Sequence[MeasuredTarget], node: SampleNode) -> Iterator[Outcome]:
    """Yield the failures of targets that concern a node, and the targets without a recorded case for it."""
    for target in targets:
        alike = target.results_like(node)
        for finding in target.findings:
            results = [result for result in alike if result.case in finding["cases"]]
            if results and _concerns(finding, node):
                text = _text(target.name, finding, results)
                advice = (workaround(finding, node.operator), _passing(targets, finding), rules()[MEASURED].advice)
                yield Broken(MEASURED, text, advice=" ".join(filter(None, advice)))
        if not alike:
            like = f"{node.operator}-{node.node.since_version} in {node.element}"
            yield Missing(MEASURED, f"what {target.name} makes of it: no recorded case is of {like}")


def _text(target: str, finding: Finding, results: Sequence[Result]) -> str:
    count = plural(len(results), "recorded case")
    text = f"{target}: {finding['title']}, in {count} of this operator and type, such as {results[0].case}"
    if finding["why"]:
        return f"{text}; known: {finding['why']}"
    return f"{text}: {results[0].message}" if results[0].verdict in DECLINED else text


def _passing(targets: Sequence[MeasuredTarget], finding: Finding) -> str:
    """Return how many cases of a finding other targets pass."""
    cases = {*finding["cases"]}
    passing = {t.name: sum(r.case in cases and r.verdict is Verdict.PASS for r in t.results) for t in targets}
    passes = [f"{name} passes {count} of these cases" for name, count in passing.items() if count]
    return f"{listed(passes)}." if passes else ""


def _concerns(finding: Finding, node: SampleNode) -> bool:
    """Return whether a node shows the fault that explains a finding or, without one, meets its conditions."""
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    if fault is not None:
        return node.shows(fault)
    condition = finding["conditions"].partition(" (")[0]
    traits = {worded(trait) for trait in node.traits} | {node.operator, f"{node.operator} altogether"}
    return condition in traits or traits.issuperset(condition.split(" and "))


def read_measured(folders: Sequence[Path]) -> list[MeasuredTarget]:
    """Return the targets of recorded runs. Raise UserError."""
    targets: dict[str, MeasuredTarget] = {}
    for folder in folders:
        run = read_folder(folder)
        if not run.results:
            raise UserError(f"{folder}: holds no results")
        for result in run.results:
            targets.setdefault(result.target, MeasuredTarget(result.target)).results.append(result)
        for record in run.info["targets"] if run.info is not None else ():
            if record["name"] in targets:
                targets[record["name"]].findings.extend(filter(_says_when, record["findings"]))
    return [*targets.values()]


def _says_when(finding: Finding) -> bool:
    return finding["kind"] not in NO_FAILURE and bool(finding["conditions"] or finding["fault"])
