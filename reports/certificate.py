"""Certificate of a package: one HTML page for the buyers of a runtime, made only from the statements of the package."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..cases.specs.family import family_of
from ..cases.specs.features import WORDS
from ..cases.specs.quantizing import QUANTIZED
from ..conformance.certifying.records import MeasuredRecord, RowRecord, StatementRecord, SuiteRecord, WaiverRecord
from ..conformance.targets.target import ACCURACY
from ..conformance.text import listed
from ..reference.numbers.accuracy import ACCURACY_CLASSES, accuracy_class
from .page import render_certificate, write_report

_PLACEMENT = {
    "not needed": "This runtime has one execution provider, so no proof of placement is needed.",
    "record": "For each of {cases:,} cases the runtime's own record of assignment shows that the operator was given to "
    "{provider}.",
    "profile": "For each of {cases:,} cases the runtime's own profile shows that the operator ran on {provider}.",
    "mixed": "For each of {cases:,} cases the runtime's record of assignment or its profile shows that the operator "
    "ran on {provider}.",
    "none": "Nothing shows that an operator ran on {provider}.",
}


_MOST_WORDS = 4  # features that a line names one by one

_BARE = re.compile(r"[A-Za-z0-9_-]+")  # keys that TOML takes without quotes


@dataclass(frozen=True)
class Line:
    """Rows of a statement with the same text, as one line: their operators, versions and types."""

    level: str
    rows: tuple[str, ...]
    beyond: str


@dataclass(frozen=True)
class Repeating:
    """Commands that repeat the measurement on the reader's device.

    ``table`` is the target's TOML table, empty where the target's name is enough.
    """

    table: str
    commands: tuple[str, ...]


@dataclass(frozen=True)
class Certificate:
    """The page's content."""

    statement: StatementRecord
    title: str
    lead: str
    certified: tuple[Line, ...]
    excepted: tuple[Line, ...]
    others: tuple[Line, ...]
    nowhere: tuple[str, ...]
    waivers: tuple[tuple[int, WaiverRecord, int], ...]
    placement: str
    challenge: str
    signature: str
    remarks: tuple[str, ...]
    verifying: str
    given: str
    repeating: Repeating
    environment: tuple[tuple[str, str], ...]
    suite: tuple[tuple[str, str], ...]
    levels: tuple[tuple[str, str], ...]


def write_certificate(
    out: Path, run: Path, statement: StatementRecord, suite: SuiteRecord, measured: MeasuredRecord
) -> None:
    """Write ``out``/certificate.html, the page of a package, and the report of its run beside it. Raise OSError."""
    write_report([run], out / "report", warn=lambda line: None)
    text = render_certificate(certificate_of(statement, suite, measured))
    (out / "certificate.html").write_bytes(text.encode("utf-8", errors="backslashreplace"))


def certificate_of(statement: StatementRecord, suite: SuiteRecord, measured: MeasuredRecord) -> Certificate:
    """Return the content of a statement's page."""
    rows = statement.rows
    certified = [row for row in rows if row.status == "certified"]
    excepted = [row for row in rows if row.status == "exceptions"]
    uncertified = [row for row in rows if row.status == "none"]
    covered: Counter[int] = Counter()
    for row in rows:
        covered.update({exception.waiver: exception.cases for exception in row.exceptions})
    trial = statement.kind != "certificate"
    return Certificate(
        statement=statement,
        title="Trial" if trial else "Certificate of conformance",
        lead=_lead(statement, trial) + _quantized(statement, measured),
        certified=_lines(certified, _beyond),
        excepted=_lines(excepted, _beyond),
        others=_lines([row for row in uncertified if not _declined(row)], _why),
        nowhere=tuple(_named([row for row in uncertified if _declined(row)])),
        waivers=tuple((n, waiver, covered[n]) for n, waiver in enumerate(statement.waivers, 1)),
        placement=_PLACEMENT[statement.placement.proof].format(
            cases=statement.placement.cases, provider=statement.placement.provider or "the provider"
        ),
        challenge=_challenge(statement),
        signature=_signature(statement),
        remarks=tuple(_remarks(statement, measured)),
        verifying=_verifying(statement),
        given=_given(statement),
        repeating=_repeating(statement, suite, measured),
        environment=tuple(_environment(measured)),
        suite=(
            ("Suite", f"onnxspec {suite.onnxspec}"),
            ("Sources of the suite", suite.sources),
            ("Profile", suite.profile),
            ("Cases", _digest(suite.cases)),
        ),
        levels=tuple(_levels_of((*certified, *excepted)).items()),
    )


def _digest(digests: Mapping[str, str]) -> str:
    """Return one digest over several named digests."""
    return hashlib.sha256("\n".join(f"{name} {digests[name]}" for name in sorted(digests)).encode()).hexdigest()


def _lead(statement: StatementRecord, trial: bool) -> str:
    if trial:
        return f"This package certifies nothing: {'; '.join(statement.trial_because)}."
    rows = statement.rows
    certified = sum(row.status == "certified" for row in rows)
    excepted = sum(row.status == "exceptions" for row in rows)
    total = f"Of {len(rows)} combinations of operator version and number type"
    if not certified:
        more = f"{excepted} {'reaches' if excepted == 1 else 'reach'} one with exceptions" if excepted else ""
        return f"{total} none reaches a level{'; ' if more else ''}{more}. {_totals(rows)}"
    also = f", {excepted} more with exceptions" if excepted else ""
    return f"{total}, {certified} {'is' if certified == 1 else 'are'} certified{also}. {_totals(rows)}"


def _totals(rows: Iterable[RowRecord]) -> str:
    """Return the number of cases by verdict, over all rows: ``Of 5,310 test cases, 5,204 pass, 106 unsupported.``"""
    counts = sum((Counter(row.verdicts) for row in rows), Counter[str]())
    verdicts = ", ".join(f"{count:,} {verdict}" for verdict, count in counts.most_common())
    return f"Of {counts.total():,} test cases: {verdicts}."


def _quantized(statement: StatementRecord, measured: MeasuredRecord) -> str:
    """Return a sentence on certified quantized nodes; empty for other nodes."""
    if measured.wrap not in QUANTIZED:
        return ""
    type_name = measured.wrap.rpartition("-")[2]
    steps = accuracy_class(statement.accuracy).steps if statement.accuracy in ACCURACY_CLASSES else 0
    off = (
        f", and outputs may be {steps} level{'' if steps == 1 else 's'} off (class {statement.accuracy})"
        if steps
        else ""
    )
    sign, bits = ("uint" if type_name[0] == "u" else "int"), type_name[1:]
    return f" This is said of quantized nodes: each tensor but sequence_lens is held as levels of {sign}{bits}{off}."


def _levels_of(rows: Iterable[RowRecord]) -> dict[str, str]:
    """Return the levels that are reached, each with its description, narrowest first."""
    descriptions: dict[str, str] = {}
    for row in rows:
        # Include the narrower levels: the description of a level refers to them.
        descriptions |= {
            level.name: level.about for level in family_of(row.op).levels(row.op, row.version)[: _height(row) + 1]
        }
    return descriptions


def _declined(row: RowRecord) -> bool:
    """Return whether the target ran no case of a row."""
    return not set(row.verdicts) - {"unsupported", "fallback"}


def _lines(rows: Iterable[RowRecord], text_of: Callable[[RowRecord], str]) -> tuple[Line, ...]:
    """Return rows with the same text as one line each, the highest level first."""
    grouped: dict[tuple[str, str], list[RowRecord]] = {}
    for row in rows:
        grouped.setdefault((row.level, text_of(row)), []).append(row)
    ordered = sorted(grouped.items(), key=lambda each: -_height(each[1][0]))
    return tuple(Line(level, tuple(_named(members)), text) for (level, text), members in ordered)


def _height(row: RowRecord) -> int:
    """Return the index of a row's level among the levels of its operator; -1 without a level."""
    names = [level.name for level in family_of(row.op).levels(row.op, row.version)]
    return names.index(row.level) if row.level in names else -1


def _named(rows: Iterable[RowRecord]) -> Iterator[str]:
    """Yield rows by operator: ``LSTM 7 and 14 in float16 and float32, 22 in float32``."""
    by_op: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        by_op.setdefault(row.op, {}).setdefault(row.type, []).append(str(row.version))
    for op, by_type in by_op.items():
        by_versions: dict[tuple[str, ...], list[str]] = {}
        for type_name, versions in by_type.items():
            by_versions.setdefault(tuple(versions), []).append(type_name)
        yield f"{op} {'; '.join(f'{listed(versions)} in {listed(types)}' for versions, types in by_versions.items())}"


def _beyond(row: RowRecord) -> str:
    """Return the requirements of higher levels that a row does not meet."""
    return "; ".join(_missing(row))


def _why(row: RowRecord) -> str:
    """Return why a row has no level, from its statement, without the names of cases."""
    kept = [level.level for level in row.levels if level.status != "denied"]
    if kept:
        return f"only a trial, whose cases would reach {kept[-1]}"
    lowest = row.levels[0]
    return f"{lowest.level}: {'; '.join(reason.rpartition(': ')[0] or reason for reason in lowest.against)}"


def _missing(row: RowRecord) -> Iterator[str]:
    """Yield the features that a level requires and a row lacks: unsupported, or not shown by any passing case."""
    if row.lacks:
        yield f"does not support {_words(row.lacks)}"
    if row.unshown:
        yield f"not shown: {_words(row.unshown)}"


def _words(features: Iterable[str]) -> str:
    names = [WORDS.get(feature, feature) for feature in features]
    return listed(names) if len(names) <= _MOST_WORDS else f"{', '.join(names[:3])} and {len(names) - 3} more"


def _signature(statement: StatementRecord) -> str:
    if not statement.signer:
        return "This package is unsigned: these statements cannot be traced to the vendor."
    return (
        f"This package claims to be signed with the key {statement.signer}; "
        "onnxspec verify PACKAGE.zip --signer PUB.pem checks it."
    )


def _verifying(statement: StatementRecord) -> str:
    """Return the command that verifies the package, with placeholders for the nonce and the key."""
    number = " --nonce NUMBER" if statement.challenge.nonce else ""
    return f"onnxspec verify PACKAGE.zip{number}{' --signer PUB.pem' if statement.signer else ''}"


def _given(statement: StatementRecord) -> str:
    """Return a sentence on the source of the nonce and the key in the verify command."""
    number = "the number is the one that you have given" if statement.challenge.nonce else ""
    key = "the key is the one that you have from the vendor" if statement.signer else ""
    text = ", and ".join(text for text in (number, key) if text)
    return f" {text[:1].upper()}{text[1:]}." if text else ""


def _repeating(statement: StatementRecord, suite: SuiteRecord, measured: MeasuredRecord) -> Repeating:
    name, table = measured.adapter, ""
    if measured.options or statement.accuracy != ACCURACY:
        settings = {"adapter": name, "accuracy": statement.accuracy, **dict(_flat("options", measured.options))}
        name, table = "device", "\n".join(["[device]", *(f"{key} = {json.dumps(v)}" for key, v in settings.items())])
    targets_option = "--targets-file targets.toml " if table else ""
    target = f"{name}+{measured.wrap}" if measured.wrap else name
    ops = " ".join(f"--op {op}" for op in dict.fromkeys(row.op for row in statement.rows))
    profile = "" if suite.profile == "core" else f"--profile {suite.profile} "
    return Repeating(
        table,
        (
            f"python -m pip install .    # in a clone of onnxspec {suite.onnxspec}: it is on no package index yet",
            f"onnxspec run {targets_option}--target {shlex.quote(target)} {ops} {profile}--nonce NUMBER --out mine",
            f"onnxspec certify mine --product {shlex.quote(statement.product)} --vendor me --out mine.zip",
            "onnxspec verify mine.zip --nonce NUMBER",
        ),
    )


def _flat(prefix: str, options: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield options as pairs of TOML key and value; nested options have dotted keys."""
    for key, value in options.items():
        name = f"{prefix}.{key if _BARE.fullmatch(key) else json.dumps(key)}"
        if isinstance(value, dict):
            yield from _flat(name, value)
        else:
            yield name, value


def _challenge(statement: StatementRecord) -> str:
    challenge = statement.challenge
    if not challenge.nonce:
        return "No unpublished test cases were generated."
    return (
        f"The auditor's number {challenge.nonce} generated {challenge.cases:,} unpublished test cases. If you chose it "
        f"after the product was finished, the vendor did not know them: onnxspec verify PACKAGE.zip --nonce "
        f"{challenge.nonce} confirms it."
    )


def _remarks(statement: StatementRecord, measured: MeasuredRecord) -> Iterable[str]:
    rows = statement.rows
    if measured.wrap in QUANTIZED:
        yield f"Every node was between DequantizeLinear and QuantizeLinear ({measured.wrap})."
    elif measured.wrap:
        yield f"Every node was embedded in a larger graph ({measured.wrap})."
    if taken := sum(row.not_rejected for row in rows):
        yield f"{taken} invalid models were accepted. That denies no level."
    if varying := sum(row.nondeterministic for row in rows):
        yield f"In {varying} cases repeated runs differ in some bits, within the error bounds."
    for type_name, digits in {row.type: row.leaning for row in rows if row.leaning}.items():
        yield f"In {type_name} errors are biased: they leave {digits}."
    choices = [
        f"{op}: {', '.join(f'{answer} ({question})' for question, answer in answers.items())}"
        for op, answers in statement.interpretations.items()
        if answers
    ]
    if choices:
        yield (f"Interpretations used: {'; '.join(choices)}. onnxspec clauses explains these names.")


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
