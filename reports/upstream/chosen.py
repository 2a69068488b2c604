"""The finding that somebody names: by its number on the page, by its title, or by its smallest case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...reference.errors import UserError
from ..evidence import Exhibit
from ..findings import Finding, Member, findings_of
from ..run import Run
from ..subject import subjects_of

_LISTED = 20


@dataclass(frozen=True)
class Chosen:
    """A finding on one target, with the evidence of its smallest case."""

    finding: Finding
    member: Member
    exhibit: Exhibit


def chosen_finding(runs: Sequence[Run], named: str) -> Chosen:
    """The finding of that name. Raises UserError."""
    findings = findings_of(subjects_of(runs))
    alike = [finding for finding in findings if _is(finding, named)]
    if len(alike) != 1:
        shown = alike or findings
        listed = "; ".join(f"{finding.number} {finding.title}" for finding in shown[:_LISTED])
        what = f"{len(alike)} findings are called {named!r}" if alike else f"there is no finding {named!r}"
        raise UserError(f"{what}; give the number of one: {listed}" if shown else f"{what}, and no other")
    (finding,) = alike
    for member in finding.members:
        exhibit = member.exhibit
        if exhibit is not None:
            return Chosen(finding, member, exhibit)
    why = next((member.missing for member in finding.members if member.missing), "the run has no evidence of it")
    raise UserError(f"finding {finding.number} cannot be shown: {why}")


def _is(finding: Finding, named: str) -> bool:
    if named.isdigit():
        return finding.number == int(named)
    title = finding.title.lower().startswith(named.lower())
    return bool(named) and (title or any(member.smallest == named for member in finding.members))
