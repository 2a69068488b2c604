"""Fields and texts that vary from run to run of the same onnxspec, with reasons; everything else must be equal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True)
class Varying:
    """Fields of files that vary, with any content (``/`` between keys, ``*`` for an index of a list)."""

    files: str
    fields: str
    reason: str


VARYING = (
    Varying("*/journal.jsonl", "*", "0.4 wrote its lines twice; results.jsonl is compared"),
    Varying("*/report/*", "*", "pages are made from results.jsonl and run.json, which are compared"),
    Varying("*", "*seconds", "time that something took"),
    Varying("*", "*started", "date and time"),
    Varying("*", "*onnxspec", "version of onnxspec"),
    Varying("*/package/MANIFEST.json", "files/*/sha256", "digests of a package's files, in which times are"),
    Varying("*/package/MANIFEST.json", "files/*/size", "the digits of these times"),
)
"""Fields that are left out of a comparison. A file that matches with every field is not opened."""


@dataclass(frozen=True)
class Pattern:
    """Varying part of texts, and its replacement in a comparison."""

    text: re.Pattern[str]
    instead: str
    reason: str


PATTERNS = (
    Pattern(re.compile(r"0x[0-9a-fA-F]{4,}"), "ADDRESS", "addresses in what crashes printed"),
    Pattern(re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:?\d\d:?\d\d(\.\d+)?Z?"), "MOMENT", "dates and times"),
    Pattern(re.compile(r"/tmp/[\w./-]+"), "TEMPORARY", "paths of temporary files"),
    Pattern(re.compile(r"\bSHA-256 [0-9a-f]{64}"), "DIGEST", "digest of a package, in which times are"),
    Pattern(re.compile(r"\bline \d+(?= in \w)"), "LINE", "lines of our own code in what crashes printed"),
    Pattern(re.compile(r"\b\d+(\.\d+)? (s|ms|seconds|minutes)\b"), "DURATION", "times that something took"),
)


PROGRESS = Pattern(
    re.compile(r".+: [\d,]+ of [\d,]+ cases after "), "", "lines that tell now and then how far a run is"
)
"""Lines that are left out."""


def varies(file: str, field: str) -> bool:
    """Return whether a field of a file is known to vary."""
    return any(fnmatchcase(file, entry.files) and fnmatchcase(field, entry.fields) for entry in VARYING)


def left_out(file: str) -> bool:
    """Return whether a whole file is known to vary."""
    return any(fnmatchcase(file, entry.files) and entry.fields == "*" for entry in VARYING)


def settled(text: str, places: Mapping[str, str]) -> str:
    """Return a text without its known variations; ``places`` are the paths of a recording, by name."""
    for name, path in sorted(places.items(), key=lambda place: -len(place[1])):
        text = text.replace(path, name.upper())
    for pattern in PATTERNS:
        text = pattern.text.sub(pattern.instead, text)
    return text


def variations() -> str:
    """Return the table of known variations, as Markdown."""
    lines = ["| files | fields | why it varies |", "| --- | --- | --- |"]
    lines += [f"| `{entry.files}` | `{entry.fields}` | {entry.reason} |" for entry in VARYING]
    lines += [f"| all | in texts: {entry.instead} | {entry.reason} |" for entry in PATTERNS]
    lines.append(f"| all | whole lines | {PROGRESS.reason} |")
    return "\n".join(lines)
