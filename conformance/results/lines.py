"""Records of results.jsonl, one JSON object a line; ``record`` names its type.

A line is written once and never changed. Later knowledge on a result (a diagnosis, another outcome in a fresh process)
is an update, a line of its own that names target and case: its keys replace those of the result. Docstrings of the
classes are descriptions in docs/schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType, convert
from msgspec.structs import asdict, replace

from ..border.strict_json import encode
from ..judging.judgement import Verdict
from .recorded import JobRecord
from .records import AskedTarget, RunRecord, SelectionRecord
from .result import Place, Quantity, Result

FILLED = "filled:"
"""Prefix of the digests of cases that a run added to a target's, before the target's name.

They are known when the run ends, so the header does not have them.
"""

SAME_RUN = ("schema", "onnxspec", "profile", "selection", "digests", "expected_failures", "keeps_outputs", "shard")
"""Keys of a header that must be the same when a run is resumed."""

SAME_RUNTIME = ("runtime", "version", "build", "provider", "device")
"""Keys of a description that must be the same for it to be the same runtime."""

_UPDATABLE = ("verdict", "expected", "reason", "where", "message", "flags", "diagnosis", "clause", "why", "accuracy")


class RunStarted(Struct, frozen=True, kw_only=True, tag_field="record", tag="header"):
    """What is run on which targets; the first line, and another one each time that the run is resumed."""

    schema: int
    onnxspec: str
    started: str
    command: list[str]
    profile: str
    selection: SelectionRecord
    shard: str | None
    expected_failures: bool
    keeps_outputs: bool = False
    digests: dict[str, str]
    targets: list[AskedTarget]


class TargetStarted(Struct, frozen=True, kw_only=True, tag_field="record", tag="target"):
    """A target has started and describes itself."""

    target: str
    description: dict[str, Any]


class Recorded(Struct, frozen=True, kw_only=True, tag_field="record", tag="recorded"):
    """The outcomes of a target with the jobs of a case, and for what purpose they were run."""

    purpose: str
    target: str
    case: str
    jobs: tuple[JobRecord, ...]


class ResultUpdate(Struct, frozen=True, kw_only=True, tag_field="record", tag="update"):
    """New values of a result's keys; ``by`` is the step that found them."""

    by: str
    target: str
    case: str
    verdict: Verdict | UnsetType = UNSET
    expected: bool | UnsetType = UNSET
    reason: str | UnsetType | None = UNSET
    where: Place | UnsetType | None = UNSET
    message: str | UnsetType = UNSET
    flags: tuple[str, ...] | UnsetType = UNSET
    diagnosis: tuple[str, ...] | UnsetType = UNSET
    clause: str | UnsetType | None = UNSET
    why: str | UnsetType = UNSET
    accuracy: str | UnsetType | None = UNSET


class CasesAdded(Struct, frozen=True, kw_only=True, tag_field="record", tag="cases"):
    """Random cases that follow on a target, each as the line that rebuilds it, in order."""

    target: str
    cases: list[str]


class RunFinished(Struct, frozen=True, kw_only=True, tag_field="record", tag="end"):
    """The run ends or is cut short; seconds since it was started or resumed."""

    complete: bool
    seconds: Quantity
    target_seconds: dict[str, Quantity] = {}


Line: TypeAlias = RunStarted | TargetStarted | Result | Recorded | ResultUpdate | CasesAdded | RunFinished


def header_of(record: RunRecord) -> RunStarted:
    """Return the header of a run from the content of run.json at its start."""
    digests = {name: digest for name, digest in record["digests"].items() if not name.startswith(FILLED)}
    return convert({**record, "digests": digests}, RunStarted)


def difference(first: object, other: object, keys: Iterable[str] = ()) -> str:
    """Return the first key, of some or of all, in which two records differ, with the values; empty where none does."""
    a, b = (json.loads(encode(record)) for record in (first, other))
    for key in keys or a:
        if a[key] != b[key]:
            name = key.replace("_", " ")
            if not isinstance(a[key], dict):
                return f"{name}: {a[key]!r} and {b[key]!r}"
            return f"{name} ({', '.join(sorted(k for k in a[key] | b[key] if a[key].get(k) != b[key].get(k)))})"
    return ""


def other_runtime(first: Mapping[str, Any], other: Mapping[str, Any]) -> str:
    """Return the first key in which two descriptions are not of the same runtime, with the values; empty otherwise."""
    keys = (key for key in SAME_RUNTIME if first.get(key) != other.get(key))
    return next((f"{key}: {first.get(key)!r} and {other.get(key)!r}" for key in keys), "")


def update_of(before: Result, after: Result, by: str) -> ResultUpdate | None:
    """Return the update from one result to another; None where they are equal.

    Raise ValueError where they differ in fields that only a run of the case can change.
    """
    changes = {name: value for name, value in asdict(after).items() if value != getattr(before, name)}
    if unchangeable := changes.keys() - set(_UPDATABLE):
        raise ValueError(f"an update cannot change {', '.join(sorted(unchangeable))}")
    line = ResultUpdate(by=by, target=before.target, case=before.case)
    return replace(line, **changes) if changes else None


def updated(result: Result, line: ResultUpdate) -> Result:
    """Return a result with the keys of an update."""
    values = asdict(line)
    changes = {name: values[name] for name in _UPDATABLE if values[name] is not UNSET}
    return replace(result, **changes)
