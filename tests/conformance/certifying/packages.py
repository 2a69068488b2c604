"""A small package, and helpers that tamper with it."""

from __future__ import annotations

import datetime
import json
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import structs

from onnxspec.conformance.border.strict_json import decode
from onnxspec.conformance.certifying.package import attested, read_package, write_package
from onnxspec.conformance.certifying.packing import Claim, files_of
from onnxspec.conformance.certifying.records import AttestationRecord
from onnxspec.conformance.certifying.replay import replay
from onnxspec.conformance.certifying.verifying import Verification, verify

Files = dict[str, bytes]

TODAY = datetime.date.today()

WAIVERS = f"""
[[waiver]]
op = "RNN"
clause = "rnn.equations"
reason = "known, and mended in 2.2"
owner = "Jo Doe"
expires = {TODAY + datetime.timedelta(days=30)}
""".encode()

SIGNATURES = (
    "something edited after it was signed",
    "the envelope left out",
    "an envelope in a package that says that it is unsigned",
    "the id of the key that signed",
    "a signature by nobody",
    "an envelope without a signature",
)
"""Signatures that are not the vendor's, as the documentation names them."""

RESULTS, RUN = "run/results.jsonl", "run/run.json"
STATEMENT, ENVIRONMENT, SUITE = "STATEMENT.json", "ENVIRONMENT.json", "SUITE.json"


def packed(folder: Path, waivers: bytes = WAIVERS, day: datetime.date = TODAY, signer: str = "") -> Files:
    """Return the files of a package of a run folder, without an envelope."""
    return files_of(replay(folder), Claim("Runtime 2.1", "Example Ltd", day, waivers, signer))


def verified(path: Path, today: datetime.date = TODAY, nonce: str = "", signer: Any = None) -> Verification:
    """Verify a package and return the result."""
    with tempfile.TemporaryDirectory() as folder:
        return verify(read_package(path, Path(folder)), today, nonce, signer)


def attested_files(files: Mapping[str, bytes], **claims: str) -> Files:
    """Return the files with a statement about exactly these files, and with other claims where given."""
    statement = decode(files[STATEMENT], AttestationRecord).predicate
    return {**files, STATEMENT: attested(structs.replace(statement, **claims), files)}


def mended(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write a well-formed package of these files with a statement about exactly them."""
    write_package(path, attested_files(files))
    return path


def raw(path: Path, files: Mapping[str, bytes]) -> Path:
    """Write a zip of these files without changes."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, content, zipfile.ZIP_DEFLATED)
    return path


def record(files: Files, name: str, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit a JSON file."""
    value = json.loads(files[name])
    edit(value)
    files[name] = json.dumps(value, indent=1).encode() + b"\n"


def statement(files: Files, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit the claims about the product."""
    record(files, STATEMENT, lambda whole: edit(whole["predicate"]))


def lines(files: Files, name: str, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
    """Edit the lines of a file."""
    rows = edit([json.loads(line) for line in files[name].splitlines()])
    files[name] = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def forged(folder: Path, to: Path, edit: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> Path:
    """Copy a run folder with other lines in its results.jsonl."""
    shutil.copytree(folder, to)
    rows = edit([json.loads(line) for line in (folder / "results.jsonl").read_bytes().splitlines()])
    (to / "results.jsonl").write_text(
        "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows), encoding="ascii"
    )
    return to


@lru_cache(maxsize=1)
def bits_name(names: tuple[str, ...]) -> str:
    """Return the name of the file of outputs."""
    return next(name for name in names if name.endswith(".bits"))
