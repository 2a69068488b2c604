"""The certificate: one page for whoever buys a runtime, made from what a package states and from nothing else."""

from __future__ import annotations

import hashlib
import tempfile
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..conformance.certifying.packing import CERTIFICATE, REPORT
from ..conformance.certifying.records import MeasuredRecord, RowRecord, StatementRecord, SuiteRecord, WaiverRecord
from .page import render_certificate, write_report

__all__ = ["Certificate", "certificate_of", "pages_of"]

_LEVELS = {
    "basic": "one direction, sequences of one length, default activations, with and without bias and initial states",
    "sequence": "basic, in both directions, and with sequences of different lengths in one batch",
    "complete": "everything that the operator's document allows",
    "calibrated": "one sequence at a time, with the scales and zero points that a calibration gives",
}

_PLACEMENT = {
    "not needed": "This runtime computes in one place only, so no proof of where it computed is needed.",
    "record": "For each of {cases:,} cases the runtime's own record of assignment shows that the operator was given to "
    "{provider}.",
    "profile": "For each of {cases:,} cases the runtime's own profile shows that the operator ran on {provider}.",
    "mixed": "For each of {cases:,} cases the runtime's record of assignment or its profile shows that the operator "
    "ran on {provider}.",
    "none": "Nothing shows that an operator ran on {provider}.",
}


@dataclass(frozen=True)
class Line:
    """Rows of a statement that say the same, as one line: which versions of an operator in which types."""

    operator: str
    versions: str
    level: str
    why: str


@dataclass(frozen=True)
class Certificate:
    """What the page shows."""

    statement: StatementRecord
    title: str
    lead: str
    certified: tuple[Line, ...]
    excepted: tuple[Line, ...]
    others: tuple[Line, ...]
    unsupported: tuple[str, ...]
    waivers: tuple[tuple[int, WaiverRecord, int], ...]
    placement: str
    challenge: str
    remarks: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    suite: tuple[tuple[str, str], ...]
    levels: tuple[tuple[str, str], ...]


def pages_of(
    folder: Path, statement: StatementRecord, suite: SuiteRecord, measured: MeasuredRecord
) -> Mapping[str, bytes]:
    """The pages of a package, by their paths in it; `folder` holds its run. Raises OSError."""
    text = render_certificate(certificate_of(statement, suite, measured))
    pages = {CERTIFICATE: text.encode("utf-8", errors="backslashreplace")}
    with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
        out = Path(temporary)
        write_report([folder], out, warn=lambda line: None)
        for path in sorted(out.rglob("*")):
            if path.is_file() and not path.name.startswith("."):
                pages[f"{REPORT}/{path.relative_to(out).as_posix()}"] = path.read_bytes()
    return pages


def certificate_of(statement: StatementRecord, suite: SuiteRecord, measured: MeasuredRecord) -> Certificate:
    """What the page of a statement shows."""
    rows = statement.rows
    failing = [row for row in rows if row.failing]
    certified = _lines((row for row in rows if row.status == "certified"), failing)
    excepted = _lines((row for row in rows if row.status == "exceptions"), failing)
    tried = [row for row in rows if row.status == "none" and not _declined(row)]
    declined = [row for row in rows if row.status == "none" and _declined(row)]
    covered: Counter[int] = Counter()
    for row in rows:
        covered.update({each.waiver: each.cases for each in row.exceptions})
    trial = statement.kind != "certificate"
    named = {row.level for row in rows if row.level}
    return Certificate(
        statement=statement,
        title="Trial" if trial else "Certificate of conformance",
        lead=_lead(statement, trial),
        certified=certified,
        excepted=excepted,
        others=_lines(tried),
        unsupported=tuple(_declined_lines(declined)),
        waivers=tuple((n, waiver, covered[n]) for n, waiver in enumerate(statement.waivers, 1)),
        placement=_PLACEMENT[statement.placement.proof].format(
            cases=statement.placement.cases, provider=statement.placement.provider or "the provider"
        ),
        challenge=_challenge(statement),
        remarks=tuple(_remarks(statement)),
        environment=tuple(_environment(measured)),
        suite=(
            ("Suite", f"onnxspec {suite.onnxspec}"),
            ("Sources of the suite", suite.sources),
            ("Profile", suite.profile),
            (
                "Cases",
                hashlib.sha256("\n".join(f"{n} {d}" for n, d in sorted(suite.cases.items())).encode()).hexdigest(),
            ),
        ),
        levels=tuple((name, text) for name, text in _LEVELS.items() if name in named),
    )


def _digest(digests: Mapping[str, str]) -> str:
    """One digest of several."""
    return hashlib.sha256("\n".join(f"{name} {digests[name]}" for name in sorted(digests)).encode()).hexdigest()


def _lead(statement: StatementRecord, trial: bool) -> str:
    if trial:
        return f"This package certifies nothing: {'; '.join(statement.trial_because)}."
    rows = statement.rows
    certified = sum(row.status == "certified" for row in rows)
    excepted = sum(row.status == "exceptions" for row in rows)
    also = f", {excepted} more with exceptions" if excepted else ""
    if not certified:
        return f"No operator version and type reaches a level{also.replace(', ', '; ').replace(' more', '')}."
    return (
        f"Of {len(rows)} combinations of operator version and number type, {certified} "
        f"{'is' if certified == 1 else 'are'} certified{also}. "
        "What a level promises, what is not supported, and what is excepted stands below."
    )


def _declined(row: RowRecord) -> bool:
    """Whether nothing of a row ran."""
    return not set(row.verdicts) - {"unsupported", "fallback"}


def _lines(rows: Iterable[RowRecord], failing: Collection[RowRecord] = ()) -> tuple[Line, ...]:
    """Rows that say the same, together; `failing` has rows of the same statement in which cases fail."""
    grouped: dict[tuple[str, str, str, str], list[RowRecord]] = {}
    for row in rows:
        # How many cases fail differs from row to row, and is no reason for a line of its own.
        why = "" if row.status == "none" and row.failing else _why(row)
        others = [str(o.version) for o in failing if (o.op, o.type) == (row.op, row.type) and o.version != row.version]
        if row.status != "none" and others:
            why = f"{why}; " if why else ""
            why += f"cases fail in version {', '.join(others)}"
        grouped.setdefault((row.op, row.status, row.level, why), []).append(row)
    return tuple(
        Line(op, "; ".join(_of_types(some)), level, why or _failing(some))
        for (op, _, level, why), some in grouped.items()
    )


def _of_types(rows: Iterable[RowRecord]) -> Iterable[str]:
    """Versions by type: ``7, 22 in float16``."""
    grouped: dict[str, list[str]] = {}
    for row in rows:
        grouped.setdefault(row.type, []).append(str(row.version))
    return (f"{', '.join(versions)} in {kind}" for kind, versions in grouped.items())


def _failing(rows: Iterable[RowRecord]) -> str:
    count = sum(row.failing for row in rows)
    return f"{count} {'case fails' if count == 1 else 'cases fail'}" if count else ""


def _declined_lines(rows: Iterable[RowRecord]) -> Iterable[str]:
    """Operators with the versions and types that they do not run."""
    grouped: dict[str, list[RowRecord]] = {}
    for row in rows:
        grouped.setdefault(row.op, []).append(row)
    return (f"{op}: {'; '.join(_of_types(some))}" for op, some in grouped.items())


def _why(row: RowRecord) -> str:
    """In a few words why a row has no level, or none higher."""
    if row.status == "none":
        if row.lacks:
            return f"does not support {_listed(row.lacks)}"
        return "does not run some of what the lowest level requires"
    return f"does not support {_listed(row.lacks)}" if row.lacks else ""


_WORDS = {
    "layout1": "batch-first layout",
    "Y": "output Y",
    "Y_h": "output Y_h",
    "Y_c": "output Y_c",
    "alpha": "activation_alpha",
    "beta": "activation_beta",
    "symbolic": "open dimensions",
    "rerun": "repeated runs",
    "lengths": "sequence lengths",
}


def _listed(features: Iterable[str]) -> str:
    words = [_WORDS.get(feature, feature.replace("-", " ")) for feature in features]
    return ", ".join(words[:4]) + (f" and {len(words) - 4} more" if len(words) > 4 else "")


def _challenge(statement: StatementRecord) -> str:
    challenge = statement.challenge
    if not challenge.nonce:
        return "No fresh cases were asked for."
    return (
        f"The number {challenge.nonce} asked for {challenge.cases:,} cases that no list holds. If it was you who gave "
        f"it, after the product was fixed, nobody can have prepared them: onnxspec verify PACKAGE.zip --nonce "
        f"{challenge.nonce} confirms it. Otherwise the vendor may have known them."
    )


def _remarks(statement: StatementRecord) -> Iterable[str]:
    rows = statement.rows
    yield f"What the cases show together, of what the runtime has: {'; '.join(statement.coverage)}."
    if taken := sum(row.not_rejected for row in rows):
        yield f"{taken} models that the documents forbid were run instead of refused. That denies no level."
    if varying := sum(row.nondeterministic for row in rows):
        yield f"In {varying} cases repeated runs differ in some bits, each of them within its bounds."
    choices = [
        f"{op}: {', '.join(f'{question} {answer}' for question, answer in answers.items())}"
        for op, answers in statement.interpretations.items()
        if answers
    ]
    if choices:
        yield f"Where a document leaves something open, this runtime takes, for {'; '.join(choices)}."


def _environment(measured: MeasuredRecord) -> Iterable[tuple[str, str]]:
    description = measured.description
    yield "Runtime", f"{description.get('runtime', '')} {description.get('version', '')}".strip()
    for key, name in (("provider", "Provider"), ("device", "Device"), ("build", "Build")):
        if text := str(description.get(key) or ""):
            yield name, text[:200]
    if not measured.measured:
        yield "Measured", "nothing: this target's worker does not measure itself"
        return
    yield "System", measured.system
    yield "Processor", measured.processor
    for device in measured.devices:
        yield "On the bus", f"{device.id}, driver {device.driver or 'none'} {device.driver_version}".strip()
    for package in measured.packages:
        yield f"{package.name} {package.version}", package.sha256
