"""The page of disagreements: an operator's document and a kernel, clause by clause, as a run's results show them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec import Struct

from ..conformance.results.records import DisagreementRecord
from .legible import shortened
from .run import Run
from .subject import Subject

PAGE = "document-and-kernel.html"
FOLDER = "disagreements"

_LARGEST_SCRIPT = 4 << 20

KINDS = {
    "numbers": "Numbers: other values than the document\N{RIGHT SINGLE QUOTATION MARK}s arithmetic gives",
    "state": "State: what goes into the next step",
    "interface": "Interface: what is accepted, refused or demanded",
    "memory": "Memory: what reads or writes past its tensors",
    "producer": "Producer: what the conversion tool writes into models",
}


class Disagreement(Struct, frozen=True):
    """One entry of a run's list; ``units`` and ``error`` are the largest error seen, empty where none is, ``script``
    where the page has the script at ``place``."""

    entry: DisagreementRecord
    message: str
    units: str
    error: str
    script: str
    place: Path

    @property
    def tone(self) -> tuple[str, str, str]:
        """Icon, tone and words of its chip."""
        if self.entry["seen"] == "shown":
            return "cross", "fail", "shown by this run"
        if self.entry["seen"] == "within the bound":
            return "check", "pass", "within the bound"
        return "question", "quiet", "read in the source"


@dataclass(frozen=True)
class Part:
    """The disagreements of one kind."""

    kind: str
    heading: str
    members: tuple[Disagreement, ...]


class Page(Struct, frozen=True):
    """Disagreements that one target's run shows."""

    subject: Subject
    parts: tuple[Part, ...]

    @property
    def all(self) -> tuple[Disagreement, ...]:
        return tuple(member for part in self.parts for member in part.members)

    @property
    def shown(self) -> int:
        return sum(member.entry["seen"] == "shown" for member in self.all)


def disagreements_of(subjects: Sequence[Subject]) -> list[Page]:
    """Return the list of each subject whose run holds one."""
    pages = []
    for subject in subjects:
        entries = subject.info.get("disagreements", [])
        members = [(entry["kind"], _one(entry, subject.run)) for entry in entries[:200]]
        kinds = list(dict.fromkeys([*KINDS, *(kind for kind, _ in members)]))
        parts = [Part(kind, KINDS.get(kind, kind), tuple(m for k, m in members if k == kind)) for kind in kinds]
        if members:
            pages.append(Page(subject, tuple(part for part in parts if part.members)))
    return pages


def _one(entry: DisagreementRecord, run: Run) -> Disagreement:
    units, error, script = entry["units"], entry["error"], entry["script"]
    place = _script(run.path, script)
    return Disagreement(
        entry,
        message=shortened(entry["message"], 400),
        units="" if units is None else _number(units),
        error="" if error is None else f"{error:.3g}",
        script="" if place is None else f"{FOLDER}/{Path(script).name}",
        place=place or run.path,
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _script(run: Path, name: str) -> Path | None:
    """The file of that name inside the run directory, if it is one; nothing outside is looked at."""
    if not name.endswith(".py"):
        return None
    root, path = run.resolve(), (run / name).resolve()
    if root not in path.parents or not path.is_file() or path.stat().st_size > _LARGEST_SCRIPT:
        return None
    return path


def copy_scripts(pages: Sequence[Page], out: Path) -> None:
    """Copy the scripts beside the page, so that a report can be sent to somebody without its run."""
    for page in pages:
        for one in page.all:
            if one.script:
                (out / one.script).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(one.place, out / one.script)
