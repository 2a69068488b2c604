"""Files of a search: for each failure a test-case directory, a line of a regression file, and a bug report."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import onnx

from ...cases.portable import case_text
from ...reference import clause_named, fault_named
from ..diagnosis.findings import alone
from ..probes.probe import Probe
from ..results.evidence import EVIDENCE, SCRIPT, Kept, write_evidence
from ..results.records import Finding
from ..results.result import result_of
from ..results.wording import node_text
from .hunt import Discovery, Hunt

REGRESSIONS = "regressions.txt"
REPORTS = "reports"


def write_failures(folder: Path, hunt: Hunt, description: dict[str, Any]) -> list[str]:
    """Write all failures into a folder; return the paths of the bug reports, relative to it. Raise OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"# {failure.title}\n{case_text(failure.spec)}\n" for failure in hunt.failures]
    (folder / REGRESSIONS).write_text("".join(lines), encoding="utf-8")
    probes: dict[str, Probe] = {f.one.probe.id: f.one.probe for f in hunt.failures}
    kept = Kept()
    results = []
    for failure in hunt.failures:
        kept.offer(failure.one)
        probe, judgement = failure.one.probe, failure.one.judgement
        repeat = shlex.join(probe.repeat(hunt.target.name))
        results.append(result_of(probe, hunt.target.name, judgement, failure.one.seconds, None, repeat))
    findings: list[Finding] = [alone([result], results, probes) for result in results]
    evidence = write_evidence(folder, hunt.target, findings, probes, results, kept)
    written = []
    (folder / REPORTS).mkdir(exist_ok=True)
    for number, failure in enumerate(hunt.failures, 1):
        evidence_folder = evidence["folders"].get(failure.one.probe.id)
        path = Path(REPORTS) / f"{number:02}-{failure.one.probe.id}.md"
        text = bug_report(failure, hunt, description, None if evidence_folder is None else folder / evidence_folder)
        (folder / path).write_text(text, encoding="utf-8")
        written.append(path.as_posix())
    return written


def bug_report(failure: Discovery, hunt: Hunt, description: dict[str, Any], place: Path | None) -> str:
    """Return a failure as Markdown for an issue tracker.

    It has versions, the model, actual and expected result, the clause, the known cause, and a script that needs only
    onnx, NumPy and the runtime.
    """
    judgement, prepared = failure.one.judgement, failure.one.prepared
    facts = [
        f"{key} {description[key]}" for key in ("runtime", "version", "provider", "device") if description.get(key)
    ]
    lines = [
        f"# {failure.title}",
        "",
        f"**Runtime**: {', '.join(facts) or hunt.target.name}; onnx {onnx.__version__}",
        "",
        f"**Got**: {judgement.verdict.value}: {judgement.message}",
        "",
    ]
    if prepared.forbidden:
        lines += [f"**Expected**: {prepared.forbidden}", ""]
    if judgement.clause is not None:
        clause = clause_named(judgement.clause)
        lines += [f"**The document** ({clause.source}): {clause.text}", ""]
    for need in failure.needs:
        instead = ", ".join(map(str, need.instead))
        lines.append(f"- It takes {need.field} = {need.value}: with {instead} it is gone (tried on the runtime).")
    faults = [m for m in map(fault_named, failure.diagnosis) if m is not None]
    predicted = f" (that predicted {failure.predicted} fresh cases)" if failure.predicted else ""
    relation = "those of" if predicted else "consistent with"
    lines += [f"- The numbers are {relation} a kernel that {_small(m.summary).rstrip('.')}{predicted}." for m in faults]
    if failure.needs or faults:
        lines.append("")
    lines += ["```", node_text(prepared), "```", ""]
    if place is not None and (place / EVIDENCE).is_file():
        text = json.loads((place / EVIDENCE).read_text(encoding="utf-8")).get("model", {}).get("node", "")
        lines += ["The node:", "", "```", text, "```", ""] if text else []
    if place is not None and (place / SCRIPT).is_file():
        script = (place / SCRIPT).read_text(encoding="utf-8").rstrip()
        lines += ["To see it:", "", "```python", script, "```", ""]
    command = shlex.join(failure.one.probe.repeat(hunt.target.name))
    lines += [f"Or with onnxspec: `{command}`", ""]
    return "\n".join(lines)


def _small(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
