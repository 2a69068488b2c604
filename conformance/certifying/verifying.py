"""A package verified: all that it says is made again from what its target returned, and compared.

What is found is told by check, each with what is claimed, what is recomputed, and where they differ. Records are made
again from outputs; numbers in them that a build of NumPy may round otherwise have a tolerance.
"""

from __future__ import annotations

import datetime
import hashlib
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, encode, parse
from .archive import Package
from .attestation import ENVELOPE, STATEMENT, as_json, attestation_of, record_in, subject_differences
from .closeness import RESULT, RUN_INFO, Tolerances, unlike
from .derivation import BY_NUMBERS, Derivation, derived
from .packing import (
    ENVIRONMENT,
    RUN_FOLDER,
    SUITE,
    WAIVERS,
    Claim,
    Records,
    records_of,
    suite_of,
)
from .records import AttestationRecord, MeasuredRecord, StatementRecord, SuiteRecord
from .signing import PublicKey, signature_differences
from .suite import own_sources
from .waivers import expired

_SHOWN = 12  # differences of a check that are told one by one
_LARGEST = 64 << 20  # bytes of a file of JSON


@dataclass
class Check:
    """One thing that was looked at: what is claimed, what is recomputed, and where they differ, a line each. ``marks``
    says in a word why that which does not differ is not known to be so."""

    name: str
    claimed: str = ""
    recomputed: str = ""
    differs: list[str] = field(default_factory=list)
    count: int = 0
    mark: str = ""

    def differ(self, line: str) -> None:
        """Note a difference."""
        self.count += 1
        if self.count <= _SHOWN:
            self.differs.append(line)


@dataclass
class Verification:
    """The outcome of verifying a package. ``attestation`` is what it claims; ``remarks`` decide nothing."""

    package: Package
    attestation: AttestationRecord
    suite: SuiteRecord
    measured: MeasuredRecord
    checks: dict[str, Check] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    derivation: Derivation | None = None

    @property
    def statement(self) -> StatementRecord:
        """The claims on the product."""
        return self.attestation.predicate

    @property
    def differs(self) -> bool:
        """Tell whether anything that is claimed is not borne out."""
        return any(check.count for check in self.checks.values())

    def check(self, name: str) -> Check:
        """Return the check of that name."""
        return self.checks.setdefault(name, Check(name))


def verify(
    package: Package,
    today: datetime.date,
    nonce: str = "",
    signer: PublicKey | None = None,
    jobs: int = 1,
) -> Verification:
    """Verify an unpacked package.

    nonce
        The one that the auditor has asked for; empty where nobody says.
    signer
        The key of who is held to have signed it; None where nobody says.
    jobs
        How many processes judge.

    Raises UserError where the files that say what it is are not there or are of another form, or where signatures
    cannot be looked at here; and OSError.
    """
    attestation = attestation_of(package)
    suite = record_in(package, SUITE, SuiteRecord)
    measured = record_in(package, ENVIRONMENT, MeasuredRecord)
    verification = Verification(package, attestation, suite, measured)
    _files(verification)
    _signature(verification, signer)
    if not _suite(verification):
        return verification
    try:
        derivation = verification.derivation = derived(package.folder / RUN_FOLDER, jobs=jobs)
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
            records = records_of(derivation, _claim(verification), Path(temporary) / RUN_FOLDER)
    except (RecordError, MalformedJson) as error:
        text = str(error).replace(f"{package.folder}/", "")
        verification.check("record").differ(text)
        return verification
    _cases(verification, derivation)
    _outcomes(verification, derivation)
    _records(verification, records)
    _waivers(verification, today)
    _nonce(verification, nonce)
    return verification


def _files(verification: Verification) -> None:
    check = verification.check("files")
    check.claimed = f"{len(verification.attestation.subject)} files, each with its SHA-256"
    check.recomputed = f"{len(verification.package.names)} files are there, {STATEMENT} among them"
    for path, claimed, there in subject_differences(verification.package, verification.attestation):
        check.differ(f"{path}: {STATEMENT} says {claimed}; it is {there}")


def _signature(verification: Verification, key: PublicKey | None) -> None:
    """Check the signature. Only the holder of somebody's public key can tell that a package is theirs."""
    signer, check = verification.statement.signer, verification.check("signature")
    check.claimed = f"the key {signer}" if signer else "unsigned"
    unasked = "unchecked" if signer else "unsigned"
    check.mark = "" if key is not None else unasked
    for line in signature_differences(verification.package, signer, key):
        check.differ(line)
    if not signer:
        verification.remarks.append("unsigned: nobody's key answers for what is reported and not provable")
    elif key is None:
        verification.remarks.append(
            "nobody has told verify whose key has signed it: give the vendor's with --signer PUB.pem"
        )


def _suite(verification: Verification) -> bool:
    """Tell whether the suite that judged is the one that is installed."""
    check, suite, own = verification.check("suite"), verification.suite, own_sources()
    check.claimed = f"onnxspec {suite.onnxspec}, {suite.sources[:16]}"
    check.recomputed = f"{own[:16]}"
    if suite.sources == own:
        return True
    check.differ(
        f"judged by onnxspec {suite.onnxspec} with the sources {suite.sources[:16]}, installed is {own[:16]}: "
        f"install onnxspec {suite.onnxspec} of these very sources (a release, or the same commit) to verify the rest"
    )
    return False


def _claim(verification: Verification) -> Claim:
    statement = verification.statement
    try:
        day = datetime.date.fromisoformat(statement.date)
    except ValueError:
        raise RecordError(f"{STATEMENT}: date: {statement.date[:40]!a} is no day") from None
    waivers = verification.package.content(WAIVERS) if WAIVERS in verification.package.names else b""
    return Claim(statement.product, statement.vendor, day, waivers, statement.signer)


def _cases(verification: Verification, derivation: Derivation) -> None:
    check = verification.check("cases")
    asked = len(derivation.asked & derivation.probes.keys())
    filled = {probe.id for probe in derivation.probes.values()} - {probe.id for probe in derivation.plan.everything}
    pinned = len(derivation.probes) - asked - len(filled)
    check.claimed = f"{len(derivation.claimed)} results"
    check.recomputed = (
        f"{len(derivation.probes)} cases: {pinned} of profile {verification.suite.profile}, {asked} of the nonce, "
        f"{len(filled)} in place of what is not supported"
    )
    for flaw in derivation.flaws:
        check.differ(flaw)
    for case in derivation.probes:
        if case not in derivation.claimed:
            check.differ(f"case {case} has no result")
    again = suite_of(derivation)
    for name in sorted({*again.cases, *verification.suite.cases}):
        if again.cases.get(name) != verification.suite.cases.get(name):
            check.differ(f"the cases of {name} are others than those that were judged")


def _outcomes(verification: Verification, derivation: Derivation) -> None:
    """Check the verdicts, those by numbers apart from those that report events."""
    again = {result.case: result for result in derivation.results}
    for name, numbers in (("verdicts by numbers", True), ("verdicts reported", False)):
        check = verification.check(name)
        claimed = [r for r in derivation.claimed.values() if (r.verdict in BY_NUMBERS) is numbers]
        recomputed = [r for r in again.values() if (r.verdict in BY_NUMBERS) is numbers]
        check.claimed, check.recomputed = _counted(claimed), _counted(recomputed)
        check.mark = "" if numbers else "reported"
        for result in claimed:
            other = again.get(result.case)
            for place, one, two in (
                unlike(result, other, RESULT) if other is not None else [("verdict", result.verdict, "none")]
            ):
                check.differ(f"{result.case}: {place}: claimed {one}, recomputed {two}")


def _counted(results: list[Any]) -> str:
    counts = Counter(result.verdict.value for result in results)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "none"


_CHECK_OF = {
    ENVIRONMENT: "environment",
    SUITE: "suite",
    WAIVERS: "waivers",
    f"{RUN_FOLDER}/run.json": "findings",
    f"{RUN_FOLDER}/results.jsonl": "record",
}

_TOLERANT: dict[str, Tolerances] = {
    f"{RUN_FOLDER}/run.json": RUN_INFO,
    f"{RUN_FOLDER}/results.jsonl": RESULT,
}
"""Files with numbers that a verifier computes anew. All others are equal, byte for byte."""


def _records(verification: Verification, records: Records) -> None:
    """Compare every record with the one that is made again."""
    package = verification.package
    for name in ("findings", "levels and statement", "environment", "record"):
        verification.check(name)
    _told(verification)
    statement = verification.check("levels and statement")
    for place, one, two in unlike(verification.statement, records.statement):
        statement.differ(f"{STATEMENT}: {place}: claimed {one}, recomputed {two}")
    if package.content(STATEMENT) != as_json(verification.attestation):
        statement.differ(f"{STATEMENT}: is written otherwise than onnxspec writes it")
    there = {*package.names} - {STATEMENT, ENVELOPE}
    for path in sorted(there | records.files.keys()):
        check = verification.check(_CHECK_OF.get(path, "record" if path.startswith(f"{RUN_FOLDER}/") else "files"))
        if path not in records.files:
            check.differ(f"{path}: no package holds such a file")
        elif path not in there:
            check.differ(f"{path}: is missing")
        elif (content := package.content(path)) != (again := records.files[path]):
            for line in _differences(path, content, again):
                check.differ(line)


def _told(verification: Verification) -> None:
    """Return the subjects of the checks of files, in a few words."""
    statement, measured, derivation = verification.statement, verification.measured, verification.derivation
    assert derivation is not None
    claims = {
        "levels and statement": f"{statement.kind}, {_rows(statement)}",
        "findings": f"{len(statement.findings)} findings",
        "environment": f"{statement.runtime} {statement.runtime_version}, {len(measured.packages)} packages measured",
        "record": f"{len(derivation.outcomes)} cases, {len(derivation.fresh)} in a fresh process",
        "placement": f"{statement.placement.proof} {statement.placement.provider}".strip(),
    }
    for name, text in claims.items():
        verification.check(name).claimed = text
    verification.check("environment").mark = "reported"


def _rows(statement: StatementRecord) -> str:
    counts = Counter(row.status for row in statement.rows)
    rows = f"{len(statement.rows)} operator versions and types"
    return f"{counts['certified']} of {rows} certified, {counts['exceptions']} with exceptions"


def _differences(path: str, claimed: bytes, again: bytes) -> Iterator[str]:
    """Differences of a record from the one that is made again; none where it is in last digits of numbers."""
    tolerances = _TOLERANT.get(path)
    try:
        if path.endswith(".jsonl"):
            yield from _lines(path, claimed.splitlines(), again.splitlines(), tolerances)
            return
        places = list(unlike(_parsed(claimed), _parsed(again), tolerances)) if path.endswith(".json") else []
    except MalformedJson as error:
        yield f"{path}: cannot be read: {error}"
        return
    for place, one, two in places:
        yield f"{path}: {place}: claimed {one}, recomputed {two}"
    if path.endswith(".json") and tolerances is not None and claimed != _written(_parsed(claimed), indent=2):
        yield f"{path}: {_OTHERWISE}"
    if not places and tolerances is None:
        digests = (hashlib.sha256(content).hexdigest()[:16] for content in (claimed, again))
        yield f"{path}: claimed {len(claimed)} bytes, {next(digests)}; recomputed {len(again)} bytes, {next(digests)}"


def _lines(path: str, claimed: list[bytes], again: list[bytes], tolerances: Tolerances | None) -> Iterator[str]:
    if len(claimed) != len(again):
        yield f"{path}: claimed {len(claimed)} lines, recomputed {len(again)}"
    for number, (one, two) in enumerate(zip(claimed, again, strict=False), 1):
        if one != two:
            for place, a, b in unlike(_parsed(one), _parsed(two), tolerances):
                yield f"{path}:{number}: {place}: claimed {a}, recomputed {b}"
            if one != _written(_parsed(one)).rstrip(b"\n"):
                yield f"{path}:{number}: {_OTHERWISE}"


_OTHERWISE = "is written otherwise than onnxspec writes it"
"""Message on JSON that programs may read in several ways, such as a key that stands twice."""


def _written(value: Any, indent: int | None = None) -> bytes:
    return f"{encode(value, indent=indent)}\n".encode("ascii")


def _parsed(content: bytes) -> Any:
    if len(content) > _LARGEST:
        raise MalformedJson(f"more than {_LARGEST >> 20} MiB")
    return parse(content)


def _waivers(verification: Verification, today: datetime.date) -> None:
    waivers = verification.statement.waivers
    if waivers:
        check = verification.check("waivers")
        check.claimed = f"{len(waivers)}"
        for number, waiver in enumerate(waivers, 1):
            if expired(waiver, today):
                check.differ(f"waiver {number} has expired on {waiver.expires}: what rests on it holds no more")
    check, date = verification.check("levels and statement"), verification.statement.date
    if date > today.isoformat():
        check.differ(f"is of {date}, which is still to come")
    # Runs are dated in UTC, packages by the vendor's calendar, which may be a day behind.
    assert verification.derivation is not None
    begun = verification.derivation.info["started"]
    if date < (datetime.datetime.fromisoformat(begun).date() - datetime.timedelta(days=1)).isoformat():
        check.differ(f"is of {date}, and its cases were run on {begun[:10]}")


def _nonce(verification: Verification, nonce: str) -> None:
    """Check the nonce. Only the person who chose a number can tell that it was given."""
    challenge = verification.statement.challenge
    check = verification.check("nonce")
    check.claimed = f"{challenge.nonce or 'none'}, {challenge.cases} fresh cases"
    check.recomputed = f"{nonce}, given by --nonce" if nonce else ""
    check.mark = "" if nonce else "unconfirmed"
    if nonce and challenge.nonce != nonce:
        check.differ(f"asked for was {nonce}, the cases are those of {challenge.nonce or 'none'}")
    elif not nonce and challenge.nonce:
        verification.remarks.append(
            f"nobody has told verify who chose the number {challenge.nonce}: unless it was asked for (--nonce), the "
            "fresh cases may have been known to the vendor before"
        )
