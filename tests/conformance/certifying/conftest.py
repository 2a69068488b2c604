"""A small certified run for all tests here, and edits of packages and of the runs that they are made from."""

from __future__ import annotations

import datetime
import json
import re
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from onnxspec.conformance.border.strict_json import decode
from onnxspec.conformance.certifying.package import attested, read_package, write_package
from onnxspec.conformance.certifying.packing import Claim, files_of
from onnxspec.conformance.certifying.records import AttestationRecord
from onnxspec.conformance.certifying.replay import replay
from onnxspec.conformance.certifying.verifying import Verification, verify
from onnxspec.conformance.probes.selection import Selection, select_probes
from onnxspec.conformance.results.writer import RunWriter
from onnxspec.conformance.running.engine import execute
from onnxspec.conformance.running.run import Plan
from onnxspec.conformance.targets.target import parse_target

DOCUMENT = Path(__file__).parents[3] / "docs" / "certification.md"
Files = dict[str, bytes]
Change = Callable[[Any], Any]
"""Change of a file's content: lines of JSON, a record or bytes. It returns the new content, or changes the old one."""

TODAY = datetime.date.today()

WAIVED = f"""
[[waiver]]
op = "RNN"
clause = "rnn.equations"
reason = "known, and mended in 2.2"
owner = "Jo Doe"
expires = {TODAY + datetime.timedelta(days=30)}
""".encode()

RESULTS, RUN, WAIVERS = "run/results.jsonl", "run/run.json", "waivers.toml"
STATEMENT = "STATEMENT.json"


def packed(folder: Path, signer: str = "") -> Files:
    """Return the files of a package of a run folder, without an envelope."""
    return files_of(replay(folder), Claim("Runtime 2.1", "Example Ltd", TODAY, WAIVED, signer))


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
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return path


def edited(files: Files, name: str, change: Change) -> Files:
    """Return the files with a change of one of them, or of their dictionary if there is no name."""
    if not name:
        new = dict(files)
        change(new)
        return new
    if name.endswith(".jsonl"):
        rows: list[dict[str, Any]] = [json.loads(line) for line in files[name].splitlines()]
        rows = change(rows) or rows
        content = "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()
    elif name.endswith(".json"):
        record = json.loads(files[name])
        change(record)
        content = json.dumps(record, indent=1).encode() + b"\n"
    else:
        content = change(files[name])
    return {**files, name: content}


def forged(folder: Path, to: Path, name: str, change: Change) -> Path:
    """Copy a run folder with a change of a file; `name` is the file's name in a package."""
    shutil.copytree(folder, to)
    path = to / Path(name).name
    path.write_bytes(edited({name: path.read_bytes()}, name, change)[name])
    return to


def claimed(**values: str) -> Change:
    """Return an edit of the claims about the product."""
    return lambda statement: statement["predicate"].update(values)


def documented(found: str) -> dict[str, str]:
    """Return the forgeries that docs/certification.md calls found (yes, trial, no), each with who finds it."""
    below = DOCUMENT.read_text(encoding="utf-8").split("| forged, with all that follows mended | found | by |", 1)[1]
    rows = re.findall(r"^\| (.+?) \| (yes|trial|no) \| `?(.*?)`? \|$", below, re.MULTILINE)
    return {name: by for name, verdict, by in rows if verdict == found}


def recorded_run(folder: Path, selection: Selection, *, fills: bool = False) -> Path:
    """Run a selection on onnxruntime, with a record, and return the folder."""
    target = parse_target("onnxruntime")
    probes = tuple(select_probes(selection, target.operators))
    plan = Plan(selection, probes, (target,), record=True, shrinks=False, expected=False, fills=fills)
    with RunWriter(folder) as journal:
        execute(plan, journal)
    return folder


@pytest.fixture(scope="session")
def certified_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded run of one operator version in one type, with random cases."""
    folder = tmp_path_factory.mktemp("certified") / "run"
    return recorded_run(folder, Selection("smoke-nonce-17", ("RNN",), (7,), ("float32",)))


@pytest.fixture(scope="session")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a recorded run of a whole operator with added cases, which a certificate may rest on."""
    return recorded_run(tmp_path_factory.mktemp("whole") / "run", Selection("core-nonce-4711", ("RNN",)), fills=True)


@pytest.fixture(scope="session")
def certified_files(certified_run: Path) -> Files:
    """Return the files of the run's package."""
    return packed(certified_run)
