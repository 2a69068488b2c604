"""Issue on one finding for the maintainers of a runtime, with the facts that they need to reproduce the fault."""

from __future__ import annotations

from collections.abc import Sequence

from ...reference.errors import UserError
from ..evidence import Exhibit
from ..findings import Finding, Member, findings_of
from ..run import Run
from ..subject import subjects_of
from ..templates import markdown_of
from ..text import flattened

LONGEST_SCRIPT = 40_000
"""Maximum characters of a script inside the issue: most trackers accept about 65,000 in all."""

_LISTED = 20
_DESCRIBED = ("runtime", "version", "provider", "device", "python", "onnx", "numpy", "platform", "machine")


def issue_markdown(runs: Sequence[Run], name: str) -> str:
    """Return the issue on a finding, given by its number on the page, its title, or its smallest case.

    Raise UserError where no finding has that name, or it has no evidence; OSError where its script cannot be read.
    """
    finding, member, exhibit = _chosen(runs, name)
    subject, numbers = member.subject, exhibit.evidence.numbers or None
    elements = [numbers.parting, *(numbers.states or [])] if numbers else []
    described = dict(flattened(subject.info["description"]))
    path, script = exhibit.folder / "script.py", ""
    if path.name in exhibit.files:
        script = path.read_text(encoding="utf-8")
    return markdown_of(
        "issue.md",
        finding=finding,
        member=member,
        evidence=exhibit.evidence,
        numbers=numbers,
        elements=list({e.place: e for e in elements if e is not None and e.got is not None}.values()),
        environment=[(key, described[key]) for key in _DESCRIBED if described.get(key)],
        options=[f"{key} = {value}" for key, value in flattened(subject.info["options"])],
        release=subject.run.info["onnxspec"] if subject.run.described else "of an unknown version",
        folder=str(exhibit.folder) if exhibit.files else "",
        script_path=str(path) if len(script) > LONGEST_SCRIPT else "",
        script=script,
    )


def _chosen(runs: Sequence[Run], name: str) -> tuple[Finding, Member, Exhibit]:
    """Return the finding of that name, with the first target that has evidence. Raise UserError."""
    findings = findings_of(subjects_of(runs))
    named = [finding for finding in findings if _is(finding, name)]
    if len(named) != 1:
        choosable = named or findings
        choices = "; ".join(f"{finding.number} {finding.title}" for finding in choosable[:_LISTED])
        problem = f"{len(named)} findings are called {name!r}" if named else f"there is no finding {name!r}"
        raise UserError(f"{problem}; give the number of one: {choices}" if choosable else f"{problem}, and no other")
    (finding,) = named
    for member in finding.members:
        if member.exhibit is not None:
            return finding, member, member.exhibit
    why = next((member.missing for member in finding.members if member.missing), "the run has no evidence of it")
    raise UserError(f"finding {finding.number} cannot be shown: {why}")


def _is(finding: Finding, name: str) -> bool:
    if name.isdigit():
        return finding.number == int(name)
    title = finding.title.lower().startswith(name.lower())
    return bool(name) and (title or any(member.record["smallest"] == name for member in finding.members))
