"""Two runs of one target: new failures, fixes and other changes.

Cases are compared by their ids, which stand for the same model and the same bytes as long as the digests agree. What
one run has not tried is not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from ..conformance.judging.judgement import DECLINED, UNTRIED, Verdict
from ..conformance.results.result import Result
from ..conformance.text import plural
from ..reference import ACCURACY_CLASSES
from .findings import Finding, findings_of
from .run import Run
from .subject import Subject, TypeRow, command_of, subjects_of, version_of
from .text import flattened

BROKE, LOST, MENDED, GAINED, CHANGED = "broke", "lost", "mended", "gained", "changed"

_NOT_THERE = UNTRIED | {Verdict.NOT_TRIED}
"""Verdicts that say nothing of the target, so that nothing is compared with them."""

_MOVED = 0.05
"""Part of the larger one by which two largest errors among passes must differ to be told as a move. Errors of the same
code are the same bits; other thread counts or instruction sets move them by less than that, rarely by more."""


class Change(Struct, frozen=True):
    """A case with its verdicts in both runs; message and command are those of the run in
    which it does not pass, of the new one where both do not."""

    case: str
    operator: str
    type: str
    was: str
    now: str
    message: str
    repeat: str

    @property
    def how(self) -> str:
        """Both verdicts, in words."""
        return f"{self.was} to {self.now}" if self.was != self.now else f"{self.was}, with another diagnosis"


@dataclass(frozen=True)
class Group:
    """Changes that one finding names, the simplest case first; ``finding`` is its title, empty for none."""

    finding: str
    changes: tuple[Change, ...]


class Moved(Struct, frozen=True):
    """The move of accuracy in one element type. ``wider`` is whether the grade is one that allows more."""

    type: str
    grade_was: str
    grade_now: str
    worst_was: float | None
    worst_now: float | None
    wider: bool


class Changes(Struct, frozen=True):
    """The differences on one target. ``same`` counts the cases whose verdict is the same in both runs."""

    name: str
    old: Subject
    new: Subject
    same: int
    groups: Mapping[str, tuple[Group, ...]]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    accuracy: tuple[Moved, ...]

    def count(self, kind: str) -> int:
        """The number of cases that changed in that way."""
        return sum(len(group.changes) for group in self.groups[kind])

    @property
    def worse(self) -> bool:
        """Tell whether something got worse: a case broke, one is no longer supported, or accuracy has a wider grade."""
        return bool(self.groups[BROKE] or self.groups[LOST] or any(moved.wider for moved in self.accuracy))

    @property
    def better(self) -> bool:
        return bool(self.groups[MENDED] or self.groups[GAINED])

    @property
    def compared(self) -> int:
        return self.same + sum(map(self.count, self.groups))

    @property
    def title(self) -> str:
        """The target with its versions; two targets where they are not the same."""
        if self.old.name == self.new.name:
            return f"{self.name} {self.versions}".strip()
        return ", then ".join(f"{subject.name} {subject.version}".strip() for subject in (self.old, self.new))

    @property
    def versions(self) -> str:
        """The versions of the runtime, as one word where they are the same."""
        was, now = self.old.version, self.new.version
        return now if was == now else f"{was or 'unknown'} to {now or 'unknown'}"

    @property
    def verdict(self) -> str:
        """The answer in a line."""
        if not self.compared:
            return "unknown: the runs have no case in common"
        parts = [plural(n, word, words) for kind, word, words in _WORDS if (n := self.count(kind))]
        parts += [f"accuracy in {m.type} is down from {m.grade_was} to {m.grade_now}" for m in self.lost]
        if not parts:
            return f"the same in all {self.compared:,} cases"
        state = "better" if self.better else "changed"
        return f"{'worse' if self.worse else state}: {', '.join(parts)}"

    @property
    def lost(self) -> list[Moved]:
        """Types whose accuracy is of a wider grade."""
        return [moved for moved in self.accuracy if moved.wider]


_WORDS = (
    (BROKE, "new failure", "new failures"),
    (LOST, "no longer supported", "no longer supported"),
    (MENDED, "fixed", "fixed"),
    (GAINED, "newly supported", "newly supported"),
    (CHANGED, "other change", "other changes"),
)

HEADINGS = {
    BROKE: "New failures",
    LOST: "No longer supported",
    MENDED: "Fixed",
    GAINED: "Newly supported",
    CHANGED: "Other changes",
}
"""The kinds of changes, what matters most first, and what each is called."""


@dataclass(frozen=True)
class Comparison:
    """Two runs, target by target. ``warnings`` say what makes them less than comparable, one line each."""

    old: Run
    new: Run
    targets: tuple[Changes, ...]
    only_old: tuple[str, ...]
    only_new: tuple[str, ...]
    warnings: tuple[str, ...] = field(default=())

    @property
    def worse(self) -> bool:
        return any(changes.worse for changes in self.targets)

    @property
    def answer(self) -> str:
        """The answer in a word or two: whether something got worse."""
        worse = [changes for changes in self.targets if changes.worse]
        if worse:
            return "Yes" if len(worse) == len(self.targets) else f"Yes, {len(worse)} of {len(self.targets)} targets"
        return "No" if any(changes.compared for changes in self.targets) else "Unknown: they share no case"


def compare(old: Run, new: Run) -> Comparison:
    """Compare two runs, target by target of the same name; where each has but one, these two, whatever their names."""
    comparison = compare_subjects(old, new, subjects_of([old]), subjects_of([new]))
    return replace(comparison, warnings=(*old.problems, *new.problems, *comparison.warnings))


def compare_subjects(
    old: Run, new: Run, olds: Sequence[Subject], news: Sequence[Subject], findings: Sequence[Finding] | None = None
) -> Comparison:
    """Compare like `compare`, for runs whose targets have been read; ``findings`` are those of all of them, where
    known."""
    if len(olds) == len(news) == 1:
        pairs = [(olds[0], news[0])]
    else:
        by_name = {subject.name: subject for subject in news}
        pairs = [(subject, by_name[subject.name]) for subject in olds if subject.name in by_name]
    known = list(findings) if findings is not None else [*findings_of(olds), *findings_of(news)]
    paired = {subject.name for pair in pairs for subject in pair}
    return Comparison(
        old,
        new,
        tuple(_changes(before, after, known) for before, after in pairs),
        tuple(subject.name for subject in olds if subject.name not in paired),
        tuple(subject.name for subject in news if subject.name not in paired),
        tuple(_warnings(old, new, pairs)),
    )


def _warnings(old: Run, new: Run, pairs: Iterable[tuple[Subject, Subject]]) -> Iterator[str]:
    """Differences between the runs beside their targets' answers."""
    for key, words in (("profile", "profile"), ("onnxspec", "release of onnxspec")):
        values = [_recorded(run, key) for run in (old, new)]
        if values[0] != values[1]:
            yield f"They differ in {words}: {values[0]}, then {values[1]}."
    if not (old.described and new.described):  # that has been said
        return
    selections = [dict(flattened(run.info["selection"])) for run in (old, new)]
    if selections[0] != selections[1]:
        chosen = ["; ".join(f"{k} {v}" for k, v in each.items() if v) or "everything" for each in selections]
        yield f"They differ in what was selected: {chosen[0]}, then {chosen[1]}."
    digests = [run.info["digests"] for run in (old, new)]
    changed = sorted(key for key in digests[0] if key in digests[1] and digests[0][key] != digests[1][key])
    if changed:
        names = ", ".join(changed[:8])
        yield f"The cases differ for {names}: cases with the same id are compared, others are listed apart."
    for before, after in pairs:
        if before.name != after.name:
            yield f"The targets have different names: {before.name}, then {after.name}."
        for key, words in (("class", "accuracy class"), ("options", "options"), ("wrap", "wrap")):
            texts = [
                ", ".join(f"{name} {value}".strip() for name, value in flattened(dict(subject.info)[key]))
                for subject in (before, after)
            ]
            if texts[0] != texts[1]:
                yield f"{after.name} differs in {words}: {texts[0] or 'none'}, then {texts[1] or 'none'}."


def _changes(old: Subject, new: Subject, findings: Sequence[Finding]) -> Changes:
    titles = {id(subject): _titles(subject, findings) for subject in (old, new)}
    by_kind: dict[str, list[tuple[str, Change]]] = {kind: [] for kind in HEADINGS}
    same = 0
    for case, after in new.by_case.items():
        before = old.by_case.get(case)
        if before is None:
            continue
        kind = _difference(before, after)
        if kind is None:
            same += not _NOT_THERE & {before.verdict, after.verdict}
            continue
        result, subject = (before, old) if kind in (MENDED, GAINED) else (after, new)
        change = Change(
            case,
            version_of(after),
            after.type,
            before.verdict.value,
            after.verdict.value,
            result.message,
            command_of(result),
        )
        by_kind[kind].append((titles[id(subject)].get(case, ""), change))
    return Changes(
        new.name,
        old,
        new,
        same,
        {kind: _grouped(changes) for kind, changes in by_kind.items()},
        tuple(case for case in old.by_case if case not in new.by_case),
        tuple(case for case in new.by_case if case not in old.by_case),
        tuple(_moves(old, new)),
    )


def _difference(before: Result, after: Result) -> str | None:
    """Return how a case changed; None where it did not, or where nobody can tell."""
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


def _titles(subject: Subject, findings: Sequence[Finding]) -> dict[str, str]:
    """The title of the finding that names a case, by case; of several, of the first."""
    named: dict[str, str] = {}
    for finding in findings:
        for member in finding.members:
            if member.subject is subject:
                for case in member.cases:
                    named.setdefault(case, finding.title)
    return named


def _grouped(changes: Sequence[tuple[str, Change]]) -> tuple[Group, ...]:
    """Groups by finding, the largest first; in each the shortest ids first, since they have the fewest features."""
    groups: dict[str, list[Change]] = {}
    for title, change in changes:
        groups.setdefault(title, []).append(change)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return tuple(Group(title, tuple(sorted(of, key=lambda c: (len(c.case), c.case)))) for title, of in ordered)


def _moves(old: Subject, new: Subject) -> Iterator[Moved]:
    """The types in which accuracy is not what it was."""
    before: dict[str, TypeRow] = {row.type: row for row in old.types}
    order = list(ACCURACY_CLASSES)
    for row in new.types:
        was = before.get(row.type)
        if was is None:
            continue
        grades = was.passing_grade, row.passing_grade
        wider = all(grade in order for grade in grades) and order.index(grades[1]) > order.index(grades[0])
        if grades[0] != grades[1] or _apart(was.worst, row.worst):
            yield Moved(row.type, *grades, was.worst, row.worst, wider)


def _recorded(run: Run, key: str) -> str:
    return str(dict(run.info)[key]) if run.described else "unknown"


def _apart(was: float | None, now: float | None) -> bool:
    return was is not None and now is not None and abs(was - now) > _MOVED * max(was, now)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The comparison as JSON holds it; the keys are in docs/results.md."""

    def end(run: Run) -> dict[str, Any]:
        return {
            "folder": str(run.path),
            "started": run.info["started"],
            "onnxspec": run.info["onnxspec"],
        }

    return {
        "schema": 1,
        "old": end(comparison.old),
        "new": end(comparison.new),
        "worse": comparison.worse,
        "warnings": list(comparison.warnings),
        "only_old": list(comparison.only_old),
        "only_new": list(comparison.only_new),
        "targets": list(map(_target_as_json, comparison.targets)),
    }


def _target_as_json(changes: Changes) -> dict[str, Any]:
    record: dict[str, Any] = {
        "name": changes.name,
        "old_version": changes.old.version,
        "new_version": changes.new.version,
        "worse": changes.worse,
        "same": changes.same,
    }
    for kind in HEADINGS:
        groups = changes.groups[kind]
        record[kind] = [{**asdict(change), "finding": group.finding} for group in groups for change in group.changes]
    record |= {"only_old": list(changes.only_old), "only_new": list(changes.only_new)}
    return record | {"accuracy": list(map(asdict, changes.accuracy))}


def tone(kind: str) -> tuple[str, str]:
    """Icon and tone of a kind of change."""
    return {
        BROKE: ("cross", "fail"),
        LOST: ("bar", "fail"),
        MENDED: ("check", "pass"),
        GAINED: ("check", "pass"),
        CHANGED: ("wave", "known"),
    }[kind]
