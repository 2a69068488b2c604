"""Statement of a package for other tools: an in-toto Statement, whose subjects are all other files of the package, each
with its SHA-256, and whose predicate is the claim about the product."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from ...reference.errors import UserError
from ..border.strict_json import MalformedJson, decode, encode
from .archive import Package
from .records import FORM, AttestationRecord, DigestRecord, StatementRecord, SubjectRecord

STATEMENT = "STATEMENT.json"
ENVELOPE = "STATEMENT.intoto.jsonl"
"""The same, signed: as in-toto names files of envelopes. Neither can be a subject of itself."""

IN_TOTO = "https://in-toto.io/Statement/v1"
PREDICATE = f"https://github.com/onnxspec/onnxspec/certificate/v{FORM}"
"""Type of the predicate, as a URI of its format."""

T = TypeVar("T")


def attested(statement: StatementRecord, files: Mapping[str, bytes]) -> bytes:
    """STATEMENT.json, about all the other files of a package."""
    subject = tuple(
        SubjectRecord(name=name, digest=DigestRecord(sha256=hashlib.sha256(files[name]).hexdigest()))
        for name in sorted(files.keys() - {STATEMENT, ENVELOPE})
    )
    return as_json(
        AttestationRecord(type=IN_TOTO, subject=subject, predicate_type=PREDICATE, predicate=statement),
    )


def as_json(record: msgspec.Struct) -> bytes:
    """Return a record as files of a package hold it."""
    return encode(record, indent=1).encode("ascii") + b"\n"


def attestation_of(package: Package) -> AttestationRecord:
    """Return the statement of a package. Raise UserError if there is none, or one in another format."""
    record = record_in(package, STATEMENT, AttestationRecord)
    if (record.type, record.predicate_type, record.predicate.form) != (IN_TOTO, PREDICATE, FORM):
        raise UserError(f"{package.path}: {STATEMENT}: of the type {record.predicate_type[:80]!a}, not {PREDICATE!a}")
    return record


def record_in(package: Package, name: str, kind: type[T]) -> T:
    """Return the record of a file of a package. Raise UserError."""
    try:
        return decode(package.content(name), kind)
    except MalformedJson as error:
        raise UserError(f"{package.path}: {name}: {error}") from None


def subject_differences(package: Package, attestation: AttestationRecord) -> Iterator[tuple[str, str, str]]:
    """Yield files of a package that differ from the statement: (path, stated digest, actual one)."""
    stated: dict[str, Any] = {subject.name: subject.digest.sha256 for subject in attestation.subject}
    there = {
        name: hashlib.sha256(package.content(name)).hexdigest()
        for name in package.names
        if name not in (STATEMENT, ENVELOPE)
    }
    for name in sorted(stated.keys() | there.keys()):
        if stated.get(name) != there.get(name):
            yield name, stated.get(name, "not among its subjects"), there.get(name, "missing")
    if [subject.name for subject in attestation.subject] != sorted(stated):
        yield STATEMENT, "subjects in another order, or one twice", "sorted, each once"
