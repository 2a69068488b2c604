"""Comparison of two recordings: files that one or both have, and every field of common files."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from .recording import FILE
from .varying import PROGRESS, left_out, settled, varies

NAMES = (
    *("record", "purpose", "by", "target", "smallest", "changed", "case", "name", "title", "id"),
    *("operator", "interpretation", "option"),
)
"""Keys whose values together identify an item of a list, or the result in it, if the item has them."""

TEXTS = (".err", ".out", ".txt", ".md", ".py", ".csv", ".xml", ".toml", ".html", ".cut")
ABSENT = "(absent)"
_PLAIN = re.compile(r"[\w-]+")


def _json(data: bytes) -> Any:
    return json.loads(data)


def _json_lines(data: bytes) -> list[Any]:
    rows = [json.loads(line) for line in data.splitlines()]
    if not rows or not isinstance(rows[0], dict) or rows[0].get("record") != "header":
        return rows
    results: dict[tuple[str, str], dict[str, Any]] = {}  # in the form of 0.4: without a header, updates in place
    for row in rows:
        if row.pop("record") in ("result", "update"):
            row.pop("by", None)
            results.setdefault((row["target"], row["case"]), {}).update(row)
    return [*results.values()]


READERS: dict[str, tuple[Callable[[bytes], Any], ...]] = {
    ".json": (_json,),
    ".jsonl": (_json_lines,),
    ".out": (_json, _json_lines),
}
"""Readers of files as JSON, by suffix; the output of a command may have either form."""


@dataclass(frozen=True)
class Difference:
    """Field of a file of a step with its values before and after; ``path`` locates it, ``field`` is its sort."""

    step: str
    file: str
    field: str
    path: str
    before: str
    after: str


def compare(before: Path, after: Path, only: Sequence[str] = ("*",), files: Sequence[str] = ("*",)) -> list[Difference]:
    """Return every unexplained difference between two recordings, by step.

    only, files
        Patterns for steps, and for the files of each.
    """
    recordings = [json.loads((folder / FILE).read_text(encoding="utf-8")) for folder in (before, after)]
    names = list(dict.fromkeys(name for recording in recordings for name in recording["steps"]))
    chosen = [name for name in names if _matches(name, only)]
    differences: list[Difference] = []
    for name in chosen:
        sides = [
            _Side(folder / name, recording["places"])
            for folder, recording in zip((before, after), recordings, strict=True)
        ]
        outcomes = [recording["steps"].get(name, {"not_recorded": "not asked for"}) for recording in recordings]
        reasons = [outcome.get("not_recorded", "") for outcome in outcomes]
        if any(reasons):
            if not all(reasons):
                old, new = (reason or "recorded" for reason in reasons)
                differences.append(Difference(name, FILE, "recorded", "recorded", old, new))
            continue
        codes = [str(outcome["exit_codes"]) for outcome in outcomes]
        if codes[0] != codes[1]:
            differences.append(Difference(name, FILE, "exit_codes", "exit_codes", codes[0], codes[1]))
        differences += (difference for difference in _files(name, *sides) if _matches(difference.file, files))
    return differences


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


@dataclass(frozen=True)
class _Side:
    """One recording's folder of a step, and the paths that occur in its texts."""

    folder: Path
    places: Mapping[str, str]

    def files(self) -> dict[str, Path]:
        paths = (path for path in self.folder.rglob("*") if path.is_file())
        return {path.relative_to(self.folder).as_posix(): path for path in paths}

    def content(self, path: Path) -> Any:
        """Return JSON data, else lines of text, else a digest."""
        data = path.read_bytes()
        for read in READERS.get(path.suffix, ()):
            try:
                return _settled(read(data), self.places)
            except ValueError:  # text that is not JSON, or incomplete
                continue
        if path.suffix in TEXTS or path.suffix in READERS:
            lines = settled(data.decode("utf-8", "replace"), self.places).splitlines()
            return [line for line in lines if not PROGRESS.text.match(line)]
        return hashlib.sha256(data).hexdigest()


def _files(step: str, before: _Side, after: _Side) -> Iterator[Difference]:
    old, new = before.files(), after.files()
    for name in sorted(old.keys() | new.keys()):
        if left_out(f"{step}/{name}"):
            continue
        if name not in old or name not in new:
            presence = [str(name in side) for side in (old, new)]
            yield Difference(step, name, "file there", "", presence[0], presence[1])
            continue
        if old[name].read_bytes() == new[name].read_bytes():
            continue
        for field, path, a, b in _differing(before.content(old[name]), after.content(new[name]), "", ""):
            if not varies(f"{step}/{name}", field):
                yield Difference(step, name, field, path, a, b)


def _settled(value: Any, places: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {settled(key, places): _settled(each, places) for key, each in value.items()}
    if isinstance(value, list):
        return [_settled(each, places) for each in value]
    return settled(value, places) if isinstance(value, str) else value


def _differing(a: Any, b: Any, field: str, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the kind of each field that differs, its path, and its values."""
    if a == b:
        return
    if isinstance(a, list) and isinstance(b, list):
        named = _named(a), _named(b)
        if named[0] is not None and named[1] is not None:
            yield from _of_keys(named[0], named[1], field, path, listed=True)
            if [*named[0]] != [*named[1]] and named[0].keys() == named[1].keys():
                yield f"{field}/(order)".removeprefix("/"), path, " ".join([*named[0]][:3]), " ".join([*named[1]][:3])
        elif len(a) == len(b) and not all(isinstance(each, str) for each in (*a, *b)):
            for number, (first, second) in enumerate(zip(a, b, strict=True)):
                yield from _differing(first, second, f"{field}/*", f"{path}/{number}")
        else:
            yield from _of_items(a, b, field, path)
    elif isinstance(a, dict) and isinstance(b, dict):
        yield from _of_keys(a, b, field, path, listed=False)
    else:
        yield field, path, _brief(a), _brief(b)


def _of_keys(
    a: Mapping[str, Any], b: Mapping[str, Any], field: str, path: str, *, listed: bool
) -> Iterator[tuple[str, str, str, str]]:
    for key in [*a, *(key for key in b if key not in a)]:
        # Keys that are not plain words are names of cases and files: their fields share one kind.
        kind = key if not listed and _PLAIN.fullmatch(key) else "*"
        child_field = f"{field}/{kind}".removeprefix("/")
        child_path = f"{path}/{key}".removeprefix("/")
        if key in a and key in b:
            yield from _differing(a[key], b[key], child_field, child_path)
        else:
            yield child_field, child_path, *(_brief(side[key]) if key in side else ABSENT for side in (a, b))


def _of_items(a: list[Any], b: list[Any], field: str, path: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield items that only one of two lists has, or one difference if the order differs."""
    counts = [Counter(json.dumps(item, sort_keys=True) for item in side) for side in (a, b)]
    gone, new = counts[0] - counts[1], counts[1] - counts[0]
    item_field = f"{field}/*".removeprefix("/")
    if not gone and not new:
        yield f"{field}/(order)".removeprefix("/"), path, _brief(a), _brief(b)
    pairs = list(gone.elements()), list(new.elements())
    for number in range(max(map(len, pairs))):
        yield item_field, path, *(side[number] if number < len(side) else ABSENT for side in pairs)


def _named(items: list[Any]) -> dict[str, Any] | None:
    """Return the items of a list by name, with a number for repeated names; None if an item has no name."""
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    times: Counter[str] = Counter()
    named = {}
    for item in items:
        name = " ".join(str(side[key]) for side in (item, item.get("result")) for key in _names(side))
        if not name:
            return None
        times[name] += 1
        named[name if times[name] == 1 else f"{name} ({times[name]})"] = item
    return named


def _names(item: Any) -> list[str]:
    return [key for key in NAMES if isinstance(item.get(key), str)] if isinstance(item, dict) else []


def _brief(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def shown(differences: Sequence[Difference], examples: int) -> str:
    """Return the differences as text: by step and kind of field, with some examples of each."""
    if not differences:
        return "the recordings are equal, but for what varies from run to run"
    by_kind: dict[tuple[str, str, str], list[Difference]] = defaultdict(list)
    for difference in differences:
        by_kind[difference.step, Path(difference.file).name, difference.field].append(difference)
    lines = []
    for (step, file, field), group in by_kind.items():
        lines.append(f"{step}: {file} {field}: {len(group)} differ")
        for difference in group[:examples]:
            location = " ".join(
                part for part in (difference.file if difference.file != file else "", difference.path) if part
            )
            lines += [f"    {location}", *_sides(difference.before, difference.after)]
    return "\n".join([*lines, f"{len(differences)} differences"])


def _sides(before: str, after: str) -> list[str]:
    """Return both values, from a little before their first difference."""
    common = next((n for n, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]), 0)
    start = max(0, common - 60)
    lead = "..." if start else ""
    return [f"      {mark} {lead}{text[start : start + 240]}" for mark, text in (("-", before), ("+", after))]
