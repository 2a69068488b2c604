"""``onnxspec certify`` packs a run for anybody to verify; ``onnxspec verify`` verifies such a package."""

from __future__ import annotations

import datetime
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import click

from ...reference.errors import RecordError
from ..certifying.package import (
    ENVELOPE,
    STATEMENT,
    Package,
    attestation_of,
    read_package,
    write_package,
)
from ..certifying.packing import Claim, files_of
from ..certifying.replay import RUN_FOLDER, Replay, replay
from ..certifying.signing import envelope_of, key_id, read_key
from ..certifying.verifying import Verification, verify
from ..judging.judgement import Verdict
from ..running.merge import merge
from .command import CORES, PATH, require_writable, runs_argument
from .terminal import fail, say, warn, why

_SHOWN = 12  # differences of a check that are printed


@click.command()
@runs_argument
@click.option("--product", metavar="NAME", required=True, help="Certified product.")
@click.option("--vendor", metavar="NAME", required=True, help="Vendor of the product.")
@click.option("--out", "-o", metavar="FILE", type=PATH, required=True, help="Package to write.")
@click.option("--waivers", metavar="FILE", type=PATH, help="TOML file of accepted failures, each with its owner.")
@click.option("--target", "-t", metavar="TARGET", default="", help="Target, if the run has several.")
@click.option("--key", metavar="FILE", type=PATH, help="Sign with this ed25519 key, as PEM.")
def certify(
    runs: Sequence[Path], product: str, vendor: str, out: Path, waivers: Path | None, target: str, key: Path | None
) -> NoReturn:
    """Make a certification package, which anybody can verify without the hardware.

    RUN is a folder that 'onnxspec run --nonce' has written; of several shards, give all. docs/certification.md
    explains the levels.

    Exit code 0: something is certified; 1: nothing is, and the package says why; 2: bad arguments, or a run that
    cannot be packed.
    """
    from ...reports.certificate import lines_of  # pages need their templates only now

    require_writable(out)
    pages = out.with_name(f"{out.stem}-pages")
    for path in (out, pages):
        if path.exists():
            fail(f"{path} already exists: give another name")
    try:
        private = read_key(key, private=True) if key is not None else None
        answering = key_id(private.public_key()) if private is not None else ""
        waived = waivers.read_bytes() if waivers is not None else b""
        claim = Claim(product, vendor, datetime.date.today(), waived, answering)
        claim.checked()
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
            folder = runs[0]
            if len(runs) > 1:
                merge(runs, folder := Path(temporary) / "merged")
            again = replay(folder, target, CORES)
            _require_borne_out(again)
            files = files_of(again, claim)
            if private is not None:
                files[ENVELOPE] = envelope_of(files[STATEMENT], private)
            write_package(out, files)
            unpacked = read_package(out, Path(temporary) / "package")
            statement = attestation_of(unpacked).predicate
            _write_pages(unpacked, pages)
    except OSError as error:
        fail(why(error))
    say(*lines_of(statement))
    signed = f"signed with the key {answering}" if answering else "unsigned: --key KEY.pem signs it"
    say("", f"package: {out} ({out.stat().st_size / 1e6:.1f} MB, {len(files)} files), {signed}")
    say(f"page:    {pages / 'certificate.html'}")
    asked = ["--nonce", statement.challenge.nonce] if statement.challenge.nonce else []
    say(f"verify:  {shlex.join(['onnxspec', 'verify', str(out), *asked])}")
    raise click.exceptions.Exit(int(not any(row.status == "certified" for row in statement.rows)))


def _require_borne_out(again: Replay) -> None:
    """Raise RecordError if the results of a run contradict its record."""
    for flaw in again.flaws:
        raise RecordError(f"{again.folder}: {flaw}")
    for result in again.results:
        if result.verdict is Verdict.NOT_JUDGED and again.claimed[result.case].verdict is not result.verdict:
            raise RecordError(f"{again.folder}: case {result.case} cannot be judged again: {result.message}")
    for case, claimed, verdict in again.differing():
        raise RecordError(
            f"{again.folder}: case {case} is {claimed} there, and {verdict} by what was recorded: was the run made "
            "with another version, or edited?"
        )


def _write_pages(package: Package, out: Path) -> None:
    """Write the certificate and the report of a package. Raise OSError."""
    from ...reports.certificate import write_certificate  # pages need their templates only now

    write_certificate(out, package.folder / RUN_FOLDER, attestation_of(package).predicate)


@click.command()
@click.argument("package", metavar="PACKAGE", type=PATH, required=True)
@click.option("--nonce", metavar="NONCE", default="", help="Number that you gave to the vendor.")
@click.option("--signer", metavar="FILE", type=PATH, help="Public key of the signer, as PEM.")
@click.option("--out", "-o", metavar="DIR", type=PATH, help="Write the pages of a verified package.")
def verify_package(package: Path, nonce: str, signer: Path | None, out: Path | None) -> NoReturn:
    """Verify a certification package: recompute its claims from the recorded outputs.

    Needs neither the hardware nor another runtime. docs/certification.md says what a verified package proves.

    Exit code 0: every claim that can be recomputed is confirmed; 1: something differs; 2: it is no package, or one that
    must not be unpacked.
    """
    if out is not None and out.exists():
        fail(f"{out} already exists: give another name")
    today = datetime.date.today()
    try:
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
            unpacked = read_package(package, Path(temporary))
            key = read_key(signer, private=False) if signer is not None else None
            verification = verify(unpacked, today, nonce, key, CORES)
            _tell(verification)
            if out is not None and not verification.differing:
                _write_pages(unpacked, out)
                say(f"page: {out / 'certificate.html'}")
    except OSError as error:
        fail(f"{error.filename or package}: {error.strerror or error}")
    raise click.exceptions.Exit(int(bool(verification.differing)))


def _tell(verification: Verification) -> None:
    """Print the result of each check."""
    statement = verification.statement
    for number, waiver in enumerate(statement.waivers, 1):
        say(f"exception {number}: {waiver.op or 'any operator'} {waiver.clause or waiver.verdict}: {waiver.reason}")
    say(
        f"{statement.product}, {statement.vendor}, {statement.date}: {statement.kind}",
        f"SHA-256 {verification.package.sha256}",
    )
    width = max(len(name) for name in verification.checks)
    for name, check in verification.checks.items():
        state = "differs" if check.differs else check.mark or "same"
        say(f"{name:{width}}  {state:11}  {f'claimed: {check.claimed}' if check.claimed else ''}".rstrip())
        if check.recomputed:
            say(f"{'':{width}}  {'':11}  recomputed: {check.recomputed}")
        for line in check.differs[:_SHOWN]:
            say(f"{'':{width}}  {'':11}  {line}")
        if len(check.differs) > _SHOWN:
            say(f"{'':{width}}  {'':11}  and {len(check.differs) - _SHOWN} more")
    for remark in verification.remarks:
        warn(f"remark: {remark}", "yellow")
    verified = "VERIFIED: every claim that can be recomputed is confirmed"
    if verification.differing == ["nonce"]:
        say("", "NOT VERIFIED: wrong nonce: the fresh cases of the package were made from another number")
    else:
        say("", "NOT VERIFIED: the package differs from its record" if verification.differing else verified)
