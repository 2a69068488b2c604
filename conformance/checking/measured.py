"""Findings of recorded runs that concern a node.

No statement is made about a configuration that was not tested.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...reference import fault_named
from ...reference.errors import UserError
from ..judging.judgement import DECLINED, Verdict
from ..judging.vocabulary import NO_FAILURE
from ..probes.probe import worded
from ..results.folder import read_folder
from ..results.records import Finding, TargetRecord
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
    results: Sequence[Result]
    findings: Sequence[Finding]

    def results_like(self, node: SampleNode) -> list[Result]:
        """Return the results of a node's operator version and type."""
        meant = node.node.domain, node.node.op_type, node.node.since_version, node.element
        return [r for r in self.results if (r.domain, r.op, r.version, r.type) == meant]


def measured_outcomes(targets: Sequence[MeasuredTarget], node: SampleNode) -> Iterator[Outcome]:
    """Yield the failures of targets that concern a node, and the targets without a recorded case for it."""
    for target in targets:
        for finding in target.findings:
            results = [result for result in target.results_like(node) if result.case in finding["cases"]]
            if results and _concerns(finding, node):
                yield _of_finding(targets, target, finding, results, node)
    for target in targets:
        if not target.results_like(node):
            like = f"{node.operator}-{node.node.since_version} in {node.element}"
            yield Missing(MEASURED, f"what {target.name} makes of it: no recorded case is of {like}")


def _of_finding(
    targets: Sequence[MeasuredTarget],
    target: MeasuredTarget,
    finding: Finding,
    results: Sequence[Result],
    node: SampleNode,
) -> Broken:
    count = plural(len(results), "recorded case")
    text = f"{target.name}: {finding['title']}, in {count} of this operator and type, such as {results[0].case}"
    if finding["why"]:
        text += f"; known: {finding['why']}"
    elif results[0].verdict in DECLINED:
        text += f": {results[0].message}"
    cases = {*finding["cases"]}
    passing = {t.name: sum(r.case in cases and r.verdict is Verdict.PASS for r in t.results) for t in targets}
    passes = [f"{name} passes {count} of these cases" for name, count in passing.items() if count]
    advice = (workaround(finding, node.operator), f"{listed(passes)}." if passes else "", rules()[MEASURED].advice)
    return Broken(MEASURED, text, advice=" ".join(filter(None, advice)))


def _concerns(finding: Finding, node: SampleNode) -> bool:
    """Return whether a node shows the fault that explains a finding or, without one, meets its conditions."""
    fault = fault_named(finding["fault"]) if finding["fault"] else None
    if fault is not None:
        return node.shows(fault)
    condition = finding["conditions"].partition(" (")[0]
    traits = {worded(trait) for trait in node.traits} | {node.operator, f"{node.operator} altogether"}
    return condition in traits or any(f"{a} and {b}" == condition for a, b in itertools.permutations(traits, 2))


def read_measured(folders: Sequence[Path]) -> list[MeasuredTarget]:
    """Return the targets of recorded runs. Raise UserError."""
    results: list[Result] = []
    records: list[TargetRecord] = []
    for folder in folders:
        run = read_folder(folder)
        if not run.results:
            raise UserError(f"{folder}: holds no results")
        results += run.results
        records += run.info["targets"] if run.info is not None else []
    targets = []
    for name in dict.fromkeys(result.target for result in results):
        target_records = [record for record in records if record["name"] == name]
        findings = [finding for record in target_records for finding in record["findings"] if _says_when(finding)]
        targets.append(MeasuredTarget(name, [r for r in results if r.target == name], findings))
    return targets


def _says_when(finding: Finding) -> bool:
    return finding["kind"] not in NO_FAILURE and bool(finding["conditions"] or finding["fault"])
