"""Packages: their content, and the verification of an honest one."""

from __future__ import annotations

import zipfile
from pathlib import Path

import msgspec

from onnxspec.conformance.certifying.records import DeviceRecord

from .packages import Files, mended, packed, verified


def test_an_honest_package_is_borne_out(certified_files: Files, tmp_path: Path) -> None:
    outcome = verified(mended(tmp_path / "p.zip", certified_files), nonce="17")
    assert not outcome.differs, [check.differs for check in outcome.checks.values()]
    with zipfile.ZipFile(tmp_path / "p.zip") as archive:
        names = archive.namelist()
    assert names == sorted(names)
    assert names[:3] == ["ENVIRONMENT.json", "STATEMENT.json", "SUITE.json"]
    assert not any(name.endswith(".html") for name in names)


def test_equal_runs_are_equal_packages(certified_run: Path, certified_files: Files, tmp_path: Path) -> None:
    again = packed(certified_run)
    assert again == certified_files
    assert mended(tmp_path / "a.zip", again).read_bytes() == mended(tmp_path / "b.zip", certified_files).read_bytes()


def test_a_device_keeps_its_class() -> None:
    measured = {"place": "0000:01:00.0", "class": "0x120000", "id": "1022:1502", "driver": "", "driver_version": ""}
    assert msgspec.to_builtins(msgspec.convert(measured, DeviceRecord)) == measured
