"""Writer of the site: pages, badges, search index."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ..finding_page import replaced_folder
from ..run import Run
from ..templates import html_of
from ..text import slug
from .history import FindingHistory, Outcome, Release, Runtime, histories_of, outcome, runtimes_of

_COLOURS = {"pass": "#17653a", "fail": "#ad1f17", "unsupported": "#56469a", "none": "#56606b"}


def write_site(runs: Sequence[Run], out: Path, command: str) -> tuple[Path, list[str]]:
    """Write the site on ``runs`` into the folder ``out``, replacing an earlier one.

    Return its first page, and one line for each run or target that was left out.

    command
        The command that builds the site, shown on the first page.

    Raise OSError where the site cannot be written, or where the folder has other content.
    """
    runtimes, remarks = runtimes_of(runs)
    histories = {runtime.name: histories_of(runtime) for runtime in runtimes}
    with replaced_folder(out, ".onnxspec-site", "a site") as folder:
        for path, content in _files(runtimes, histories, command):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content.encode())
    return out / "index.html", remarks


def _files(
    runtimes: Sequence[Runtime],
    histories: dict[str, list[FindingHistory]],
    command: str,
) -> Iterator[tuple[str, str]]:
    """Yield path and content of every file."""
    # Versions of one operator are neighbours, the newest first: phones show two columns.
    operators = sorted(
        {name for runtime in runtimes for release in runtime.releases for name in release.subject.by_version},
        key=lambda name: (name.rpartition("-")[0], -int(name.rpartition("-")[2])),
    )
    groups = {group for runtime in runtimes for group, _ in runtime.newest.subject.by_feature}
    features = {name: f"features/{slug(name)}.html" for name in sorted(groups, key=str.casefold)}
    content: dict[str, Any] = {"histories": histories, "command": command}
    index = Markup(json.dumps([*_index(runtimes, histories, features)]).replace("<", "\\u003c"))
    newest = [(runtime, _outcomes(runtime.newest, operators)) for runtime in runtimes]
    content |= {"operators": operators, "rows": newest, "features": features, "index": index}
    yield _page("index.html", "site_index.html", **content)
    for feature, path in features.items():
        rows = [
            (runtime, {name: outcome(runtime.newest.subject.by_feature.get((feature, name))) for name in operators})
            for runtime in runtimes
        ]
        tried = [name for name in operators if any(cells[name].tone != "none" for _, cells in rows)]
        yield _page(path, "site_feature.html", feature=feature, rows=rows, operators=tried)
    for runtime in runtimes:
        tallies = runtime.newest.subject.by_version
        badges = {version: f"badges/{runtime.slug}/{slug(version)}.json" for version in tallies}
        tried = [name for name in operators if any(name in r.subject.by_version for r in runtime.releases)]
        yield _page(
            runtime.page,
            "site_runtime.html",
            runtime=runtime,
            operators=tried,
            releases=[(release, _outcomes(release, tried)) for release in reversed(runtime.releases)],
            types=sorted({name for release in runtime.releases for name in release.subject.by_type}),
            histories=histories[runtime.name],
            badges=badges,
        )
        for version, path in badges.items():
            state = outcome(tallies[version])
            label = f"{version} on {runtime.name} {runtime.newest.version}"
            badge = {"schemaVersion": 1, "label": label, "message": state.words, "color": _COLOURS[state.tone]}
            yield path, json.dumps(badge, indent=1) + "\n"


def _outcomes(release: Release, operators: Sequence[str]) -> dict[str, Outcome]:
    return {name: outcome(release.subject.by_version.get(name)) for name in operators}


def _page(path: str, template: str, **content: Any) -> tuple[str, str]:
    """Return path and text of a page. ``root`` is the relative path to the site's folder."""
    scripts, root = ("site.js",), "../" * path.count("/")
    return path, html_of(template, "site.css", scripts=scripts, root=root, outcome=outcome, **content)


def _index(
    runtimes: Sequence[Runtime], histories: dict[str, list[FindingHistory]], features: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Yield an entry of the search index for each page: its kind, title, address, and further words."""

    def entry(kind: str, title: str, page: str, words: Sequence[str] = ()) -> dict[str, str]:
        return {"kind": kind, "title": title, "page": page, "words": " ".join(filter(None, words))}

    for runtime in runtimes:
        yield entry("runtime", runtime.name, runtime.page, [release.version for release in runtime.releases])
    for name, page in features.items():
        yield entry("feature", name, page)
    for runtime in runtimes:
        for history in histories[runtime.name]:
            finding = history.finding
            words = [
                *finding.versions,
                *finding.types,
                finding.fault,
                finding.verdict,
                *(c.id for c in finding.clauses),
            ]
            yield entry(runtime.name, history.title, history.page, words)
