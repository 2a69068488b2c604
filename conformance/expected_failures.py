"""Expected failures: what is known to be wrong with a target, each entry with its reason.

An entry that nothing needs any more is reported, but fails nothing: another version of a runtime may have mended it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib import resources
from typing import Any

from .probe import AnyProbe, probe_of
from .target import Target
from .verdict import FAILING, Judgement, Verdict

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["Entry", "ExpectedFailureError", "matching", "parse_expected", "shipped_for", "stale"]

_LISTS = {"versions": int, "types": str, "features": str, "cases": str, "verdicts": str}


class ExpectedFailureError(ValueError):
    """A file of expected failures is wrong; the text names the file, the entry and the key, in one line."""


@dataclass(frozen=True)
class Entry:
    """One known failure. Empty tuples match everything; a case must match all that is given.

    features
        The case has all of them.
    cases
        Patterns of case ids, of which one must match.
    """

    reason: str
    op: str
    versions: tuple[int, ...] = ()
    types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    cases: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    link: str = ""

    def covers(self, subject: AnyProbe) -> bool:
        """Whether the entry is about this case."""
        probe = probe_of(subject)
        return (
            probe.op == self.op
            and (not self.versions or probe.version in self.versions)
            and (not self.types or probe.type in self.types)
            and set(self.features) <= probe.features
            and (not self.cases or any(fnmatchcase(probe.id, pattern) for pattern in self.cases))
        )

    def expects(self, subject: AnyProbe, verdict: Verdict) -> bool:
        """Whether the entry expects this verdict of this case."""
        return verdict in FAILING and (not self.verdicts or verdict.value in self.verdicts) and self.covers(subject)


def parse_expected(text: str, place: str) -> tuple[Entry, ...]:
    """The entries of a TOML file. Raises ExpectedFailureError."""
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ExpectedFailureError(f"{place}: {error}") from None
    rows = content.pop("expected", [])
    if content or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ExpectedFailureError(f"{place}: holds tables [[expected]] and nothing else")
    return tuple(_entry(row, f"{place}: entry {number}") for number, row in enumerate(rows, 1))


def _entry(row: Mapping[str, Any], where: str) -> Entry:
    for key, value in row.items():
        if key in _LISTS:
            if not isinstance(value, list) or not all(type(v) is _LISTS[key] for v in value):
                raise ExpectedFailureError(f"{where}: {key} is a list of {_LISTS[key].__name__}, not {value!r}")
        elif key not in ("reason", "op", "link"):
            raise ExpectedFailureError(f"{where}: unknown key {key!r}")
        elif not isinstance(value, str) or not value:
            raise ExpectedFailureError(f"{where}: {key} is a text, not {value!r}")
    for key in ("reason", "op"):
        if key not in row:
            raise ExpectedFailureError(f"{where}: {key} is missing")
    if strange := set(row.get("verdicts", ())) - {v.value for v in FAILING}:
        raise ExpectedFailureError(f"{where}: no failing verdict is called {', '.join(sorted(strange))}")
    fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}
    return Entry(**fields)


def shipped_for(target: Target) -> tuple[Entry, ...]:
    """The entries that come with this release for a target: those of onnxruntime's CPU provider; none for others."""
    provider = target.options.get("provider", "CPUExecutionProvider")
    if target.adapter == "onnxruntime" and provider == "CPUExecutionProvider":
        name = "onnxruntime.toml"
    elif target.adapter == "onnx-reference":
        name = "onnx-reference.toml"
    else:
        return ()
    file = resources.files(__package__ or "onnxspec.conformance").joinpath("expected").joinpath(name)
    return parse_expected(file.read_text(encoding="utf-8"), name)


def matching(entries: Iterable[Entry], subject: AnyProbe, judgement: Judgement) -> Entry | None:
    """The first entry that expects this verdict of this case."""
    return next((entry for entry in entries if entry.expects(subject, judgement.verdict)), None)


def stale(entries: Iterable[Entry], outcomes: Iterable[tuple[AnyProbe, Verdict]]) -> list[Entry]:
    """Entries that cover cases that ran, none of which fails as expected any more. What was refused says nothing."""
    ran = [(subject, v) for subject, v in outcomes if v not in (Verdict.REFUSED, Verdict.UNAVAILABLE)]
    return [
        entry
        for entry in entries
        if any(entry.covers(subject) for subject, _ in ran) and not any(entry.expects(subject, v) for subject, v in ran)
    ]
