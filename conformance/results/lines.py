"""The lines of journal.jsonl: what was observed, and what became known of it later.

Each line is a JSON object whose ``record`` says which of these it is. A line is written once and never changed: what is
learned of a result afterwards (a diagnosis, another outcome in a fresh process) is a line of its own, an amendment,
which names the result. So whatever ends a run, all that was known until then is there.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from msgspec import UNSET, Struct, UnsetType, convert
from msgspec.structs import asdict, replace

from ..judging.judgement import Verdict
from .recorded import JobRecord
from .records import RunRecord, SelectionRecord
from .result import Place, Quantity, Result

FILLED = "filled:"
"""The key of the digest of the cases that a run filled up with on a target, before the target's name. They are
known when the run ends, so that no line which it begins with has it."""

_AMENDABLE = ("verdict", "expected", "reason", "where", "message", "flags", "diagnosis", "clause", "why", "accuracy")


class TargetAsked(Struct, frozen=True, kw_only=True, rename={"accuracy": "class"}):
    """A target as it was asked for."""

    name: str
    adapter: str
    options: dict[str, Any]
    accuracy: str
    wrap: str
    expected_file: str


class Begun(Struct, frozen=True, kw_only=True, tag_field="record", tag="begun"):
    """A run begins, or goes on: what is asked of whom. The first line of every journal."""

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
    targets: list[TargetAsked]


class TargetStarted(Struct, frozen=True, kw_only=True, tag_field="record", tag="target-started"):
    """A target has started, and says this of itself."""

    target: str
    description: dict[str, Any]


class Observed(Struct, frozen=True, kw_only=True, tag_field="record", tag="observed"):
    """A case was run on a target and judged."""

    result: Result


class Recorded(Struct, frozen=True, kw_only=True, tag_field="record", tag="recorded"):
    """The outcomes of a target with the jobs of a case, and for what purpose they were run."""

    purpose: str
    target: str
    case: str
    jobs: tuple[JobRecord, ...]


class Amended(Struct, frozen=True, kw_only=True, tag_field="record", tag="amended"):
    """More is known of a result: the keys that are there replace its own. ``by`` says how it became known."""

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


class Filled(Struct, frozen=True, kw_only=True, tag_field="record", tag="filled"):
    """Cases that follow on a target since what ran so far does not show what is owed on it: each as the line that
    rebuilds it, in order."""

    target: str
    cases: list[str]


class TargetFinished(Struct, frozen=True, kw_only=True, tag_field="record", tag="target-finished"):
    """A target is done with; ``seconds`` is what this part of the run took."""

    target: str
    seconds: Quantity


class Ended(Struct, frozen=True, kw_only=True, tag_field="record", tag="ended"):
    """The run ends, or is cut short; ``seconds`` is what it took since it began or went on."""

    complete: bool
    seconds: Quantity


Line: TypeAlias = Begun | TargetStarted | Observed | Recorded | Amended | Filled | TargetFinished | Ended


def begun_of(record: RunRecord) -> Begun:
    """The first line of a run that is described so far."""
    digests = {name: digest for name, digest in record["digests"].items() if not name.startswith(FILLED)}
    return convert({**record, "digests": digests}, Begun)


def amendment(before: Result, after: Result, by: str) -> Amended | None:
    """The line that makes one result of another, None where they are the same.

    Raises ValueError where they differ in what an observation alone can say.
    """
    changes = {name: value for name, value in asdict(after).items() if value != getattr(before, name)}
    if strange := changes.keys() - set(_AMENDABLE):
        raise ValueError(f"an amendment cannot change {', '.join(sorted(strange))}")
    line = Amended(by=by, target=before.target, case=before.case)
    return replace(line, **changes) if changes else None


def amended(result: Result, line: Amended) -> Result:
    """A result with what a line says of it."""
    known = asdict(line)
    changes = {name: known[name] for name in _AMENDABLE if known[name] is not UNSET}
    return replace(result, **changes)
