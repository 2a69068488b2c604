"""Types of run.json: readers check them, and they are published as JSON Schema.

Dictionaries with declared keys, so that the data in memory equal the data on disk; docs/results.md explains the keys. A
reader ignores unknown keys. Docstrings of the classes are descriptions in docs/schema.
"""

from __future__ import annotations

from typing import Any, TypedDict

from .result import Count, Quantity

SCHEMA = 3
"""The version of the run folder's format; onnxspec 0.3 and 0.4 wrote 2."""


class NeedRecord(TypedDict):
    """A feature that the smallest case of a finding needs, with the values tried in its place."""

    field: str
    value: str
    instead: list[str]
    verdict: str


class Finding(TypedDict):
    """Results with one cause.

    ``passing`` is the number of cases that meet the conditions and pass; ``searched`` tells whether all known faults
    were tried on the smallest case; ``place`` is the error pattern of a failure without a name.
    """

    title: str
    what: str
    kind: str
    clauses: list[str]
    statuses: list[str]
    verdict: str
    fault: str
    foretold: Count
    conditions: str
    tried: bool
    tries: Count
    searched: bool
    passing: Count
    place: str
    needs: list[NeedRecord]
    types: list[str]
    versions: list[Count]
    operators: list[str]
    cases: list[str]
    smallest: str
    expected: bool
    new: Count
    why: str
    message: str
    repeat: str


class Bias(TypedDict):
    """The mean signed errors of one type, in u; and where they are biased, how many binary digits that leaves."""

    shift: float
    scale: float
    error: Quantity
    elements: Count
    biased: bool
    digits: Quantity | None


class EvidenceRecord(TypedDict):
    """Folders of the evidence by case, from the run directory on. ``larger`` has, for the smallest case of a finding
    that has too few steps and units to show a pattern, one that shows it; ``missing`` why there is none of a case."""

    folders: dict[str, str]
    larger: dict[str, str]
    missing: dict[str, str]


class LevelsRecord(TypedDict):
    """The number of levels by which the quantized outputs of an operator are off, with levels of so many bits.

    ``off`` and ``wrong`` are pairs of levels and cases: those of right and inaccurate results, and those of wrong ones.
    ``within`` is the largest of the former, null where there is none.
    """

    operator: str
    bits: Count
    within: Count | None
    off: list[list[int]]
    wrong: list[list[int]]


class StaleRecord(TypedDict):
    """An expected failure that no longer fails."""

    reason: str
    cases: list[str]
    features: list[str]


class FillingRecord(TypedDict):
    """Random cases that followed a profile on a target.

    ``lacks`` has, for each operator of which a case was declined, what explains that and no passing case has:
    features, and fields with their values. ``cases`` are the cases that followed, each as the line that rebuilds it, in
    order; ``digest`` is the SHA-256 of these lines. ``left_out`` says why none followed, where none were to.
    """

    lacks: dict[str, list[str]]
    cases: list[str]
    digest: str
    left_out: str


AskedTarget = TypedDict(  # "class" is a key, and a word of Python
    "AskedTarget",
    {
        "name": str,
        "adapter": str,
        "options": dict[str, Any],
        "class": str,
        "wrap": str,
        "expected_file": str,
    },
)


class TargetRecord(AskedTarget):
    """A target of a run: the request, the target's own description, and its results."""

    description: dict[str, Any]
    unavailable: str
    grade: dict[str, str]
    passing_grade: dict[str, str]
    levels: list[LevelsRecord]
    counts: dict[str, Count]
    unexpected: Count
    seconds: Quantity
    bias: dict[str, Bias]
    findings: list[Finding]
    evidence: EvidenceRecord
    filling: FillingRecord | None
    stale: list[StaleRecord]
    unlisted: list[str]
    mishaps: list[str]


class SelectionRecord(TypedDict):
    """Bounds that a profile was narrowed to; empty lists mean all."""

    op: list[str]
    since_version: list[Count]
    type: list[str]
    case: list[str]
    directories: list[str]


class EnvironmentRecord(TypedDict):
    """The processors that the parent process ran on."""

    python: str
    platform: str
    machine: str
    processors: Count | None
    packages: dict[str, str]


class ClauseRecord(TypedDict):
    """A clause that results name."""

    status: str
    text: str
    source: str


class MergedRecord(TypedDict):
    """A run that went into a merged one."""

    folder: str
    command: list[str]
    started: str
    shard: str | None
    complete: bool
    environment: EnvironmentRecord


class RunRecord(TypedDict):
    """run.json."""

    schema: int
    onnxspec: str
    started: str
    seconds: Quantity
    complete: bool
    command: list[str]
    profile: str
    selection: SelectionRecord
    shard: str | None
    expected_failures: bool
    cases: Count
    digests: dict[str, str]
    keeps_outputs: bool
    skipped: list[str]
    merged: list[MergedRecord]
    environment: EnvironmentRecord
    counts: dict[str, Count]
    targets: list[TargetRecord]
    clauses: dict[str, ClauseRecord]
