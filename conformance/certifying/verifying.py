"""Verification of a package: its run is replayed from the recorded outputs, and its files are made again.

Both are compared with the package. Texts and counts must be equal. Only numbers that depend on the build of NumPy have
a tolerance.
"""

from __future__ import annotations

import datetime
import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec

from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, decode, parse
from ..judging.judgement import OF_FORBIDDEN, Verdict
from ..results.result import Result
from .package import ENVELOPE, STATEMENT, Package, as_json, attestation_of, subject_differences
from .packing import WAIVERS, Claim, files_of, own_sources
from .records import AttestationRecord, StatementRecord
from .replay import BY_NUMBERS, RUN_FOLDER, Replay, replay
from .signing import signature_differences
from .waivers import expired

_LARGEST = 64 << 20  # maximum bytes of a JSON file
_MOST = 1000  # differences of a file that are kept, so that a hostile one does not fill memory


@dataclass
class Check:
    """One check: the claimed and the recomputed value, and the differences, a line each.

    ``mark`` is a word on why an equal value is still unproved.
    """

    claimed: str = ""
    recomputed: str = ""
    mark: str = ""
    differs: list[str] = field(default_factory=list)


@dataclass
class Verification:
    """The outcome of verifying a package. ``attestation`` is its claim; ``remarks`` decide nothing."""

    package: Package
    attestation: AttestationRecord
    checks: defaultdict[str, Check] = field(default_factory=lambda: defaultdict(Check))
    remarks: list[str] = field(default_factory=list)

    @property
    def statement(self) -> StatementRecord:
        """The claims on the product."""
        return self.attestation.predicate

    @property
    def differing(self) -> list[str]:
        """The checks that refute a claim."""
        return [name for name, check in self.checks.items() if check.differs]


def verify(package: Package, today: datetime.date, nonce: str = "", signer: Any = None, jobs: int = 1) -> Verification:
    """Verify an unpacked package.

    nonce
        The nonce that the auditor chose; empty if unknown.
    signer
        The key of the expected signer; None if unknown.
    jobs
        Number of processes for judging.

    Raise UserError where the statement is missing or of another form, or where signatures cannot be checked here; raise
    OSError.
    """
    verification = Verification(package, attestation_of(package))
    _check_files(verification)
    _check_signature(verification, signer)
    if not _check_suite(verification):
        return verification
    try:
        replayed = replay(package.folder / RUN_FOLDER, jobs=jobs)
        files = files_of(replayed, _claim(verification))
    except (RecordError, MalformedJson) as error:
        verification.checks["record"].differs.append(str(error).replace(f"{package.folder}/", ""))
        return verification
    _check_cases(verification, replayed)
    _check_results(verification, replayed)
    _check_records(verification, replayed, files)
    _check_days(verification, replayed, today)
    _check_nonce(verification, nonce)
    return verification


def _check_files(verification: Verification) -> None:
    package = verification.package
    verification.checks["files"] = Check(
        f"{len(verification.attestation.subject)} files, each with its SHA-256",
        f"{len(package.names)} files are there, {STATEMENT} among them",
        differs=[
            f"{path}: {STATEMENT} says {claimed}; it is {actual}"
            for path, claimed, actual in subject_differences(package, verification.attestation)
        ],
    )


def _check_signature(verification: Verification, key: Any) -> None:
    """Check the signature. Only a known public key of the vendor proves that a package is the vendor's."""
    signer = verification.statement.signer
    mark = "unchecked" if signer else "unsigned"
    claimed = f"the key {signer}" if signer else "unsigned"
    differs = list(signature_differences(verification.package, signer, key))
    verification.checks["signature"] = Check(claimed, mark="" if key is not None else mark, differs=differs)
    if not signer:
        verification.remarks.append("unsigned: nobody's key answers for what is reported and not provable")
    elif key is None:
        verification.remarks.append("signature not checked: pass the vendor's public key with --signer PUB.pem")


def _check_suite(verification: Verification) -> bool:
    """Return whether the judging suite is the installed one."""
    suite, installed = verification.statement.suite, own_sources()
    check = Check(f"onnxspec {suite.onnxspec}, {suite.sources[:16]}", installed[:16])
    verification.checks["suite"] = check
    if suite.sources == installed:
        return True
    check.differs.append(
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


def _check_cases(verification: Verification, again: Replay) -> None:
    drawn = len(again.asked & again.probes.keys())
    filled = len(again.probes.keys() - {probe.id for probe in again.plan.everything})
    pinned = len(again.probes) - drawn - filled
    profile = verification.statement.profile
    verification.checks["cases"] = Check(
        f"{len(again.claimed)} results",
        f"{len(again.probes)} cases: {pinned} of profile {profile}, {drawn} of the nonce, {filled} in place of "
        "what is not supported",
        differs=[
            *again.flaws,
            *(f"case {case} has no result" for case in again.probes if case not in again.claimed),
        ],
    )


def _check_results(verification: Verification, again: Replay) -> None:
    """Check the results: verdicts by numbers separately from verdicts that report events."""
    by_case = {result.case: result for result in again.results}
    for name, numbers in (("verdicts by numbers", True), ("verdicts reported", False)):
        claimed = [r for r in again.claimed.values() if (r.verdict in BY_NUMBERS) is numbers]
        recomputed = [r for r in again.results if (r.verdict in BY_NUMBERS) is numbers]
        verification.checks[name] = Check(
            _counted(claimed),
            _counted(recomputed),
            "" if numbers else "reported",
            [f"{r.case}: {line}" for r in claimed for line in differences(r, by_case.get(r.case))],
        )


def _counted(results: Sequence[Result]) -> str:
    counts = Counter(result.verdict.value for result in results)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "none"


_CHECK_OF = {WAIVERS: "waivers", f"{RUN_FOLDER}/run.json": "findings"}


def _check_records(verification: Verification, again: Replay, files: Mapping[str, bytes]) -> None:
    """Compare the statement and every file with the recomputed ones."""
    package, claimed = verification.package, verification.statement
    counts = Counter(row.status for row in claimed.rows)
    rows = f"{counts['certified']} of {len(claimed.rows)} operator versions and types certified"
    recomputed = decode(files[STATEMENT], AttestationRecord).predicate
    differs = [f"{STATEMENT}: {line}" for line in differences(claimed, recomputed)]
    if package.content(STATEMENT) != as_json(verification.attestation):
        differs.append(f"{STATEMENT}: is written otherwise than onnxspec writes it")
    level_counts = f"{claimed.kind}, {rows}, {counts['exceptions']} with exceptions"
    verification.checks |= {
        "findings": Check(f"{len(again.entry['findings'])} findings"),
        "levels and statement": Check(level_counts, differs=differs),
        "environment": Check(f"{claimed.runtime} {claimed.runtime_version}", mark="reported"),
        "record": Check(f"{len(again.outcomes)} cases, {len(again.fresh)} in a fresh process"),
        "placement": Check(f"{claimed.placement.proof} {claimed.placement.provider}".strip()),
    }
    names = {*package.names} - {STATEMENT, ENVELOPE}
    for path in sorted(names | files.keys() - {STATEMENT}):
        check = verification.checks[_CHECK_OF.get(path, "record" if path.startswith(f"{RUN_FOLDER}/") else "files")]
        if path not in files:
            check.differs.append(f"{path}: no package holds such a file")
        elif path not in names:
            check.differs.append(f"{path}: is missing")
        else:
            check.differs += islice(_file_differences(path, package.content(path), files[path]), _MOST)


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
            lines = differences(parse(their_line), parse(our_line)) if their_line != our_line else ()
            yield from (f"{path}:{number}: {line}" for line in lines)
        except MalformedJson as error:
            yield f"{path}:{number}: cannot be read: {error}"


def differences(claimed: object, again: object, place: str = "", record: Any = None) -> Iterator[str]:
    """Yield a line, which begins with the path, for each difference; `record` is the record of the claimed value."""
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
        yield f"{place}: claimed {_short(first)}, recomputed {_short(second)}"


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
    if statement.waivers:
        verification.checks["waivers"].claimed = f"{len(statement.waivers)}"
    for number, waiver in enumerate(statement.waivers, 1):
        if expired(waiver, today):
            line = f"waiver {number} has expired on {waiver.expires} and excuses no failure any more"
            verification.checks["waivers"].differs.append(line)
    differs, date = verification.checks["levels and statement"].differs, statement.date
    if date > today.isoformat():
        differs.append(f"is of {date}, which is still to come")
    # Runs are dated in UTC, packages by the vendor's calendar, which may be a day behind.
    run_date = again.run.started.date()
    if date < (run_date - datetime.timedelta(days=1)).isoformat():
        differs.append(f"is of {date}, and its cases were run on {run_date}")


def _check_nonce(verification: Verification, nonce: str) -> None:
    """Check the nonce. Only the person who chose a nonce can confirm it."""
    challenge = verification.statement.challenge
    expected = f"{nonce}, given by --nonce" if nonce else ""
    claimed = f"{challenge.nonce or 'none'}, {challenge.cases} fresh cases"
    check = verification.checks["nonce"] = Check(claimed, expected, "" if nonce else "unconfirmed")
    if nonce and challenge.nonce != nonce:
        check.differs.append(f"asked for was {nonce}, the cases are those of {challenge.nonce or 'none'}")
    elif not nonce and challenge.nonce:
        verification.remarks.append(
            "nonce not checked: pass --nonce N to prove that the vendor did not know the cases in advance"
        )
