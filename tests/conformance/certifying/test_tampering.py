"""Tampered packages: docs/certification.md names the check that finds each class of forgery, or admits that none
does."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from onnxspec.conformance.certifying.package import ENVELOPE, read_package
from onnxspec.reference.errors import UserError

from .packages import (
    ENVIRONMENT,
    RESULTS,
    RUN,
    STATEMENT,
    SUITE,
    TODAY,
    Files,
    bits_name,
    lines,
    mended,
    raw,
    record,
    statement,
    verified,
)
from .packages import WAIVERS as WAIVED

Rows = list[dict[str, Any]]


def of_results(edit: Callable[[Rows, str], Rows]) -> Callable[[Files], None]:
    """Return the edit of a package by one of its results; the text is the first case that passes with numbers."""
    return lambda files: lines(files, RESULTS, lambda rows: edit(rows, first_passing(rows)))


def first_passing(rows: Rows) -> str:
    """Return the first case that passes with judged numbers."""
    return str(next(row["case"] for row in rows if row.get("verdict") == "pass" and row["judged"] > 20))


def first_unsupported(rows: Rows) -> dict[str, Any]:
    return next(row for row in rows if row.get("verdict") == "unsupported")


def recorded(rows: Rows, case: str) -> Rows:
    return [row for row in rows if row["record"] == "recorded" and row["case"] == case]


@of_results
def case_removed(rows: Rows, case: str) -> Rows:
    return [row for row in rows if row.get("case") != case]


@of_results
def case_doubled(rows: Rows, case: str) -> Rows:
    return [*rows, *(row for row in rows if row.get("case") == case)]


@of_results
def case_replaced(rows: Rows, case: str) -> Rows:
    other = next(row["case"] for row in rows[::-1] if row["record"] == "result" and row["case"] != case)
    for row in recorded(rows, other):
        row["jobs"] = recorded(rows, case)[0]["jobs"]
    return rows


@of_results
def number_of_a_result(rows: Rows, case: str) -> Rows:
    next(row for row in rows if row["record"] == "result" and row["case"] == case).update(worst=0.001)
    return rows


@of_results
def reported_verdict(rows: Rows, _: str) -> Rows:
    first_unsupported(rows).update(verdict="pass", reason=None)
    return rows


def output_changed(files: Files) -> None:
    name = bits_name(tuple(files))
    content = bytearray(files[name])
    content[0] ^= 1
    files[name] = bytes(content)


def output_changed_with_its_digest(files: Files, flip: int = 0x40000000) -> None:
    """Change the first number of a passing case, in every tensor that has it, with matching digests."""
    name = bits_name(tuple(files))
    content = bytearray(files[name])

    def edit(rows: Rows, case: str) -> Rows:
        tensor = recorded(rows, case)[0]["jobs"][0]["outputs"][0][0][0]
        span = slice(tensor["offset"], tensor["offset"] + tensor["size"])
        piece = np.frombuffer(bytes(content[span]), np.uint32).copy()
        piece[0] ^= flip
        content[span] = piece.tobytes()
        before, after = tensor["sha256"], hashlib.sha256(piece.tobytes()).hexdigest()
        return json.loads(json.dumps(rows).replace(before, after))  # type: ignore[no-any-return]

    of_results(edit)(files)
    files[name] = bytes(content)


@of_results
def record_of_nothing(rows: Rows, case: str) -> Rows:
    for row in recorded(rows, case):
        row["jobs"][0]["outputs"] = [[] for _ in row["jobs"][0]["outputs"]]
    return rows


@of_results
def fresh_process_left_out(rows: Rows, _: str) -> Rows:
    return [row for row in rows if row.get("purpose") != "fresh-process"]


def level_raised(files: Files) -> None:
    def edit(claim: dict[str, Any]) -> None:
        claim["kind"], claim["trial_because"] = "certificate", []
        claim["rows"][0].update(status="certified", level="complete")

    statement(files, edit)


def nonce_replaced(files: Files) -> None:
    for name in (RESULTS, RUN):
        files[name] = files[name].replace(b"nonce-17", b"nonce-18")
    files[STATEMENT] = files[STATEMENT].replace(b'"nonce": "17"', b'"nonce": "18"')
    files[SUITE] = files[SUITE].replace(b'"nonce": "17"', b'"nonce": "18"')


def signed_by_words(files: Files) -> None:
    """Name a signer that everybody trusts, which the page would then show."""
    statement(files, lambda claim: claim.update(signer="of the ONNX project, which has verified it"))
    keys = b'{"keyid":"of the ONNX project, which has verified it","sig":"AAAA"}'
    payload = base64.b64encode(files[STATEMENT])
    payload_type = b"application/vnd.in-toto+json"
    files[ENVELOPE] = b'{"payload":"%b","payloadType":"%b","signatures":[%b]}\n' % (payload, payload_type, keys)


def hidden_behind_the_outputs(files: Files) -> None:
    files[bits_name(tuple(files))] += bytes(64)


@of_results
def third_repeat(rows: Rows, case: str) -> Rows:
    for row in recorded(rows, case):
        for job in row["jobs"]:
            job["returned"] = [[*repeats, 0] for repeats in job["returned"]]
    return rows


@of_results
def result_doubled_with_another_verdict(rows: Rows, _: str) -> Rows:
    """Append a second result with another verdict: the first counts, but a hasty reader sees the second last."""
    return [*rows, {**first_unsupported(rows), "verdict": "pass"}]


def replaced(name: str, old: bytes, new: bytes) -> Callable[[Files], None]:
    """Return an edit of the first such bytes of a file."""
    return lambda files: files.update({name: files[name].replace(old, new, 1)})


def package_edited(**changes: str) -> Callable[[Files], None]:
    """Return an edit of the first package in the environment."""
    return lambda files: record(files, ENVIRONMENT, lambda environment: environment["packages"][0].update(changes))


FORGERIES: dict[str, tuple[Callable[[Files], object], str]] = {
    "a case removed": (case_removed, "cases"),
    "a case doubled": (case_doubled, "record"),
    "a case's outcome replaced by another case's": (case_replaced, "cases"),
    "a verdict or a number of a result": (number_of_a_result, "verdicts by numbers"),
    "a reported verdict": (reported_verdict, "verdicts by numbers"),
    "an output": (output_changed, "cases"),
    "an output, with its digest": (output_changed_with_its_digest, "verdicts by numbers"),
    "outputs left out": (record_of_nothing, "cases"),
    "the runs in a fresh process left out of a package": (fresh_process_left_out, "levels and statement"),
    "a level": (level_raised, "levels and statement"),
    "a finding removed": (lambda f: record(f, RUN, lambda run: run["targets"][0].update(findings=[])), "findings"),
    "a waiver": (replaced("waivers.toml", b"rnn.equations", b"rnn.*"), "levels and statement"),
    "a package's digest in the environment": (package_edited(sha256="0" * 64), "environment"),
    "the suite's digest": (lambda f: record(f, SUITE, lambda suite: suite.update(sources="0" * 64)), "suite"),
    "a digest of cases": (
        lambda f: record(f, SUITE, lambda suite: suite["cases"].update({"RNN-7": "0" * 64})),
        "cases",
    ),
    "the nonce": (nonce_replaced, "cases"),
    "a version in other digits, 1.2.0 as 1.2.00": (
        lambda f: statement(f, lambda claim: claim.update(runtime_version=f"{claim['runtime_version']}0")),
        "levels and statement",
    ),
    "a version in the environment": (package_edited(version="0.0"), "environment"),
    "a digest that reads like a number, such as 67e701": (package_edited(sha256="67e701" * 10 + "1234"), "environment"),
    "a day before that of the run, on which a waiver held": (
        lambda f: statement(f, lambda claim: claim.update(date="2020-01-01")),
        "levels and statement",
    ),
    "words in the place of a key": (signed_by_words, "record"),
    "bytes behind the outputs": (hidden_behind_the_outputs, "record"),
    "a file of another kind": (lambda f: f.update({"run/notes.txt": b"certified"}), "record"),
    "a repeat more or less than there are": (third_repeat, "cases"),
    "a second result with another verdict": (result_doubled_with_another_verdict, "cases"),
    "a key that stands twice": (
        replaced(RESULTS, b'"verdict":"unsupported"', b'"verdict":"pass","verdict":"unsupported"'),
        "record",
    ),
    "a page added": (lambda f: f.update({"certificate.html": b"<p>certified</p>"}), "files"),
    "a file removed": (lambda f: f.pop(RUN), "record"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forgery_is_found_though_digests_were_mended(name: str, certified_files: Files, tmp_path: Path) -> None:
    edit, check = FORGERIES[name]
    files = dict(certified_files)
    edit(files)
    assert files != certified_files
    outcome = verified(mended(tmp_path / "p.zip", files))
    assert outcome.differs
    assert outcome.checks[check].count, {name: c.differs for name, c in outcome.checks.items() if c.count}


def test_the_name_of_the_product_is_the_vendors_word_and_only_a_signature_shows_who_gave_it(
    certified_files: Files, tmp_path: Path
) -> None:
    files = dict(certified_files)
    statement(files, lambda claim: claim.update(product="Runtime 9.9"))
    outcome = verified(mended(tmp_path / "p.zip", files))
    assert not outcome.differs
    assert outcome.checks["signature"].mark == "unsigned"


def test_a_waiver_that_has_expired_is_told(certified_files: Files, tmp_path: Path) -> None:
    path = mended(tmp_path / "p.zip", certified_files)
    outcome = verified(path, TODAY + datetime.timedelta(days=31))
    assert outcome.differs
    assert outcome.checks["waivers"].count == 1
    assert b"expires" in WAIVED


def test_another_nonce_than_that_which_was_asked_for_is_told(certified_files: Files, tmp_path: Path) -> None:
    outcome = verified(mended(tmp_path / "p.zip", certified_files), nonce="4711")
    assert [name for name, check in outcome.checks.items() if check.count] == ["nonce"]


def test_without_mending_the_digests_nothing_goes_unseen(certified_files: Files, tmp_path: Path) -> None:
    path = mended(tmp_path / "p.zip", certified_files)
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files[SUITE] += b" "
    outcome = verified(raw(tmp_path / "q.zip", files))
    assert outcome.checks["files"].count == 1


# The zip itself


def test_a_byte_changed_is_found_or_changes_no_file(certified_files: Files, tmp_path: Path) -> None:
    content = mended(tmp_path / "p.zip", certified_files).read_bytes()
    directory = content.index(b"PK\1\2")
    spread = [*range(0, 30), *range(31, directory, directory // 25), *range(directory, len(content), 17)]
    with zipfile.ZipFile(tmp_path / "p.zip") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    for number, at in enumerate(spread):
        (tmp_path / "q.zip").write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            package = read_package(tmp_path / "q.zip", tmp_path / f"q{number}")
        except UserError:
            continue
        read = {name: package.content(name) for name in package.names}
        assert read == files or verified(tmp_path / "q.zip").differs, at


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


def test_bytes_before_the_archive_are_refused(tmp_path: Path) -> None:
    path = raw(tmp_path / "p.zip", {"a": b"x"})
    path.write_bytes(b"#!/bin/sh\n" + path.read_bytes())
    with pytest.raises(UserError, match="before the archive"):
        read_package(path, tmp_path / "to")


def test_bombs_are_refused_before_anything_is_unpacked(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="times its size"):
        read_package(raw(tmp_path / "bomb.zip", {"a": bytes(64 << 20)}), tmp_path / "to")
    path = raw(tmp_path / "p.zip", {"a": b"x" * 1000})
    content = bytearray(path.read_bytes())
    directory = content.rindex(b"PK\1\2")
    for claimed, reason in ((3 << 30, "times its size"), (10, "no zip")):
        for offset in (22, directory + 24):  # in the local header and in the central directory
            content[offset : offset + 4] = struct.pack("<I", claimed)
        path.write_bytes(content)
        with pytest.raises(UserError, match=reason):
            read_package(path, tmp_path / "to")
    (tmp_path / "none").write_bytes(b"certificate")
    with pytest.raises(UserError, match="no zip"):
        verified(tmp_path / "none")


def test_what_is_no_package_is_said(tmp_path: Path, certified_files: Files) -> None:
    with pytest.raises(UserError, match=r"STATEMENT\.json is missing"):
        verified(raw(tmp_path / "a.zip", {"a": b"x"}))
    files = {**certified_files, STATEMENT: b"[]"}
    with pytest.raises(UserError, match=r"STATEMENT\.json"):
        verified(raw(tmp_path / "b.zip", files))
