"""Two runs of one target: new failures, fixes and other changes.

Cases are compared by id: an id stands for the same model and bytes as long as the digests agree. Cases that one of the
runs did not try are not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from msgspec import Struct

from ..conformance.judging.judgement import DECLINED, UNTRIED, Verdict
from ..conformance.results.result import Result
from ..reference import ACCURACY_CLASSES
from .findings import findings_of
from .run import Run, changed_cases
from .subject import Subject, command_of, subjects_of, version_of
from .text import flattened

BROKE, LOST, MENDED, GAINED, CHANGED = "broke", "lost", "mended", "gained", "changed"

_NOT_THERE = UNTRIED | {Verdict.NOT_TRIED}
"""Verdicts without information on the target; they are not compared."""

_MOVED = 0.05
"""Smallest relative change of the largest error of passing cases that is reported.

Errors of the same code are identical to the bit. Other thread counts or instruction sets usually change them by less
than this.
"""


KINDS = {
    BROKE: "Newly failing",
    LOST: "No longer supported",
    MENDED: "Fixed",
    GAINED: "Newly supported",
    CHANGED: "Otherwise changed",
}
"""The kinds of changes, each with its heading, the most important first."""


class Change(Struct, frozen=True):
    """A case with its verdicts in both runs.

    Message, command and title of the finding come from the run in which the case does not pass; from the new run where
    it passes in neither.
    """

    case: str
    operator: str
    type: str
    was: str
    now: str
    message: str
    repeat: str
    finding: str

    @property
    def how(self) -> str:
        """Both verdicts as text."""
        return f"{self.was} to {self.now}" if self.was != self.now else f"{self.was}, with another diagnosis"


class Moved(Struct, frozen=True):
    """A change of accuracy in one element type. ``wider``: the new grade allows larger errors."""

    type: str
    grade_was: str
    grade_now: str
    worst_was: float | None
    worst_now: float | None
    wider: bool


class Changes(Struct, frozen=True):
    """The differences on one target: the changed cases by kind, and the number of cases with the same verdict."""

    old: Subject
    new: Subject
    same: int
    changed: Mapping[str, tuple[Change, ...]]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    accuracy: tuple[Moved, ...]

    def groups(self, kind: str) -> list[list[Change]]:
        """Return the changes of a kind by finding, the largest group first; each group starts with its shortest id."""
        groups: dict[str, list[Change]] = {}
        for change in sorted(self.changed[kind], key=lambda change: (len(change.case), change.case)):
            groups.setdefault(change.finding, []).append(change)
        return sorted(groups.values(), key=lambda group: (-len(group), group[0].finding))

    @property
    def worse(self) -> bool:
        """Whether a case broke, lost support, or accuracy has a wider grade."""
        return bool(self.changed[BROKE] or self.changed[LOST] or any(moved.wider for moved in self.accuracy))

    @property
    def title(self) -> str:
        """The target with its version; both where they differ."""
        return ", then ".join(dict.fromkeys(f"{s.name} {s.version}".strip() for s in (self.old, self.new)))

    @property
    def verdict(self) -> str:
        """The result of the comparison in one line."""
        if not self.same and not any(self.changed.values()):
            return "unknown: the runs have no case in common"
        parts = [f"{n:,} {heading.lower()}" for name, heading in KINDS.items() if (n := len(self.changed[name]))]
        down = (moved for moved in self.accuracy if moved.wider)
        parts += [f"accuracy in {m.type} is down from {m.grade_was} to {m.grade_now}" for m in down]
        if not parts:
            return f"the same in all {self.same:,} cases"
        state = "better" if self.changed[MENDED] or self.changed[GAINED] else "changed"
        return f"{'worse' if self.worse else state}: {', '.join(parts)}"


@dataclass(frozen=True)
class Comparison:
    """Two runs, compared target by target. ``warnings`` list differences that limit the comparison, one line each."""

    old: Run
    new: Run
    targets: tuple[Changes, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def worse(self) -> bool:
        return any(changes.worse for changes in self.targets)


def compare(old: Run, new: Run) -> Comparison:
    """Compare two runs by targets of the same name. If each run has a single target, compare these two."""
    olds, news = subjects_of([old]), subjects_of([new])
    if len(olds) == len(news) == 1:
        pairs = [(olds[0], news[0])]
    else:
        by_name = {subject.name: subject for subject in news}
        pairs = [(subject, by_name[subject.name]) for subject in olds if subject.name in by_name]
    paired = {subject.name for pair in pairs for subject in pair}
    titles: dict[tuple[int, str], str] = {}
    for finding in (*findings_of(olds), *findings_of(news)):
        for member in finding.members:
            for case in member.record["cases"]:
                titles.setdefault((id(member.subject), case), finding.title)
    return Comparison(
        old,
        new,
        tuple(_changes(before, after, titles) for before, after in pairs),
        tuple(subject.name for subject in olds if subject.name not in paired),
        tuple(subject.name for subject in news if subject.name not in paired),
        (*old.problems, *new.problems, *_warnings(old, new, pairs)),
    )


def _warnings(old: Run, new: Run, pairs: Iterable[tuple[Subject, Subject]]) -> Iterator[str]:
    """Yield differences between the runs other than the results of their targets."""
    for key, label in (("profile", "profile"), ("onnxspec", "release of onnxspec")):
        values = [dict(run.info)[key] if run.described else "unknown" for run in (old, new)]
        if values[0] != values[1]:
            yield f"They differ in {label}: {values[0]}, then {values[1]}."
    if not (old.described and new.described):  # the difference in profile has been reported
        return
    selections = [dict(flattened(run.info["selection"])) for run in (old, new)]
    if selections[0] != selections[1]:
        described = [
            "; ".join(f"{k} {v}" for k, v in selection.items() if v) or "everything" for selection in selections
        ]
        yield f"They differ in what was selected: {described[0]}, then {described[1]}."
    if changed := changed_cases(old, new):
        yield f"The cases differ for {changed}: cases with the same id are compared, others are listed apart."
    for before, after in pairs:
        if before.name != after.name:
            yield f"The targets have different names: {before.name}, then {after.name}."
        for key, label in (("class", "accuracy class"), ("options", "options"), ("wrap", "wrap")):
            texts = [
                ", ".join(f"{name} {value}".strip() for name, value in flattened(dict(subject.info)[key]))
                for subject in (before, after)
            ]
            if texts[0] != texts[1]:
                yield f"{after.name} differs in {label}: {texts[0] or 'none'}, then {texts[1] or 'none'}."


def _changes(old: Subject, new: Subject, titles: Mapping[tuple[int, str], str]) -> Changes:
    by_kind: dict[str, list[Change]] = {change_kind: [] for change_kind in KINDS}
    same = 0
    for case, after in new.by_case.items():
        before = old.by_case.get(case)
        if before is None:
            continue
        change_kind = _difference(before, after)
        if change_kind is None:
            same += not _NOT_THERE & {before.verdict, after.verdict}
            continue
        result, subject = (before, old) if change_kind in (MENDED, GAINED) else (after, new)
        change = Change(
            case,
            version_of(after),
            after.type,
            before.verdict.value,
            after.verdict.value,
            result.message,
            command_of(result),
            titles.get((id(subject), case), ""),
        )
        by_kind[change_kind].append(change)
    return Changes(
        old,
        new,
        same,
        {change_kind: tuple(changes) for change_kind, changes in by_kind.items()},
        tuple(case for case in old.by_case if case not in new.by_case),
        tuple(case for case in new.by_case if case not in old.by_case),
        tuple(_moves(old, new)),
    )


def _difference(before: Result, after: Result) -> str | None:
    """Return how a case changed; None where it did not, or where a verdict has no information."""
    was, now = before.verdict, after.verdict
    if was in _NOT_THERE or now in _NOT_THERE:
        return None
    if after.failing and not before.failing:
        return BROKE
    if after.failing:
        return CHANGED if was != now or before.diagnosis != after.diagnosis else None
    if now in DECLINED and was not in DECLINED:
        return LOST if was is Verdict.PASS else CHANGED
    if before.failing:
        return MENDED if now is Verdict.PASS else CHANGED
    if was in DECLINED:
        return GAINED if now is Verdict.PASS else None
    return None if was == now else CHANGED


def _moves(old: Subject, new: Subject) -> Iterator[Moved]:
    """Yield the types in which accuracy changed."""
    before, order = {row.type: row for row in old.types}, list(ACCURACY_CLASSES)
    for row in new.types:
        if row.type not in before:
            continue
        was, now = before[row.type].passing_grade, row.passing_grade
        wider = was in order and now in order and order.index(now) > order.index(was)
        largest = [before[row.type].worst or 0.0, row.worst or 0.0]
        both_known = None not in (before[row.type].worst, row.worst)
        if was != now or (both_known and abs(largest[0] - largest[1]) > _MOVED * max(largest)):
            yield Moved(row.type, was, now, before[row.type].worst, row.worst, wider)
