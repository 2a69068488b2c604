"""Records of a certification package: checked by every reader, and published as JSON Schema.

Docstrings of the classes are descriptions in docs/schema.
"""

from __future__ import annotations

from msgspec import Struct

from ..results.result import Count

FORM = 3
"""The version of the package's format; onnxspec 0.3 wrote 1."""


_IN_TOTO = {"type": "_type", "predicate_type": "predicateType"}


class WaiverRecord(Struct, frozen=True, kw_only=True):
    """Failure that somebody answers for. Empty fields restrict nothing.

    clause
        Id of the violated clause, or a pattern of ids with ``*``; empty for failures that violate none.
    verdict
        The failing verdict, if no clause is named: ``crashed``, ``timed-out``, ...
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
    """Failures beyond a level that a waiver covers: the waiver's number, from 1, and their number."""

    waiver: Count
    cases: Count


class LevelRecord(Struct, frozen=True, kw_only=True):
    """Level of a row: whether it is reached, and the reasons against it, a line each.

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
    """Certificate of one operator version and type.

    status, level
        ``certified``, ``exceptions`` or ``none``, and the highest level that is reached so; empty for none.
    fresh
        Number of cases of the nonce.
    verdicts
        Number of planned cases by verdict.
    not_rejected
        Number of invalid models that ran.
    unshown
        Features that levels require and no passing case has.
    leaning
        Digits of the type that biased errors leave, as ``22 of 24 digits``; empty without bias.
    """

    op: str
    domain: str
    version: Count
    type: str
    status: str
    level: str
    fresh: Count
    verdicts: dict[str, Count]
    not_rejected: Count
    nondeterministic: Count
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
    """The nonce, and the number of its fresh cases. A package cannot show who chose it."""

    nonce: str
    cases: Count


class ReportedRecord(Struct, frozen=True, kw_only=True):
    """A fact that a package reports and nobody can prove from it, since the vendor's own machine could have invented
    it; and how many cases rest on it."""

    what: str
    cases: Count


class SuiteRecord(Struct, frozen=True, kw_only=True):
    """The judge.

    sources
        SHA-256 over onnxspec's own files.
    cases
        Operator version to the digest of its cases in this package, all bytes of their inputs included.
    """

    onnxspec: str
    sources: str
    cases: dict[str, str]


class StatementRecord(Struct, frozen=True, kw_only=True):
    """Claim of a package about a product: the predicate of STATEMENT.json.

    kind
        ``certificate``, or ``trial``, which grants nothing; ``trial_because`` has the reasons, a line each.
    target, runtime, runtime_version
        The target's name, and its description of itself.
    fresh_process
        Cases that ran once more in a process of their own.
    declined
        Features that the target does not support, in the words of reports.
    reported
        Statements that rest on the vendor's word.
    date
        The day on which the package was made, as YYYY-MM-DD.
    signer
        SHA-256 of the public key that answers for the package; empty if it is unsigned.
    """

    form: int
    kind: str
    trial_because: tuple[str, ...]
    product: str
    vendor: str
    date: str
    signer: str
    suite: SuiteRecord
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
