"""The site, written: pages, their content as JSON, badges, the index of the search."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..gallery import entries_of, gallery_markdown
from ..page import html_of
from ..run import Run
from ..text import slug
from .history import FindingHistory, histories_of
from .releases import Outcome, Release, Runtime, outcome, runtimes_of

MARK = ".onnxspec-site"


_MOST_SCRIPT = 40_000


def write_site(runs: Sequence[Run], out: Path, command: str) -> tuple[Path, list[str]]:
    """Write the site on ``runs`` into the folder ``out``, in place of an earlier one; return its first page, and what
    was left out, a line each.

    command
        The command that makes it, which the first page names.

    Raises OSError where that cannot be written, or where the folder holds something else.
    """
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise FileExistsError(17, "it holds other things than a site", str(out))
    runtimes, remarks = runtimes_of(runs)
    histories = {runtime.name: histories_of(runtime) for runtime in runtimes}
    unfinished = out.with_name(f".{out.name}.{os.getpid()}")
    gallery = ("gallery.md", gallery_markdown(runs, entries_of(runs), command))
    try:
        for path, content in (*_files(runtimes, histories, command), gallery):
            place = unfinished / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode("utf-8", errors="backslashreplace"))
        (unfinished / MARK).write_text("Written by onnxspec; replaced with the next site.\n", encoding="utf-8")
        shutil.rmtree(out, ignore_errors=True)
        unfinished.replace(out)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return out / "index.html", remarks


def _files(
    runtimes: Sequence[Runtime], histories: dict[str, list[FindingHistory]], command: str
) -> Iterator[tuple[str, str]]:
    """Yield path and content of every file."""
    operators = _operators(runtimes)
    newest = [runtime.newest.subject for runtime in runtimes]
    features = sorted({group for subject in newest for group, _ in subject.by_feature}, key=str.casefold)
    yield _page(
        "index.html",
        "site_index.html",
        runtimes=runtimes,
        operators=operators,
        features=[(name, _feature_page(name)) for name in features],
        changed=[history for own in histories.values() for history in own if history.changed],
        command=command,
        index=json.dumps(_index(runtimes, histories, features)).replace("<", "\\u003c"),
    )
    for runtime in runtimes:
        badges = {slug(version): version for version in runtime.newest.subject.by_version}
        yield _page(
            f"runtimes/{runtime.slug}.html",
            "site_runtime.html",
            runtime=runtime,
            operators=[name for name in operators if any(name in r.subject.by_version for r in runtime.releases)],
            types=sorted({name for release in runtime.releases for name in release.subject.by_type}),
            histories=histories[runtime.name],
            badges=badges,
        )
        for path, version in badges.items():
            label = f"{version} on {runtime.name} {runtime.newest.version}"
            badge = outcome(runtime.newest.subject.by_version[version]).badge(label)
            yield f"badges/{runtime.slug}/{path}.json", _json(badge)
        for history in histories[runtime.name]:
            yield _page(history.page, "site_finding.html", history=history, script=_script(history))
    records = []
    for feature in features:
        rows = [
            (runtime, {name: outcome(runtime.newest.subject.by_feature.get((feature, name))) for name in operators})
            for runtime in runtimes
        ]
        tried = [name for name in operators if any(cells[name].tone != "none" for _, cells in rows)]
        records.append(_feature_record(feature, rows))
        yield _page(_feature_page(feature), "site_feature.html", feature=feature, rows=rows, operators=tried)
    content = {
        "runtimes": [_runtime_record(runtime, histories[runtime.name]) for runtime in runtimes],
        "features": records,
    }
    yield "site.json", _json(content)


def _page(path: str, template: str, **content: Any) -> tuple[str, str]:
    """Return path and text of a page. ``root`` leads back to the site's folder."""
    scripts, root = ("theme.js", "site.js"), "../" * path.count("/")
    return path, html_of(template, "site.css", scripts=scripts, root=root, outcome=outcome, **content)


def _script(history: FindingHistory) -> str:
    """The program that shows a finding, empty where the run has none or a page cannot hold it."""
    exhibit = history.member.exhibit
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


def _runtime_record(runtime: Runtime, histories: Sequence[FindingHistory]) -> dict[str, Any]:
    return {
        "runtime": runtime.name,
        "page": f"runtimes/{runtime.slug}.html",
        "releases": list(map(_release_record, runtime.releases)),
        "findings": list(map(_history_record, histories)),
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


def _history_record(history: FindingHistory) -> dict[str, Any]:
    member = history.member
    return {
        "finding": history.title,
        "page": history.page,
        "runtime": history.runtime.name,
        "verdict": history.finding.verdict or history.finding.kind,
        "seen": history.sentence,
        "releases": history.states,
        "by_operator": history.by_operator,
        "cases": history.counts,
        "operators": list(member.versions),
        "types": list(member.types),
        "clauses": [clause.id for clause in history.finding.clauses],
        "smallest": member.smallest,
        "message": member.message,
        "command": member.repeat,
        "why": member.why,
    }


def _feature_record(feature: str, rows: Sequence[tuple[Runtime, dict[str, Outcome]]]) -> dict[str, Any]:
    runtimes = [
        {
            "runtime": runtime.name,
            "version": runtime.newest.version,
            "operators": {
                name: {"outcome": cell.words, "figures": cell.figures}
                for name, cell in cells.items()
                if cell.tone != "none"
            },
        }
        for runtime, cells in rows
    ]
    return {"feature": feature, "page": _feature_page(feature), "runtimes": runtimes}


def _index(
    runtimes: Sequence[Runtime], histories: dict[str, list[FindingHistory]], features: Sequence[str]
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
    for own in histories.values():
        for history in own:
            words = [*history.member.versions, *history.member.types, history.finding.fault, history.finding.verdict]
            words += [clause.id for clause in history.finding.clauses]
            entries.append(
                {
                    "kind": history.runtime.name,
                    "title": history.title,
                    "page": history.page,
                    "words": " ".join(filter(None, words)),
                }
            )
    return entries


def _json(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"
