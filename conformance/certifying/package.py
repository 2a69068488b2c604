"""Package file: a ZIP archive whose members are checked by name, number and size before any of them is unpacked.

Its statement is an in-toto Statement; the subjects are all other files, each with its SHA-256.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from ...reference.errors import UserError
from ..border.strict_json import MalformedJson, decode, encode
from .records import FORM, AttestationRecord, DigestRecord, StatementRecord, SubjectRecord

STATEMENT = "STATEMENT.json"
ENVELOPE = "STATEMENT.intoto.jsonl"
"""The signed statement, with in-toto's file name for envelopes. Neither file can be a subject of itself."""

IN_TOTO = "https://in-toto.io/Statement/v1"
PREDICATE = f"https://github.com/onnxspec/onnxspec/certificate/v{FORM}"
"""Type of the predicate, as a URI of its format."""

MOST_FILES = 4000
MOST_BYTES = 1 << 30
"""Maximum size of all files of a package; `full` of onnxruntime takes 80 MB."""
MOST_RATIO = 1000
"""Maximum ratio of a file's size to its packed size, beyond the first MiB.

results.jsonl of a target that refuses everything shrinks to a 60th, zeros to a thousandth.
"""

_NAME = re.compile(r"[A-Za-z0-9_+-][A-Za-z0-9_.,+-]{0,150}(/[A-Za-z0-9_+-][A-Za-z0-9_.,+-]{0,150}){0,5}")
_DAY = (1980, 1, 1, 0, 0, 0)  # the first day that a ZIP archive can store: equal content gives equal bytes
_PLAIN_FILE = 0o100644 << 16


@dataclass(frozen=True)
class Package:
    """The files of a package, unpacked into a folder; `sha256` is the digest of the archive."""

    path: Path
    folder: Path
    names: tuple[str, ...]
    sha256: str

    def content(self, name: str) -> bytes:
        """Return the content of a file. Raise UserError if it is missing."""
        if name not in self.names:
            raise UserError(f"{self.path}: {name} is missing")
        return (self.folder / name).read_bytes()


def write_package(path: Path, files: Mapping[str, bytes]) -> None:
    """Write files, by their paths in the package. Raise OSError."""
    unfinished = path.with_name(f"{path.name}.new")
    try:
        with zipfile.ZipFile(unfinished, "w") as archive:
            for name in sorted(files):
                entry = zipfile.ZipInfo(name, _DAY)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = _PLAIN_FILE
                entry.create_system = 3
                archive.writestr(entry, files[name], compresslevel=9)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def read_package(path: Path, folder: Path) -> Package:
    """Unpack a package into an empty folder, after its directory has been checked.

    Raise UserError; raise OSError if the file cannot be read or the folder cannot be written.
    """
    if path.stat().st_size > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB")
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _bound(path, entries)
            for entry in entries:
                to = folder / entry.filename
                to.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(entry) as source, to.open("xb") as target:
                    shutil.copyfileobj(source, target)  # zipfile yields no more bytes than the directory declares
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, NotImplementedError, RuntimeError) as error:
        raise UserError(f"{path}: no zip that can be read: {error}") from None
    names = tuple(entry.filename for entry in entries)
    return Package(path, folder, names, hashlib.sha256(path.read_bytes()).hexdigest())


def _bound(path: Path, entries: Sequence[zipfile.ZipInfo]) -> None:
    """Raise UserError for a directory that exceeds the limits, or for names that lead elsewhere."""
    if not 0 < len(entries) <= MOST_FILES:
        raise UserError(f"{path}: holds {len(entries):,} files, and may hold from one to {MOST_FILES:,}")
    if min(entry.header_offset for entry in entries):
        raise UserError(f"{path}: holds other bytes before the archive")
    for entry in entries:
        name = ascii(entry.filename[:100])
        if not _NAME.fullmatch(entry.filename):
            raise UserError(f"{path}: no file of a package is called {name}")
        if entry.file_size > (1 << 20) + MOST_RATIO * entry.compress_size:
            raise UserError(f"{path}: {name} grows to more than {MOST_RATIO} times its size")
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES >> 20} MiB when it is unpacked")


def attested(statement: StatementRecord, files: Mapping[str, bytes]) -> bytes:
    """Return STATEMENT.json, with all other files of a package as subjects."""
    subject = tuple(
        SubjectRecord(name=name, digest=DigestRecord(sha256=hashlib.sha256(files[name]).hexdigest()))
        for name in sorted(files.keys() - {STATEMENT, ENVELOPE})
    )
    return as_json(
        AttestationRecord(type=IN_TOTO, subject=subject, predicate_type=PREDICATE, predicate=statement),
    )


def as_json(record: msgspec.Struct) -> bytes:
    """Return a record in the form of a package's files."""
    return encode(record, indent=1).encode("ascii") + b"\n"


def attestation_of(package: Package) -> AttestationRecord:
    """Return the statement of a package. Raise UserError if there is none, or one in another format."""
    try:
        record = decode(package.content(STATEMENT), AttestationRecord)
    except MalformedJson as error:
        raise UserError(f"{package.path}: {STATEMENT}: {error}") from None
    if (record.type, record.predicate_type, record.predicate.form) != (IN_TOTO, PREDICATE, FORM):
        raise UserError(f"{package.path}: {STATEMENT}: of the type {record.predicate_type[:80]!a}, not {PREDICATE!a}")
    return record


def subject_differences(package: Package, attestation: AttestationRecord) -> Iterator[tuple[str, str, str]]:
    """Yield files of a package that differ from the statement: (path, stated digest, actual one)."""
    stated = {subject.name: subject.digest.sha256 for subject in attestation.subject}
    actual = {
        name: hashlib.sha256(package.content(name)).hexdigest()
        for name in package.names
        if name not in (STATEMENT, ENVELOPE)
    }
    for name in sorted(stated.keys() | actual.keys()):
        if stated.get(name) != actual.get(name):
            yield name, stated.get(name, "not among its subjects"), actual.get(name, "missing")
    if [subject.name for subject in attestation.subject] != sorted(stated):
        yield STATEMENT, "subjects in another order, or one twice", "sorted, each once"
