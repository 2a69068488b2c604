"""A package verified: all that it says is made again from what its target returned, and compared.

What is found is told by check, each with what is claimed, what is recomputed, and where they differ.
"""

from __future__ import annotations

import datetime
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..border.strict_json import MalformedJson, decode, parse
from .archive import MANIFEST, NoPackage, Package, manifest_differences
from .closeness import same_text, unlike
from .derivation import BY_NUMBERS, Derivation, NotCertifiable, derived
from .packing import (
    CERTIFICATE,
    ENVIRONMENT,
    REPORT,
    RUN_FOLDER,
    STATEMENT,
    SUITE,
    WAIVERS,
    Claim,
    Pages,
    files_of,
    suite_of,
)
from .records import MeasuredRecord, StatementRecord, SuiteRecord
from .suite import own_sources
from .waivers import WaiverError, expired

__all__ = ["Check", "Verification", "verify"]

_SHOWN = 12  # differences of a check that are told one by one
_LARGEST = 64 << 20  # bytes of a file of JSON


@dataclass
class Check:
    """One thing that was looked at: what is claimed, what is recomputed, and where they differ, a line each. ``marks``
    says what cannot be recomputed."""

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
    """What verifying a package has shown. ``statement`` is what it claims; ``remarks`` decide nothing."""

    package: Package
    statement: StatementRecord
    suite: SuiteRecord
    measured: MeasuredRecord
    checks: dict[str, Check] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    derivation: Derivation | None = None

    @property
    def differs(self) -> bool:
        """Whether anything that is claimed is not borne out."""
        return any(check.count for check in self.checks.values())

    def check(self, name: str) -> Check:
        """The check of that name."""
        return self.checks.setdefault(name, Check(name))


def verify(package: Package, pages: Pages, today: datetime.date, nonce: str = "") -> Verification:
    """Verify an unpacked package.

    pages
        What makes the pages of packages.
    nonce
        The one that the auditor has asked for; empty where nobody says.

    Raises NoPackage where the files that say what it is are not there, or are of another form; and OSError.
    """
    statement = _record(package, STATEMENT, StatementRecord)
    suite = _record(package, SUITE, SuiteRecord)
    measured = _record(package, ENVIRONMENT, MeasuredRecord)
    verification = Verification(package, statement, suite, measured)
    _files(verification)
    if not _suite(verification):
        return verification
    try:
        derivation = verification.derivation = derived(package.folder / RUN_FOLDER)
        claim = _claim(verification)
        files = files_of(derivation, claim, pages)
    except (NotCertifiable, WaiverError, MalformedJson) as error:
        text = str(error).replace(f"{package.folder}/", "")
        verification.check("record").differ(text)
        return verification
    _cases(verification, derivation)
    _outcomes(verification, derivation)
    _contents(verification, files)
    _waivers(verification, today)
    _nonce(verification, nonce)
    return verification


def _record(package: Package, name: str, kind: Any) -> Any:
    try:
        return decode(package.content(name), kind)
    except MalformedJson as error:
        raise NoPackage(f"{package.path}: {name}: {error}") from None


def _files(found: Verification) -> None:
    check = found.check("files")
    check.claimed = check.recomputed = f"{len(found.package.names)} files, each with its size and SHA-256"
    for path, claimed, there in manifest_differences(found.package):
        check.differ(f"{path}: {MANIFEST} says {claimed}; it is {there}")


def _suite(found: Verification) -> bool:
    """Whether the suite that judged is the one that is installed."""
    check, suite, own = found.check("suite"), found.suite, own_sources()
    check.claimed = f"onnxspec {suite.onnxspec}, {suite.sources[:16]}"
    check.recomputed = f"{own[:16]}"
    if suite.sources == own:
        return True
    check.differ(
        f"judged by onnxspec {suite.onnxspec} with the sources {suite.sources[:16]}, installed is {own[:16]}: "
        f"install onnxspec {suite.onnxspec} to verify the rest"
    )
    return False


def _claim(found: Verification) -> Claim:
    statement = found.statement
    try:
        day = datetime.date.fromisoformat(statement.date)
    except ValueError:
        raise NotCertifiable(f"{STATEMENT}: date: {statement.date[:40]!a} is no day") from None
    waivers = found.package.content(WAIVERS) if WAIVERS in found.package.names else b""
    return Claim(statement.product, statement.vendor, day, statement.challenge.chosen, waivers)


def _cases(found: Verification, derivation: Derivation) -> None:
    check = found.check("cases")
    asked = len(derivation.asked & derivation.probes.keys())
    filled = {probe.id for probe in derivation.probes.values()} - {probe.id for probe in derivation.plan.everything}
    pinned = len(derivation.probes) - asked - len(filled)
    check.claimed = f"{len(derivation.claimed)} results"
    check.recomputed = (
        f"{len(derivation.probes)} cases: {pinned} of profile {found.suite.profile}, {asked} of the nonce, "
        f"{len(filled)} in place of what is not supported"
    )
    for flaw in derivation.flaws:
        check.differ(flaw)
    for case in derivation.probes:
        if case not in derivation.claimed:
            check.differ(f"case {case} has no result")
    again = suite_of(derivation)
    for name in sorted({*again.cases, *found.suite.cases}):
        if again.cases.get(name) != found.suite.cases.get(name):
            check.differ(f"the cases of {name} are others than those that were judged")


def _outcomes(found: Verification, derivation: Derivation) -> None:
    """The verdicts, those by numbers apart from those that retell what happened."""
    again = {result.case: result for result in derivation.results}
    for name, numbers in (("verdicts by numbers", True), ("verdicts reported", False)):
        check = found.check(name)
        claimed = [r for r in derivation.claimed.values() if (r.verdict in BY_NUMBERS) is numbers]
        recomputed = [r for r in again.values() if (r.verdict in BY_NUMBERS) is numbers]
        check.claimed, check.recomputed = _counted(claimed), _counted(recomputed)
        check.mark = "" if numbers else "reported"
        for result in claimed:
            other = again.get(result.case)
            for place, one, two in (
                unlike(result, other) if other is not None else [("verdict", result.verdict, "none")]
            ):
                check.differ(f"{result.case}: {place}: claimed {one}, recomputed {two}")


def _counted(results: list[Any]) -> str:
    counts = Counter(result.verdict.value for result in results)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()) or "none"


_CHECK_OF = {
    STATEMENT: "levels and statement",
    ENVIRONMENT: "environment",
    SUITE: "suite",
    WAIVERS: "waivers",
    CERTIFICATE: "certificate",
    f"{RUN_FOLDER}/run.json": "findings",
    f"{RUN_FOLDER}/journal.jsonl": "record",
    f"{RUN_FOLDER}/results.jsonl": "results",
}


def _contents(found: Verification, files: Mapping[str, bytes]) -> None:
    """Every file against the one that is made again."""
    package = found.package
    for name in ("findings", "levels and statement", "environment", "record", "certificate", "report"):
        found.check(name)
    _told(found)
    for path in sorted({*package.names, *files} - {MANIFEST}):
        usual = "report" if path.startswith(f"{REPORT}/") else "record" if path.startswith(RUN_FOLDER) else "files"
        check = found.check(_CHECK_OF.get(path, usual))
        if path not in files:
            check.differ(f"{path}: no package holds such a file")
        elif path not in package.names:
            check.differ(f"{path}: is missing")
        elif (content := package.content(path)) != files[path]:
            for line in _differences(path, content, files[path]):
                check.differ(line)


def _told(found: Verification) -> None:
    """What the checks of files are about, in a few words."""
    statement, measured, derivation = found.statement, found.measured, found.derivation
    assert derivation is not None
    claims = {
        "levels and statement": f"{statement.kind}, {_rows(statement)}",
        "findings": f"{len(statement.findings)} findings",
        "environment": f"{statement.runtime} {statement.runtime_version}, {len(measured.packages)} packages measured",
        "record": f"{len(derivation.outcomes)} cases, {len(derivation.fresh)} in a fresh process",
        "placement": f"{statement.placement.proof} {statement.placement.provider}".strip(),
    }
    for name, text in claims.items():
        found.check(name).claimed = text
    found.check("environment").mark = "reported"


def _rows(statement: StatementRecord) -> str:
    counts = Counter(row.status for row in statement.rows)
    return f"{counts['certified']} of {len(statement.rows)} certified, {counts['exceptions']} with exceptions"


def _differences(path: str, claimed: bytes, again: bytes) -> Iterator[str]:
    """In what a file differs from the one that is made again; nothing where it is in last digits."""
    try:
        if path.endswith(".json"):
            for place, one, two in unlike(_parsed(claimed), _parsed(again)):
                yield f"{path}: {place}: claimed {one}, recomputed {two}"
        elif path.endswith(".jsonl"):
            yield from _lines(path, claimed.splitlines(), again.splitlines())
        elif path.endswith((".html", ".py", ".txt", ".css", ".js")):
            if not same_text(claimed.decode("utf-8"), again.decode("utf-8")):
                yield f"{path}: says other things than are shown"
        else:
            one, two = (hashlib.sha256(content).hexdigest()[:16] for content in (claimed, again))
            yield f"{path}: claimed {len(claimed)} bytes, {one}; recomputed {len(again)} bytes, {two}"
    except (MalformedJson, UnicodeDecodeError) as error:
        yield f"{path}: cannot be read: {error}"


def _lines(path: str, claimed: list[bytes], again: list[bytes]) -> Iterator[str]:
    if len(claimed) != len(again):
        yield f"{path}: claimed {len(claimed)} lines, recomputed {len(again)}"
    for number, (one, two) in enumerate(zip(claimed, again, strict=False), 1):
        if one != two:
            for place, a, b in unlike(_parsed(one), _parsed(two)):
                yield f"{path}:{number}: {place}: claimed {a}, recomputed {b}"


def _parsed(content: bytes) -> Any:
    if len(content) > _LARGEST:
        raise MalformedJson(f"more than {_LARGEST >> 20} MiB")
    return parse(content)


def _waivers(found: Verification, today: datetime.date) -> None:
    waivers = found.statement.waivers
    if waivers:
        check = found.check("waivers")
        check.claimed = f"{len(waivers)}"
        for number, waiver in enumerate(waivers, 1):
            if expired(waiver, today):
                check.differ(f"waiver {number} has expired on {waiver.expires}: what rests on it holds no more")
    if found.statement.date > today.isoformat():
        found.check("levels and statement").differ(f"is of {found.statement.date}, which is still to come")


def _nonce(found: Verification, nonce: str) -> None:
    challenge = found.statement.challenge
    check = found.check("nonce")
    check.claimed = f"{challenge.nonce or 'none'} ({challenge.chosen}), {challenge.cases} fresh cases"
    check.recomputed = nonce
    if nonce and challenge.nonce != nonce:
        check.differ(f"asked for was {nonce}, the cases are those of {challenge.nonce or 'none'}")
    elif not nonce and challenge.chosen == "given":
        found.remarks.append("nobody told verify which nonce was asked for: compare it yourself, or give --nonce")
    if challenge.chosen == "self-chosen":
        found.remarks.append("the nonce is self-chosen: the package may have been made before the question was asked")
