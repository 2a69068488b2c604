"""Words that runs of onnxspec 0.3 have: read as those of today wherever a run is read."""

from __future__ import annotations

from typing import TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from .lines import Amended, Experiment, Line, Observed, Recorded
from .records import RunRecord
from .result import Result

_FLAGS = {"outputs-differ-from-twin": "outputs-differ-from-companion"}
_REASONS = {"twin": "companion"}
_KEYS = {"~twin": "~companion"}
"""Ends of the keys of jobs."""

L = TypeVar("L", bound=Line)


def result_of_today(result: Result) -> Result:
    """A result in today's words."""
    if result.reason not in _REASONS and not _FLAGS.keys() & {*result.flags}:
        return result
    return replace(result, reason=_reason(result.reason), flags=_flags(result.flags))


def line_of_today(line: L) -> L:
    """A line of a journal in today's words."""
    if isinstance(line, Observed):
        return replace(line, result=result_of_today(line.result))
    if isinstance(line, Recorded):
        return replace(line, jobs=tuple(replace(job, key=_key(job.key)) for job in line.jobs))
    if isinstance(line, Experiment) and line.reason in _REASONS:
        return replace(line, reason=_reason(line.reason))
    if isinstance(line, Amended):
        reason = line.reason if line.reason is UNSET else _reason(line.reason)
        return replace(line, reason=reason, flags=line.flags if line.flags is UNSET else _flags(line.flags))
    return line


def run_of_today(run: RunRecord) -> RunRecord:
    """The content of run.json, with titles of findings in today's words."""
    for finding in (finding for target in run["targets"] for finding in target["findings"]):
        for old, new in _REASONS.items():
            finding["title"] = finding["title"].replace(f"({old})", f"({new})", 1)
            finding["what"] = finding["what"].replace(f"({old})", f"({new})", 1)
    return run


def _reason(reason: str | None) -> str | None:
    return reason if reason is None else _REASONS.get(reason, reason)


def _flags(flags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_FLAGS.get(flag, flag) for flag in flags)


def _key(key: str) -> str:
    for old, new in _KEYS.items():
        if key.endswith(old):
            return key.removesuffix(old) + new
    return key
