"""A certification package as types: checked wherever it is read, and published as JSON Schema."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ..results.records import FillingRecord
from ..results.result import Count

FORM = 3
"""The version of the package's form; 1 is that of onnxspec 0.3."""


_IN_TOTO = {"type": "_type", "predicate_type": "predicateType"}


class WaiverRecord(Struct, frozen=True, kw_only=True):
    """A failure that somebody answers for. What is empty narrows nothing.

    clause
        Id of the clause that is broken, or a pattern of ids with ``*``; empty for failures that break none.
    verdict
        The failing verdict, where no clause is named: ``crashed``, ``timed-out``, ...
    features
        The case has all of these.
    reason, owner
        Why it is accepted, and who answers for that.
    expires
        The last day on which it holds, as YYYY-MM-DD.
    """

    reason: str
    owner: str
    expires: str
    op: str = ""
    clause: str = ""
    verdict: str = ""
    versions: tuple[Count, ...] = ()
    types: tuple[str, ...] = ()
    features: tuple[str, ...] = ()


class ExceptionRecord(Struct, frozen=True, kw_only=True):
    """Failures beyond what a level requires, which a waiver covers: the waiver's number, from 1, and how many."""

    waiver: Count
    cases: Count


class LevelRecord(Struct, frozen=True, kw_only=True):
    """A level of a row: whether it is reached, and what stands against it, a line each.

    status
        ``reached``, ``exceptions`` or ``denied``.
    cases, passed
        Cases that belong to the level, and those of them that pass.
    inconclusive
        Share of the level's elements that could not be judged, from 0 to 1.
    """

    level: str
    status: str
    cases: Count
    passed: Count
    inconclusive: float
    against: tuple[str, ...]


class RowRecord(Struct, frozen=True, kw_only=True):
    """The certificate of one operator version and type, judged by one accuracy class.

    status, level
        ``certified``, ``exceptions`` or ``none``, and the highest level that is reached so; empty for none.
    cases, fresh
        Cases that were planned, and those of them that the nonce asked for.
    verdicts
        How many cases have which verdict.
    failing
        Failing results but for forbidden models that ran, which are ``not_rejected``.
    lacks
        Features, of those that levels require, which are declined for themselves: nothing ran with them, and some case
        was declined in which nothing else was lacking.
    unshown
        Other features of those, which no case has that passes.
    leaning
        What errors that do not average out leave of the type, as ``22 of 24 digits``; empty where they do average out.
    """

    op: str
    domain: str
    version: Count
    type: str
    accuracy: str
    status: str
    level: str
    cases: Count
    fresh: Count
    verdicts: dict[str, Count]
    failing: Count
    not_rejected: Count
    nondeterministic: Count
    lacks: tuple[str, ...]
    unshown: tuple[str, ...]
    levels: tuple[LevelRecord, ...]
    exceptions: tuple[ExceptionRecord, ...]
    leaning: str = ""


class PlacementRecord(Struct, frozen=True, kw_only=True):
    """The place where models ran: ``proof`` is ``record``, ``profile``, ``mixed``, ``not needed`` or ``none``, of
    `provider`; ``cases`` is how many are so proved."""

    proof: str
    provider: str
    cases: Count


class ChallengeRecord(Struct, frozen=True, kw_only=True):
    """The nonce, and how many fresh cases it asked for. Who chose it nobody can tell from a package."""

    nonce: str
    cases: Count


class ReportedRecord(Struct, frozen=True, kw_only=True):
    """A fact that a package reports and nobody can prove from it, since the vendor's own machine could have invented
    it; and how many cases rest on it."""

    what: str
    cases: Count


class StatementRecord(Struct, frozen=True, kw_only=True):
    """The claim of a package, of which product, by whom: the predicate of STATEMENT.json.

    kind
        ``certificate``, or ``trial``, which grants nothing; ``trial_because`` says why, a line each.
    target, runtime, runtime_version
        The target's name, and what it says of itself.
    fresh_process
        Cases that were run once more in a process of their own.
    declined
        What the target does not support, in the words of reports.
    reported
        What rests on the vendor's word.
    findings
        Titles of all findings, each with its verdict and how many cases show it.
    date
        The day on which the package was made, as YYYY-MM-DD.
    signer
        SHA-256 of the public key that answers for the package; empty where it is unsigned.
    """

    form: int
    kind: str
    trial_because: tuple[str, ...]
    product: str
    vendor: str
    date: str
    signer: str
    target: str
    runtime: str
    runtime_version: str
    provider: str
    accuracy: str
    profile: str
    placement: PlacementRecord
    challenge: ChallengeRecord
    fresh_process: Count
    declined: tuple[str, ...]
    reported: tuple[ReportedRecord, ...]
    waivers: tuple[WaiverRecord, ...]
    rows: tuple[RowRecord, ...]
    interpretations: dict[str, dict[str, str]]
    findings: tuple[str, ...]


class DigestRecord(Struct, frozen=True, kw_only=True):
    """Digests of a file's content, in hexadecimal digits."""

    sha256: str


class SubjectRecord(Struct, frozen=True, kw_only=True):
    """A file of a package that a statement is about: its path in it, with slashes."""

    name: str
    digest: DigestRecord


class AttestationRecord(Struct, frozen=True, kw_only=True, rename=_IN_TOTO):
    """STATEMENT.json: a Statement of in-toto's, v1. Its subjects are all other files of the package, sorted by name."""

    type: str
    subject: tuple[SubjectRecord, ...]
    predicate_type: str
    predicate: StatementRecord


class SignatureRecord(Struct, frozen=True, kw_only=True):
    """A signature in base64, and the id of the key that made it."""

    sig: str
    keyid: str = ""


class EnvelopeRecord(Struct, frozen=True, kw_only=True, rename="camel"):
    """STATEMENT.intoto.jsonl: a DSSE envelope; ``payload`` is the statement in base64."""

    payload: str
    payload_type: str
    signatures: tuple[SignatureRecord, ...]


class PackageRecord(Struct, kw_only=True):
    """A Python package of which something is loaded in the worker. ``sha256`` is over the names and digests of its own
    ``files``; of what an installer writes beside them nothing counts."""

    name: str
    version: str
    files: Count
    sha256: str


class LibraryRecord(Struct, kw_only=True):
    """A shared library that is loaded in the worker and belongs to no package."""

    name: str
    size: Count
    sha256: str


class DeviceRecord(Struct, kw_only=True):
    """A display controller or processing accelerator of the worker's machine, as its bus names it."""

    place: str
    id: str
    driver: str
    driver_version: str
    # The name of a key, and a word of Python.
    kind: str = ""


class MeasuredRecord(Struct, kw_only=True):
    """ENVIRONMENT.json: what the worker says of itself and has measured of the process that it is.

    description
        What the adapter says: runtime, version, provider, options, device.
    options
        What the target was asked for with.
    parent
        Where the command ran that started the worker.
    """

    description: dict[str, Any]
    adapter: str
    options: dict[str, Any]
    wrap: str
    measured: bool
    python: str = ""
    system: str = ""
    machine: str = ""
    processor: str = ""
    processors: Count = 0
    devices: tuple[DeviceRecord, ...] = ()
    packages: tuple[PackageRecord, ...] = ()
    libraries: tuple[LibraryRecord, ...] = ()
    parent: dict[str, Any] = {}
    started: str = ""


class SuiteRecord(Struct, frozen=True, kw_only=True):
    """SUITE.json: by what was judged.

    sources
        SHA-256 over onnxspec's own files.
    profiles
        Operator version to the digest that its profile is pinned with.
    cases
        Operator version to the digest of its cases in this package, all bytes of their inputs included.
    filling
        The random cases that followed, as run.json has them; None for a run that is not filled up.
    """

    onnxspec: str
    sources: str
    profile: str
    nonce: str
    profiles: dict[str, str]
    cases: dict[str, str]
    filling: FillingRecord | None = None
