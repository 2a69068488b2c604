"""A certification package: all its files, made from what a run's record shows. Packing writes them, and verifying makes
them again from the record and compares."""

from __future__ import annotations

import datetime
import re
import secrets
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...reference.errors import RecordError
from ..border.strict_json import MalformedJson, typed
from ..probes.drawn import split_nonce
from ..results import lines
from ..results.environment import version_of
from ..results.recorded import CASE, FRESH, Recorder, bits_of
from ..results.writer import RunWriter
from ..running.screen import told_answer
from ..workers.worker_process import MEASURED
from .attestation import STATEMENT, as_json, attested
from .derivation import Derivation
from .placement import placement_of
from .records import FORM, ChallengeRecord, MeasuredRecord, RowRecord, StatementRecord, SuiteRecord, WaiverRecord
from .reported import reported_in
from .rows import interpretations_of, rows_of
from .suite import case_digests, own_sources
from .trial import trial_of
from .waivers import read_waivers

ENVIRONMENT, SUITE, WAIVERS = "ENVIRONMENT.json", "SUITE.json", "waivers.toml"
RUN_FOLDER = "run"

_TEXT = 200  # characters of a product's and a vendor's name
_FINDINGS = 60
_SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Claim:
    """Claim that nobody can derive: product, vendor, day and waivers.

    waivers
        The file of waivers; empty for none.
    signer
        SHA-256 of the public key that signs the package; empty if none does.
    """

    product: str
    vendor: str
    date: datetime.date
    waivers: bytes = b""
    signer: str = ""

    def checked(self) -> tuple[WaiverRecord, ...]:
        """Return the waivers. Raise RecordError for a name that no page can show, and RecordError."""
        for key, text in (("product", self.product), ("vendor", self.vendor)):
            if not text.strip() or len(text) > _TEXT or not text.isprintable():
                raise RecordError(f"{key}: a line of up to {_TEXT} printable characters, not {text[:40]!r}")
        if self.signer and not _SHA256.fullmatch(self.signer):
            raise RecordError(f"signer: {self.signer[:40]!a} is no SHA-256 of a key")
        return read_waivers(self.waivers, WAIVERS) if self.waivers else ()


@dataclass(frozen=True)
class Records:
    """Files of a package: the claim about the product, and the files on which it rests."""

    statement: StatementRecord
    suite: SuiteRecord
    measured: MeasuredRecord
    files: Mapping[str, bytes]


def some_nonce() -> str:
    """Return a new random nonce."""
    return secrets.token_hex(8)


def files_of(derivation: Derivation, claim: Claim) -> dict[str, bytes]:
    """Return every file of a package but its envelope. Raise RecordError and OSError."""
    with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
        records = records_of(derivation, claim, Path(temporary) / RUN_FOLDER)
    return {**records.files, STATEMENT: attested(records.statement, records.files)}


def records_of(derivation: Derivation, claim: Claim, folder: Path) -> Records:
    """Return the records of a package; write its run to `folder`. Raise RecordError, RecordError and OSError."""
    waivers = claim.checked()
    measured = measured_of(derivation)
    suite = suite_of(derivation)
    statement = statement_of(derivation, claim, waivers)
    files = {
        ENVIRONMENT: as_json(measured),
        SUITE: as_json(suite),
        **({WAIVERS: claim.waivers} if claim.waivers else {}),
    }
    write_run(derivation, folder)
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            files[f"{RUN_FOLDER}/{path.relative_to(folder).as_posix()}"] = path.read_bytes()
    return Records(statement, suite, measured, files)


def write_run(derivation: Derivation, folder: Path) -> None:
    """Write a run folder with what is derived, and with the record that it rests on. Raises OSError."""
    name = derivation.target.name
    with bits_of(derivation.folder, name) as bits, RunWriter(folder) as writer, Recorder(folder) as recorder:
        writer.append(lines.header_of(derivation.record))
        writer.append(lines.TargetStarted(target=name, description=derivation.entry["description"]))
        if filled := [probe.text for probe in derivation.plan.filled.get(name, ())]:
            writer.append(lines.CasesAdded(target=name, cases=filled))
        for purpose in (CASE, FRESH):
            for result in derivation.results:
                line = derivation.lines[purpose].get(result.case)
                if line is None:
                    continue
                jobs = recorder.adopt(name, line.jobs, bits)
                writer.append(lines.Recorded(purpose=purpose, target=name, case=result.case, jobs=jobs))
                if purpose == CASE:
                    writer.append(result)
        seconds = {name: derivation.entry["seconds"]}
        complete = derivation.record["complete"]
        whole = derivation.info["seconds"]
        writer.append(lines.RunFinished(complete=complete, seconds=whole, target_seconds=seconds))
        writer.describe(derivation.record)


def measured_of(derivation: Derivation) -> MeasuredRecord:
    """Return ENVIRONMENT.json. Raise RecordError if a worker's measurements have another form."""
    description = dict(derivation.entry["description"])
    measured = description.pop(MEASURED, {})
    fields = measured if isinstance(measured, dict) and "error" not in measured else {}
    fixed = {
        "description": description,
        "adapter": derivation.target.adapter,
        "options": dict(derivation.target.options),
        "wrap": derivation.target.wrap,
        "measured": bool(fields),
        "parent": dict(derivation.info["environment"]),
        "started": derivation.info["started"],
    }
    try:
        return typed({**fields, **fixed}, MeasuredRecord)
    except MalformedJson as error:
        raise RecordError(f"what the worker has measured: {error}") from None


def suite_of(derivation: Derivation) -> SuiteRecord:
    """SUITE.json, of the suite that is installed."""
    profile, nonce = split_nonce(derivation.plan.selection.profile)
    digests = derivation.record["digests"]
    return SuiteRecord(
        onnxspec=version_of("onnxspec") or "",
        sources=own_sources(),
        profile=profile,
        nonce=nonce,
        profiles={name: digest for name, digest in digests.items() if name != "nonce"},
        cases=case_digests(derivation.probes.values()),
        filling=derivation.record["targets"][0].get("filling"),
    )


def statement_of(derivation: Derivation, claim: Claim, waivers: Sequence[WaiverRecord]) -> StatementRecord:
    """STATEMENT.json."""
    description = derivation.entry["description"]
    profile, nonce = split_nonce(derivation.plan.selection.profile)
    provider = str(description.get("provider") or derivation.target.options.get("provider") or "")
    wrapped = bool(derivation.target.wrap)
    trial = tuple(trial_of(derivation, provider))
    asked = derivation.asked & derivation.probes.keys()
    rows = rows_of(derivation.probes, derivation.results, derivation.target.accuracy, waivers, claim.date, asked)
    answers = interpretations_of(derivation.probes, derivation.results)
    findings = derivation.record["targets"][0]["findings"]
    return StatementRecord(
        form=FORM,
        kind="trial" if trial else "certificate",
        trial_because=trial,
        product=claim.product,
        vendor=claim.vendor,
        date=claim.date.isoformat(),
        signer=claim.signer,
        target=derivation.target.name,
        runtime=str(description.get("runtime", "")),
        runtime_version=str(description.get("version", "")),
        provider=provider,
        accuracy=derivation.target.accuracy,
        profile=profile,
        placement=placement_of(provider, wrapped, derivation.outcomes),
        challenge=ChallengeRecord(nonce=nonce, cases=len(asked)),
        fresh_process=len(derivation.repeated),
        declined=tuple(lack.what for lack in told_answer(derivation.results, findings).lacks),
        reported=tuple(reported_in(derivation)),
        waivers=tuple(waivers),
        rows=tuple(map(_granting_nothing, rows)) if trial else rows,
        interpretations={op: {q: " and ".join(a) for q, a in asked.items()} for op, asked in answers.items()},
        findings=tuple(f"{f['verdict']}: {f['title']} ({len(f['cases'])} cases)" for f in findings[:_FINDINGS]),
    )


def _granting_nothing(row: RowRecord) -> RowRecord:
    return msgspec.structs.replace(row, status="none", level="")
