"""Package files: their content, the verification of honest ones, and archives that are not unpacked."""

from __future__ import annotations

import datetime
import json
import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from onnxspec.conformance.certifying.package import read_package
from onnxspec.reference.errors import UserError

from .conftest import (
    RUN,
    STATEMENT,
    TODAY,
    Change,
    Files,
    attested_files,
    claimed,
    edited,
    mended,
    packed,
    raw,
    verified,
)

PUBLISHED = Path(__file__).parents[3] / "docs" / "schema" / "certificate"
DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("change", "options", "differing"),
    [
        (claimed(), {}, []),
        (claimed(), {"nonce": "17"}, []),
        (claimed(), {"nonce": "4711"}, ["nonce"]),
        # Only a signature shows who gave the product its name.
        (claimed(product="Runtime 9.9"), {}, []),
        (claimed(), {"today": TODAY + 31 * DAY}, ["waivers"]),
        (claimed(), {"today": TODAY - DAY}, ["levels and statement"]),
    ],
    ids=["honest", "nonce", "other nonce", "product", "expired waiver", "day to come"],
)
def test_what_an_auditor_knows_beside_the_package(
    change: Change, options: dict[str, Any], differing: list[str], certified_files: Files, tmp_path: Path
) -> None:
    outcome = verified(mended(tmp_path / "p.zip", edited(certified_files, STATEMENT, change)), **options)
    assert outcome.differing == differing
    assert outcome.checks["signature"].mark == "unsigned"


def test_equal_runs_are_equal_packages_of_sorted_files(
    certified_run: Path, certified_files: Files, tmp_path: Path
) -> None:
    again = packed(certified_run)
    assert again == certified_files
    assert mended(tmp_path / "a.zip", again).read_bytes() == mended(tmp_path / "b.zip", certified_files).read_bytes()
    with zipfile.ZipFile(tmp_path / "a.zip") as archive:
        names = archive.namelist()
    assert names == sorted(names)
    assert names[0] == STATEMENT
    assert not any(name.endswith(".html") for name in names)


def test_a_statement_that_is_written_otherwise_is_found(certified_files: Files, tmp_path: Path) -> None:
    path = raw(tmp_path / "p.zip", {**certified_files, STATEMENT: certified_files[STATEMENT] + b"\n"})
    assert verified(path).differing == ["levels and statement"]


def test_the_statement_fits_the_published_schema(certified_files: Files) -> None:
    schema: Any = json.loads((PUBLISHED / "statement.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(json.loads(certified_files[STATEMENT]))


def test_the_environment_is_measured_in_the_worker(certified_files: Files) -> None:
    measured = json.loads(certified_files[RUN])["targets"][0]["description"]["measured"]
    packages = {package["name"]: package for package in measured["packages"]}
    for name in ("onnxruntime", "numpy"):
        assert len(packages[name]["sha256"]) == 64
        assert packages[name]["files"] > 10


def test_a_byte_changed_is_found_or_changes_no_file(certified_files: Files, tmp_path: Path) -> None:
    content = mended(tmp_path / "p.zip", certified_files).read_bytes()
    files = attested_files(certified_files)
    directory = content.index(b"PK\1\2")
    spread = [*range(0, 30), *range(31, directory, directory // 25), *range(directory, len(content), 17)]
    for number, at in enumerate(spread):
        (tmp_path / "q.zip").write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            package = read_package(tmp_path / "q.zip", tmp_path / f"q{number}")
        except UserError:
            continue
        read = {name: package.content(name) for name in package.names}
        assert read == files or verified(tmp_path / "q.zip").differing, at


@pytest.mark.parametrize(
    "name",
    ["../outside", "/etc/passwd", "a\\b", "C:evil", "a/../../b", "folder/", "a" * 400, "line\nbreak"],
)
def test_paths_that_lead_elsewhere_are_refused(name: str, tmp_path: Path) -> None:
    info = zipfile.ZipInfo("plain")
    info.filename = name
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr(info, b"x")
    with pytest.raises(UserError, match="no file of a package is called"):
        verified(tmp_path / "p.zip")
    assert not (tmp_path.parent / "outside").exists()


@pytest.mark.parametrize("names", [("a", "a"), ("a", "a/b")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_stands_twice_is_not_unpacked(names: tuple[str, str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        for name in names:
            archive.writestr(name, b"1")
    with pytest.raises(OSError, match="exists"):
        verified(tmp_path / "p.zip")


def test_a_link_is_unpacked_as_a_file(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(tmp_path / "p.zip", "w") as archive:
        archive.writestr(link, b"/etc/passwd")
    read_package(tmp_path / "p.zip", tmp_path / "to")
    assert not (tmp_path / "to" / "link").is_symlink()


def test_bombs_are_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="times its size"):
        read_package(raw(tmp_path / "bomb.zip", {"a": bytes(64 << 20)}), tmp_path / "to")
    path = raw(tmp_path / "p.zip", {"a": b"x" * 1000})
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\1\2")
    for declared, reason in ((3 << 30, "times its size"), (10, "no zip")):
        for offset in (22, directory + 24):  # in the local header and in the central directory
            content[offset : offset + 4] = struct.pack("<I", declared)
        path.write_bytes(content)
        with pytest.raises(UserError, match=reason):
            read_package(path, tmp_path / "to")


def test_what_is_no_package_is_said(tmp_path: Path, certified_files: Files) -> None:
    path = raw(tmp_path / "p.zip", {"a": b"x"})
    for content, reason in (
        (path.read_bytes(), r"STATEMENT\.json is missing"),
        (b"#!/bin/sh\n" + path.read_bytes(), "before the archive"),
        (raw(path, {**certified_files, STATEMENT: b"[]"}).read_bytes(), r"STATEMENT\.json: "),
        (b"certificate", "no zip"),
    ):
        path.write_bytes(content)
        with pytest.raises(UserError, match=reason):
            verified(path)
