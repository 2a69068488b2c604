"""Content of a certification package, made from a replay.

Packing writes it; verification makes it again and compares.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import msgspec

from ...cases import digest_of
from ...reference.errors import RecordError
from ..probes.drawn import split_nonce
from ..probes.probe import Probe, SpecProbe
from ..results.environment import version_of
from ..results.summary import summary_of
from .package import STATEMENT, attested
from .records import FORM, ChallengeRecord, RowRecord, StatementRecord, SuiteRecord, WaiverRecord
from .replay import Replay
from .rows import interpretations_of, rows_of
from .trial import placement_of, reported_in, trial_of
from .waivers import read_waivers

WAIVERS = "waivers.toml"

_PACKAGES = ("cases", "conformance", "reference", "reports")
_KINDS = (".py", ".toml", ".json", ".html", ".css", ".js")
_TEXT = 200  # characters of a product's and a vendor's name
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Claim:
    """Claims that cannot be derived from the run: product, vendor, date and waivers.

    waivers
        Content of the file of waivers; empty for none.
    signer
        SHA-256 of the public key that signs the package; empty for an unsigned one.
    """

    product: str
    vendor: str
    date: datetime.date
    waivers: bytes = b""
    signer: str = ""

    def checked(self) -> tuple[WaiverRecord, ...]:
        """Return the waivers. Raise RecordError, also for a product or vendor that no page can show."""
        for key, text in (("product", self.product), ("vendor", self.vendor)):
            if not text.strip() or len(text) > _TEXT or not text.isprintable():
                raise RecordError(f"{key}: a line of up to {_TEXT} printable characters, not {text[:40]!r}")
        if self.signer and not _SHA256.fullmatch(self.signer):
            raise RecordError(f"signer: {self.signer[:40]!a} is no SHA-256 of a key")
        return read_waivers(self.waivers, WAIVERS) if self.waivers else ()


def files_of(replay: Replay, claim: Claim) -> dict[str, bytes]:
    """Return every file of a package except its envelope. Raise RecordError."""
    waivers = claim.checked()
    files = {**replay.files, **({WAIVERS: claim.waivers} if claim.waivers else {})}
    return {**files, STATEMENT: attested(statement_of(replay, claim, waivers), files)}


def statement_of(replay: Replay, claim: Claim, waivers: Sequence[WaiverRecord]) -> StatementRecord:
    """Return STATEMENT.json."""
    description = replay.entry["description"]
    profile, nonce = split_nonce(replay.plan.selection.profile)
    provider = str(description.get("provider") or replay.target.options.get("provider") or "")
    wrapped = bool(replay.target.wrap)
    trial = tuple(trial_of(replay, provider))
    nonce_cases = replay.asked & replay.probes.keys()
    findings = replay.record["targets"][0]["findings"]
    causes = {case: finding["title"] for finding in reversed(findings) for case in finding["cases"]}
    rows = rows_of(replay.probes, replay.results, replay.target.accuracy, waivers, claim.date, nonce_cases, causes)
    answers = interpretations_of(replay.probes, replay.results)
    return StatementRecord(
        form=FORM,
        kind="trial" if trial else "certificate",
        trial_because=trial,
        product=claim.product,
        vendor=claim.vendor,
        date=claim.date.isoformat(),
        signer=claim.signer,
        suite=SuiteRecord(
            onnxspec=version_of("onnxspec") or "", sources=own_sources(), cases=case_digests(replay.probes.values())
        ),
        target=replay.target.name,
        runtime=str(description.get("runtime", "")),
        runtime_version=str(description.get("version", "")),
        provider=provider,
        accuracy=replay.target.accuracy,
        profile=profile,
        placement=placement_of(provider, wrapped, replay.outcomes),
        challenge=ChallengeRecord(nonce=nonce, cases=len(nonce_cases)),
        fresh_process=len(replay.repeated),
        declined=tuple(lack.text for lack in summary_of(replay.results, findings).lacks),
        reported=tuple(reported_in(replay)),
        waivers=tuple(waivers),
        rows=tuple(map(_granting_nothing, rows)) if trial else rows,
        interpretations={op: {q: " and ".join(a) for q, a in questions.items()} for op, questions in answers.items()},
    )


def _granting_nothing(row: RowRecord) -> RowRecord:
    return msgspec.structs.replace(row, status="none", level="")


@cache
def own_sources() -> str:
    """Return the SHA-256 over the paths and contents of all files of onnxspec that affect results.

    Line ends are normalized, since tools change them.
    """
    total = hashlib.sha256()
    for package in _PACKAGES:
        folder = Path(str(resources.files(f"onnxspec.{package}")))
        for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
            if path.suffix in _KINDS and path.is_file() and "__pycache__" not in path.parts:
                content = path.read_bytes().replace(b"\r\n", b"\n")
                name = f"{package}/{path.relative_to(folder).as_posix()}"
                total.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return total.hexdigest()


def case_digests(probes: Iterable[Probe]) -> dict[str, str]:
    """Return a digest of the cases of each operator version, with every byte of their content."""
    specs = defaultdict(list)
    for probe in probes:
        if isinstance(probe, SpecProbe):
            specs[f"{probe.op}-{probe.version}"].append(probe.spec)
    return {name: digest_of(specs[name]) for name in sorted(specs)}
