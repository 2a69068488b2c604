"""The site, written: pages, and beside each what it says as JSON; badges; the index of the search."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...conformance.judging.judgement import Verdict
from ..gallery import entries_of, gallery_markdown
from ..page import html_of
from ..run import Run
from ..text import slug
from .badges import Badge, outcome
from .chart import chart_of
from .history import Course, courses_of
from .releases import Release, Runtime, runtimes_of

MARK = ".onnxspec-site"


@dataclass(frozen=True)
class Again:
    """The outcome of a finding whose smallest case was run once more; ``now`` is None where it could not be run."""

    course: Course
    shown: bool
    now: Verdict | None


_MOST_SCRIPT = 40_000


RunAgain = Callable[[Sequence[tuple[str, str, str]]], Sequence[Verdict | None]]
"""Runs cases once more, given by names of target and case, and id; None where that cannot be tried."""


def write_site(
    runs: Sequence[Run], out: Path, command: str, run_again: RunAgain | None = None
) -> tuple[Path, list[str]]:
    """Write the site on ``runs`` into the folder ``out``, in place of an earlier one; return its first page, and what
    was left out, a line each.

    command
        The command that makes it, which the first page names.
    run_again
        Tries findings once more: each page then says what came of it, and what did not show again is a line, too.

    Raises OSError where that cannot be written, or where the folder holds something else.
    """
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise FileExistsError(17, "it holds other things than a site", str(out))
    runtimes, remarks = runtimes_of(runs)
    courses = {runtime.name: courses_of(runtime) for runtime in runtimes}
    again = _tried_again([course for own in courses.values() for course in own], run_again) if run_again else {}
    remarks += [
        f"not shown again: {one.course.title} ({one.course.member.smallest})" for one in again.values() if not one.shown
    ]
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    gone = {one.course.entry.wanted for one in again.values() if not one.shown}
    entries = [entry for entry in entries_of(runs) if entry.wanted not in gone]
    gallery = ("gallery.md", gallery_markdown(runs, entries, command))
    try:
        for path, content in (*_files(runtimes, courses, command, again), gallery):
            place = unfinished / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode("utf-8", errors="backslashreplace"))
        (unfinished / MARK).write_text("Written by onnxspec; replaced with the next site.\n", encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        unfinished.replace(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return out / "index.html", remarks


def _tried_again(courses: Sequence[Course], run_again: RunAgain) -> dict[str, Again]:
    """Outcomes of findings that were tried once more, by page."""
    entries = [course.entry for course in courses]
    outcomes = zip(courses, entries, run_again([entry.wanted for entry in entries]), strict=True)
    return {course.page: Again(course, entry.shown_by(now), now) for course, entry, now in outcomes}


def _files(
    runtimes: Sequence[Runtime], courses: dict[str, list[Course]], command: str, again: dict[str, Again]
) -> Iterator[tuple[str, str]]:
    """Path and content of every file."""
    operators = _operators(runtimes)
    features = sorted(
        {group for runtime in runtimes for group, _ in runtime.newest.subject.by_feature}, key=str.casefold
    )
    index = _index(runtimes, courses, features)
    yield "search.json", _json(index)
    yield from _page(
        "index",
        "site_index.html",
        {
            "runtimes": [_runtime_record(runtime) for runtime in runtimes],
            "features": [{"name": name, "page": _feature_page(name)} for name in features],
        },
        runtimes=runtimes,
        operators=operators,
        features=[(name, _feature_page(name)) for name in features],
        courses=courses,
        changed=_changed(courses),
        command=command,
        again=again,
        index=json.dumps(index).replace("</", "<\\/"),
    )
    for runtime in runtimes:
        own = courses[runtime.name]
        release = f"{runtime.name} {runtime.newest.version}"
        badges = [
            Badge(f"{name} on {release}", f"badges/{runtime.slug}/{slug(name)}", outcome(tally))
            for name, tally in runtime.newest.subject.by_version.items()
        ]
        yield from _page(
            f"runtimes/{runtime.slug}",
            "site_runtime.html",
            _runtime_record(runtime) | {"findings": [_course_record(course) for course in own]},
            runtime=runtime,
            operators=[
                name for name in operators if any(name in release.subject.by_version for release in runtime.releases)
            ],
            types=sorted({name for release in runtime.releases for name in release.subject.by_type}),
            courses=own,
            chart=chart_of(runtime),
            badges=badges,
        )
        for badge in badges:
            yield f"{badge.path}.svg", badge.svg
            yield f"{badge.path}.json", _json(badge.json)
        for course in own:
            yield from _page(
                course.page.removesuffix(".html"),
                "site_finding.html",
                _course_record(course),
                course=course,
                again=again.get(course.page),
                script=_script(course),
            )
    for feature in features:
        rows = [
            (runtime, [(name, outcome(runtime.newest.subject.by_feature.get((feature, name)))) for name in operators])
            for runtime in runtimes
        ]
        yield from _page(
            _feature_page(feature).removesuffix(".html"),
            "site_feature.html",
            {"feature": feature, "runtimes": [_feature_record(runtime, cells) for runtime, cells in rows]},
            feature=feature,
            rows=rows,
            operators=[name for name in operators if any(dict(cells)[name].tone != "none" for _, cells in rows)],
        )


def _page(path: str, name: str, data: object, **given: Any) -> Iterator[tuple[str, str]]:
    """A page, and its data beside it. ``root`` leads back to the site's folder."""
    text = html_of(
        name,
        "site.css",
        scripts=("theme.js", "site.js"),
        root="../" * path.count("/"),
        data=f"{path.rpartition('/')[2]}.json",
        outcome=outcome,
        **given,
    )
    yield f"{path}.html", text
    yield f"{path}.json", _json(data)


def _script(course: Course) -> str:
    """The program that shows a finding, empty where the run has none or a page cannot hold it."""
    exhibit = course.member.exhibit
    if exhibit is None or "script.py" not in exhibit.files:
        return ""
    text = (exhibit.folder / "script.py").read_text(encoding="utf-8", errors="replace")
    return text if len(text) <= _MOST_SCRIPT else ""


def _feature_page(name: str) -> str:
    return f"features/{slug(name)}.html"


def _operators(runtimes: Sequence[Runtime]) -> list[str]:
    """All operator versions, those of one operator side by side, the newest first: phones show two columns."""
    every = {name for runtime in runtimes for release in runtime.releases for name in release.subject.by_version}
    return sorted(every, key=lambda name: (name.rpartition("-")[0], -int(name.rpartition("-")[2])))


def _changed(courses: dict[str, list[Course]]) -> list[Course]:
    """Findings that some release has and another one does rightly."""
    return [course for own in courses.values() for course in own if course.changed]


def _runtime_record(runtime: Runtime) -> dict[str, Any]:
    return {
        "runtime": runtime.name,
        "page": f"runtimes/{runtime.slug}.html",
        "releases": list(map(_release_record, runtime.releases)),
    }


def _release_record(release: Release) -> dict[str, Any]:
    return {
        "version": release.version,
        "run": release.subject.run.info["started"],
        "onnxspec": release.subject.run.info["onnxspec"],
        "profile": release.profile,
        "seconds": release.subject.info["seconds"],
        "operators": {name: dict(tally.verdicts) for name, tally in release.subject.by_version.items()},
        "types": {name: dict(tally.verdicts) for name, tally in release.subject.by_type.items()},
    }


def _course_record(course: Course) -> dict[str, Any]:
    member = course.member
    return {
        "finding": course.title,
        "page": course.page,
        "runtime": course.runtime.name,
        "verdict": course.finding.verdict or course.finding.kind,
        "seen": course.sentence,
        "releases": course.states,
        "by_operator": course.by_operator,
        "cases": course.counts,
        "operators": list(member.versions),
        "types": list(member.types),
        "clauses": [clause.id for clause in course.finding.clauses],
        "smallest": member.smallest,
        "message": member.message,
        "command": member.repeat,
        "why": member.why,
    }


def _feature_record(runtime: Runtime, cells: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    told = {name: {"outcome": each.words, "figures": each.figures} for name, each in cells if each.tone != "none"}
    return {"runtime": runtime.name, "version": runtime.newest.version, "operators": told}


def _index(
    runtimes: Sequence[Runtime], courses: dict[str, list[Course]], features: Sequence[str]
) -> list[dict[str, str]]:
    """Entries of the search, one a page: its kind, title, address, and further words."""
    entries = [
        {
            "kind": "runtime",
            "title": runtime.name,
            "page": f"runtimes/{runtime.slug}.html",
            "words": " ".join(release.version for release in runtime.releases),
        }
        for runtime in runtimes
    ]
    entries += [{"kind": "feature", "title": name, "page": _feature_page(name), "words": ""} for name in features]
    for own in courses.values():
        for course in own:
            words = [*course.member.versions, *course.member.types, course.finding.fault, course.finding.verdict]
            words += [clause.id for clause in course.finding.clauses]
            entries.append(
                {
                    "kind": course.runtime.name,
                    "title": course.title,
                    "page": course.page,
                    "words": " ".join(filter(None, words)),
                }
            )
    return entries


def _json(value: object) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False) + "\n"
