"""The commands certify and verify, as a vendor and an auditor use them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ..miniatures import Finished
from .conftest import STATEMENT, Files, claimed, edited, mended

Inside = Callable[..., Finished]

WHO = ["--product", "Runtime 2.1", "--vendor", "Example Ltd"]


@pytest.mark.long
def test_a_run_is_certified_and_its_package_verified(inside: Inside, tmp_path: Path) -> None:
    few = ["--op", "RNN", "--profile", "core"]
    assert inside("run", *few, "--nonce", "4711", "--out", "o").code == 0
    done = inside("certify", "o", *WHO, "--out", "p.zip")
    assert done.code == 0, done.err + done.out
    # A defect that denies one version a level denies it to the other versions of the operator.
    assert "certified (sequence): RNN 14 and 22 in float16" in done.out
    assert "not certified: RNN 7 and 14 in float32" in done.out
    assert "not certified: RNN 22 in float32" in done.out
    assert "verify:  onnxspec verify p.zip --nonce 4711" in done.out
    checked = inside("verify", "p.zip", "--nonce", "4711")
    assert checked.code == 0, checked.out
    assert "VERIFIED: every claim that can be recomputed is confirmed" in checked.out
    assert "differs" not in checked.out
    assert "4711, given by --nonce" in checked.out
    assert "given" not in inside("verify", "p.zip").out
    wrong = inside("verify", "p.zip", "--nonce", "4712")
    assert wrong.code == 1
    assert "asked for was 4712" in wrong.out
    assert "NOT VERIFIED: wrong nonce" in wrong.out
    refused = inside("certify", "o", *WHO, "--out", "p.zip")
    assert refused.code == 2
    assert "already exists" in refused.complaint


def test_a_part_of_an_operator_is_a_trial_since_nobody_counts_what_its_cases_show(inside: Inside) -> None:
    few = ["--op", "RNN-7", "--type", "float32", "--nonce", "4711"]
    assert inside("run", *few, "--out", "o").code == 0
    done = inside("certify", "o", *WHO, "--out", "p.zip")
    assert done.code == 1
    assert "run whole operators, without a version in --op and without --type" in done.out


def test_shards_are_packed_together_and_a_small_profile_is_a_trial(inside: Inside, tmp_path: Path) -> None:
    few = ["--op", "RNN-7", "--type", "float32", "--profile", "smoke", "--nonce", "a"]
    for number in (1, 2):
        assert inside("run", *few, "--shard", f"{number}/2", "--out", f"s{number}").code in (0, 1)
    done = inside("certify", "s1", "s2", *WHO, "--out", "p.zip")
    assert done.code == 1, done.err
    assert "This package certifies nothing: profile smoke is below core" in done.out
    assert inside("verify", "p.zip").code == 0


def test_what_cannot_be_packed_is_said_in_a_line(inside: Inside, tmp_path: Path, certified_run: Path) -> None:
    for options, reason in (
        (["certify", certified_run, "--out", "p.zip"], "--product"),
        (["certify", *WHO, "--out", "p.zip"], "RUN"),
        (["certify", "nowhere", *WHO, "--out", "p.zip"], "no such directory"),
        (["certify", certified_run, *WHO, "--out", "no/p.zip"], "no such folder"),
        (["certify", certified_run, "--target", "tract", *WHO, "--out", "p.zip"], "has no target"),
        (["certify", certified_run, "--product", "a\nb", "--vendor", "c", "--out", "p.zip"], "printable"),
        (["certify", certified_run, "--waivers", "no.toml", *WHO, "--out", "p.zip"], "No such file"),
        (["verify", "nowhere.zip"], "No such file"),
    ):
        done = inside(*options)
        assert done.code == 2, (options, done.out)
        assert reason in done.complaint, done.complaint
    assert not (tmp_path / "p.zip").exists()


def test_a_run_that_is_not_recorded_or_was_edited_is_not_packed(
    inside: Inside, tmp_path: Path, certified_run: Path
) -> None:
    few = ["--op", "RNN-7", "--type", "float32", "--profile", "smoke"]
    assert inside("run", *few, "--out", "plain").code in (0, 1)
    assert not (tmp_path / "plain" / "recorded").exists()
    assert "--nonce" in inside("certify", "plain", *WHO, "--out", "p.zip").complaint
    shutil.copytree(certified_run, tmp_path / "edited")
    journal = tmp_path / "edited" / "results.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b'"verdict":"unsupported"', b'"verdict":"pass"'))
    assert "by what was recorded" in inside("certify", "edited", *WHO, "--out", "p.zip").complaint


def test_an_edited_package_is_refused_with_what_is_claimed_and_what_is_shown(
    inside: Inside, tmp_path: Path, certified_files: Files
) -> None:
    mended(tmp_path / "p.zip", edited(certified_files, STATEMENT, claimed(kind="certificate")))
    done = inside("verify", "p.zip")
    assert done.code == 1
    assert "kind: claimed certificate, recomputed trial" in done.out
