"""Verification of a package: its run is replayed from the recorded outputs, and its files are made again.

Both are compared with the package. Texts and counts must be equal. Only numbers that depend on the build of NumPy have
a tolerance.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, decode, parse
from ..judging.judgement import OF_FORBIDDEN, Verdict
from ..results.result import Result
from .package import ENVELOPE, STATEMENT, Package, as_json, attestation_of, record_in, subject_differences
from .packing import ENVIRONMENT, SUITE, WAIVERS, Claim, files_of, own_sources
from .records import AttestationRecord, MeasuredRecord, StatementRecord, SuiteRecord
from .replay import BY_NUMBERS, RUN_FOLDER, Replay, replay
from .signing import signature_differences
from .waivers import expired

_SHOWN = 12  # differences of a check that are listed one by one
_LARGEST = 64 << 20  # maximum bytes of a JSON file


@dataclass
class Check:
    """One check: the claimed and the recomputed value, and the differences, a line each.

    ``mark`` is a word on why an equal value is still unproved.
    """

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
    """The outcome of verifying a package. ``attestation`` is its claim; ``remarks`` decide nothing."""

    package: Package
    attestation: AttestationRecord
    checks: dict[str, Check] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)

    @property
    def statement(self) -> StatementRecord:
        """The claims on the product."""
        return self.attestation.predicate

    @property
    def differs(self) -> bool:
        """Whether any claim is refuted."""
        return any(check.count for check in self.checks.values())

    def check(self, name: str, claimed: str = "", recomputed: str = "", mark: str = "") -> Check:
        """Return the check of that name, created if necessary; non-empty arguments replace its values."""
        check = self.checks.setdefault(name, Check(name))
        check.claimed, check.recomputed = claimed or check.claimed, recomputed or check.recomputed
        check.mark = mark or check.mark
        return check


def verify(package: Package, today: datetime.date, nonce: str = "", signer: Any = None, jobs: int = 1) -> Verification:
    """Verify an unpacked package.

    nonce
        The nonce that the auditor chose; empty if unknown.
    signer
        The key of the expected signer; None if unknown.
    jobs
        Number of processes for judging.

    Raise UserError where the files that describe the package are missing or of another form, or where signatures cannot
    be checked here; raise OSError.
    """
    verification = Verification(package, attestation_of(package))
    suite = record_in(package, SUITE, SuiteRecord)
    measured = record_in(package, ENVIRONMENT, MeasuredRecord)
    _check_files(verification)
    _check_signature(verification, signer)
    if not _check_suite(verification, suite):
        return verification
    try:
        replayed = replay(package.folder / RUN_FOLDER, jobs=jobs)
        files = files_of(replayed, _claim(verification))
    except (RecordError, MalformedJson) as error:
        verification.check("record").differ(str(error).replace(f"{package.folder}/", ""))
        return verification
    _check_cases(verification, replayed, suite, decode(files[SUITE], SuiteRecord))
    _check_results(verification, replayed)
    _check_records(verification, replayed, files, measured)
    _check_days(verification, replayed, today)
    _check_nonce(verification, nonce)
    return verification


def _check_files(verification: Verification) -> None:
    package = verification.package
    check = verification.check(
        "files",
        f"{len(verification.attestation.subject)} files, each with its SHA-256",
        f"{len(package.names)} files are there, {STATEMENT} among them",
    )
    for path, claimed, actual in subject_differences(package, verification.attestation):
        check.differ(f"{path}: {STATEMENT} says {claimed}; it is {actual}")


def _check_signature(verification: Verification, key: Any) -> None:
    """Check the signature. Only a known public key of the vendor proves that a package is the vendor's."""
    signer = verification.statement.signer
    mark = "unchecked" if signer else "unsigned"
    claimed = f"the key {signer}" if signer else "unsigned"
    check = verification.check("signature", claimed, mark="" if key is not None else mark)
    for line in signature_differences(verification.package, signer, key):
        check.differ(line)
    if not signer:
        verification.remarks.append("unsigned: nobody's key answers for what is reported and not provable")
    elif key is None:
        verification.remarks.append("signature not checked: pass the vendor's public key with --signer PUB.pem")


def _check_suite(verification: Verification, suite: SuiteRecord) -> bool:
    """Return whether the judging suite is the installed one."""
    installed = own_sources()
    check = verification.check("suite", f"onnxspec {suite.onnxspec}, {suite.sources[:16]}", installed[:16])
    if suite.sources == installed:
        return True
    check.differ(
        f"judged by onnxspec {suite.onnxspec} with the sources {suite.sources[:16]}, installed is {installed[:16]}: "
        f"install onnxspec {suite.onnxspec} of these very sources (a release, or the same commit) to verify the rest"
    )
    return False


def _claim(verification: Verification) -> Claim:
    statement, package = verification.statement, verification.package
    try:
        day = datetime.date.fromisoformat(statement.date)
    except ValueError:
        raise RecordError(f"{STATEMENT}: date: {statement.date[:40]!a} is no day") from None
    waivers = package.content(WAIVERS) if WAIVERS in package.names else b""
    return Claim(statement.product, statement.vendor, day, waivers, statement.signer)


def _check_cases(verification: Verification, again: Replay, suite: SuiteRecord, recomputed: SuiteRecord) -> None:
    drawn = len(again.asked & again.probes.keys())
    filled = len(again.probes.keys() - {probe.id for probe in again.plan.everything})
    pinned = len(again.probes) - drawn - filled
    check = verification.check(
        "cases",
        f"{len(again.claimed)} results",
        f"{len(again.probes)} cases: {pinned} of profile {suite.profile}, {drawn} of the nonce, {filled} in place of "
        "what is not supported",
    )
    for flaw in again.flaws:
        check.differ(flaw)
    for case in again.probes:
        if case not in again.claimed:
            check.differ(f"case {case} has no result")
    for name in sorted({*recomputed.cases, *suite.cases}):
        if recomputed.cases.get(name) != suite.cases.get(name):
            check.differ(f"the cases of {name} are others than those that were judged")


def _check_results(verification: Verification, again: Replay) -> None:
    """Check the results: verdicts by numbers separately from verdicts that report events."""
    by_case = {result.case: result for result in again.results}
    for name, numbers in (("verdicts by numbers", True), ("verdicts reported", False)):
        claimed = [r for r in again.claimed.values() if (r.verdict in BY_NUMBERS) is numbers]
        recomputed = [r for r in again.results if (r.verdict in BY_NUMBERS) is numbers]
        check = verification.check(name, _counted(claimed), _counted(recomputed), "" if numbers else "reported")
        for result in claimed:
            for path, claimed_value, recomputed_value in differences(result, by_case.get(result.case)):
                check.differ(f"{result.case}: {path}: claimed {claimed_value}, recomputed {recomputed_value}")


def _counted(results: Sequence[Result]) -> str:
    counts = Counter(result.verdict.value for result in results)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "none"


_CHECK_OF = {
    ENVIRONMENT: "environment",
    SUITE: "suite",
    WAIVERS: "waivers",
    f"{RUN_FOLDER}/run.json": "findings",
    f"{RUN_FOLDER}/results.jsonl": "record",
}


def _check_records(
    verification: Verification, again: Replay, files: Mapping[str, bytes], measured: MeasuredRecord
) -> None:
    """Compare the statement and every file with the recomputed ones."""
    package, claimed = verification.package, verification.statement
    counts = Counter(row.status for row in claimed.rows)
    rows = f"{counts['certified']} of {len(claimed.rows)} operator versions and types certified"
    verification.check("findings", f"{len(claimed.findings)} findings")
    statement = verification.check(
        "levels and statement", f"{claimed.kind}, {rows}, {counts['exceptions']} with exceptions"
    )
    runtime = f"{claimed.runtime} {claimed.runtime_version}, {len(measured.packages)} packages measured"
    verification.check("environment", runtime, mark="reported")
    verification.check("record", f"{len(again.outcomes)} cases, {len(again.fresh)} in a fresh process")
    verification.check("placement", f"{claimed.placement.proof} {claimed.placement.provider}".strip())
    recomputed = decode(files[STATEMENT], AttestationRecord).predicate
    for location, claimed_value, recomputed_value in differences(claimed, recomputed):
        statement.differ(f"{STATEMENT}: {location}: claimed {claimed_value}, recomputed {recomputed_value}")
    if package.content(STATEMENT) != as_json(verification.attestation):
        statement.differ(f"{STATEMENT}: is written otherwise than onnxspec writes it")
    names = {*package.names} - {STATEMENT, ENVELOPE}
    for path in sorted(names | files.keys() - {STATEMENT}):
        check = verification.check(_CHECK_OF.get(path, "record" if path.startswith(f"{RUN_FOLDER}/") else "files"))
        if path not in files:
            check.differ(f"{path}: no package holds such a file")
        elif path not in names:
            check.differ(f"{path}: is missing")
        else:
            for line in _file_differences(path, package.content(path), files[path]):
                check.differ(line)


def _file_differences(path: str, claimed: bytes, again: bytes) -> Iterator[str]:
    """Yield differences of a file from the recomputed one."""
    if claimed == again:
        return
    numbers = path.startswith(f"{RUN_FOLDER}/") and path.endswith((".json", ".jsonl"))
    if not numbers or len(claimed) > _LARGEST:
        digests = [hashlib.sha256(content).hexdigest()[:16] for content in (claimed, again)]
        yield f"{path}: claimed {len(claimed)} bytes, {digests[0]}; recomputed {len(again)} bytes, {digests[1]}"
    if not path.endswith((".json", ".jsonl")) or len(claimed) > _LARGEST:
        return
    ours, theirs = (again.splitlines(), claimed.splitlines()) if path.endswith("l") else ([again], [claimed])
    if len(ours) != len(theirs):
        yield f"{path}: claimed {len(theirs)} lines, recomputed {len(ours)}"
    for number, (their_line, our_line) in enumerate(zip(theirs, ours, strict=False), 1):
        try:
            for location, a, b in differences(parse(their_line), parse(our_line)) if their_line != our_line else ():
                yield f"{path}:{number}: {location}: claimed {a}, recomputed {b}"
        except MalformedJson as error:
            yield f"{path}:{number}: cannot be read: {error}"


def differences(claimed: object, again: object, place: str = "", record: Any = None) -> Iterator[tuple[str, str, str]]:
    """Yield (path, claimed, recomputed) where two values differ; `record` is the record of the claimed value."""
    first, second = msgspec.to_builtins(claimed), msgspec.to_builtins(again)
    key = place.rpartition(".")[2]
    if isinstance(first, dict) and isinstance(second, dict):
        for name in sorted({*first, *second}):
            yield from differences(first.get(name, "-"), second.get(name, "-"), f"{place}.{name}".lstrip("."), first)
    elif isinstance(first, (list, tuple)) and isinstance(second, (list, tuple)) and len(first) == len(second):
        if key == "error_sums" and _same_sums(first, second, record):
            return
        for number, (a, b) in enumerate(zip(first, second, strict=True)):
            yield from differences(a, b, f"{place}[{number}]")
    elif type(first) is not type(second) or (first != second and not _same(first, second, place, key, record or {})):
        yield place, _short(first), _short(second)


def _same(one: Any, other: Any, place: str, key: str, record: dict[str, Any]) -> bool:
    """Return whether two unequal values differ only by the order of sums, which depends on the build of BLAS."""
    if isinstance(one, float) and ".bias." in place:  # means of error_sums, in u
        return bool(abs(one - other) <= (2.0 if ".float64." in place else _SUMS))
    if isinstance(one, float):
        return key in _COMPUTED and math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    by_numbers = record.get("verdict") in BY_NUMBERS - {Verdict.MALFORMED}
    # Other messages have the runtime's own text, where numbers must be equal, too.
    if key != "message" or not by_numbers or record.get("reason") in OF_FORBIDDEN:
        return False
    ours, theirs = _NUMBER.split(other), _NUMBER.split(one)
    return len(ours) == len(theirs) and all(
        a == b or (number % 2 == 1 and float(a) != float(b) and math.isclose(float(a), float(b), rel_tol=1e-8))
        for number, (a, b) in enumerate(zip(ours, theirs, strict=True))
    )


_COMPUTED = frozenset({"worst", "error", "units", "argument"})
_NUMBER = re.compile(r"(?<![\w.])(-?\d+\.\d+(?:e[+-]\d+)?|-?\d+e[+-]\d+)(?![\w.])")
_SUMS = 1e-3
"""Tolerance of ``error_sums``, in units of the fourth, the sum of u|value|.

The reference's rounding is 2^-29 of a value's u in float32; in float64, u is that rounding itself.
"""


def _same_sums(one: Sequence[float], other: Sequence[float], record: Any) -> bool:
    """Return whether sums of errors differ only by the reference's own rounding."""
    if len(one) != 4 or not math.isclose(one[3], other[3], rel_tol=1e-6):
        return False
    tolerance = (2.0 if record.get("type") == "float64" else _SUMS) * other[3]
    units = (1.0, 1.0, other[3])
    return all(abs(a - b) <= tolerance * unit for a, b, unit in zip(one, other, units, strict=False))


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode("utf-8", "replace")
    text = text if text.isprintable() else ascii(text)[1:-1]
    return text if len(text) <= 160 else f"{text[:120]} ... {text[-30:]}"


def _check_days(verification: Verification, again: Replay, today: datetime.date) -> None:
    """Check that waivers are valid today, and that the package is not older than its run."""
    statement = verification.statement
    for number, waiver in enumerate(statement.waivers, 1):
        check = verification.check("waivers", f"{len(statement.waivers)}")
        if expired(waiver, today):
            check.differ(f"waiver {number} has expired on {waiver.expires}: what rests on it holds no more")
    check, date = verification.check("levels and statement"), statement.date
    if date > today.isoformat():
        check.differ(f"is of {date}, which is still to come")
    # Runs are dated in UTC, packages by the vendor's calendar, which may be a day behind.
    run_date = again.run.started.date()
    if date < (run_date - datetime.timedelta(days=1)).isoformat():
        check.differ(f"is of {date}, and its cases were run on {run_date}")


def _check_nonce(verification: Verification, nonce: str) -> None:
    """Check the nonce. Only the person who chose a nonce can confirm it."""
    challenge = verification.statement.challenge
    expected = f"{nonce}, given by --nonce" if nonce else ""
    claimed = f"{challenge.nonce or 'none'}, {challenge.cases} fresh cases"
    check = verification.check("nonce", claimed, expected, "" if nonce else "unconfirmed")
    if nonce and challenge.nonce != nonce:
        check.differ(f"asked for was {nonce}, the cases are those of {challenge.nonce or 'none'}")
    elif not nonce and challenge.nonce:
        verification.remarks.append(
            "nonce not checked: pass --nonce N to prove that the vendor did not know the cases in advance"
        )
