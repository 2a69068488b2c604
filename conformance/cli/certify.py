"""``onnxspec certify``: a run as a package that anybody can verify; ``onnxspec verify``: such a package, verified."""

from __future__ import annotations

import datetime
import shlex
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from ..certifying.archive import NoPackage, read_package, write_package
from ..certifying.attestation import ENVELOPE, STATEMENT
from ..certifying.comparing import changes_since
from ..certifying.derivation import Derivation, NotCertifiable, derived, differing
from ..certifying.packing import Claim, files_of, some_nonce
from ..certifying.records import AttestationRecord, StatementRecord
from ..certifying.resemblance import resemblances
from ..certifying.signing import NoKey, public_key_in, signer_in
from ..certifying.verifying import Verification, verify
from ..certifying.waivers import LONGEST, WaiverError
from ..judging.judgement import Verdict
from ..probes.drawn import nonce_profile_name
from ..probes.selection import Selection, UnknownName, selection_of
from ..results.journal import Journal
from ..running.engine import execute
from ..running.merge import MergeError, merge
from ..running.planning import planned
from ..running.run import Plan
from ..targets.target import TargetError
from .application import app
from .command import CORES, Jobs, Ops, ProfileName, TargetsFile, Types, command_given, targets_of
from .display import RunDisplay
from .execution import fresh_run
from .terminal import console_on, fail, say, warn, why


@app.command()
def certify(
    context: typer.Context,
    runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="RUN...", help="Folders that 'onnxspec run --nonce' has written: a run, or its shards."),
    ] = None,
    product: Annotated[str, typer.Option("--product", metavar="PRODUCT", help="What is certified; required.")] = "",
    vendor: Annotated[str, typer.Option("--vendor", metavar="VENDOR", help="Who certifies it; required.")] = "",
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="PKG.zip", help="The package; required.")] = None,
    waivers: Annotated[
        Path | None, typer.Option("--waivers", metavar="FILE", help="Failures that somebody answers for, in TOML.")
    ] = None,
    target: Annotated[
        str, typer.Option("--target", "-t", metavar="TARGET", help="Run this target now, or which one of a RUN's.")
    ] = "",
    profile: ProfileName = "core",
    nonce: Annotated[str, typer.Option("--nonce", metavar="NONCE", help="The auditor's number, for fresh cases.")] = "",
    op: Ops = None,
    type: Types = None,
    targets_file: TargetsFile = None,
    key: Annotated[
        Path | None, typer.Option("--key", metavar="KEY.pem", help="Sign the package with this ed25519 key.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the package that is there.")] = False,
    jobs: Jobs = CORES,
) -> NoReturn:
    """Make a package that certifies what a runtime does, for anybody to verify without the hardware.

    From a recorded run, or from a target that is run now, with the fresh cases that an auditor's number asks for.
    docs/certification.md says what the levels mean.

    Exit code 0: something is certified; 1: nothing is, and the package says why; 2: bad arguments, or a run that
    cannot be packed; 3: the target could not start.
    """
    if not product or not vendor or out is None:
        fail("--product, --vendor and --out are required: what is certified, by whom, and where the package goes")
    if out.exists() and not overwrite:
        fail(f"{out} is there already: give another name, or replace it with --overwrite")
    if out.is_dir() or not out.absolute().parent.is_dir():
        fail(f"cannot write {out}: {'it is a folder' if out.is_dir() else 'there is no such folder'}")
    if runs:
        asked = [o for o, value in (("--nonce", nonce), ("--op", op), ("--type", type)) if value]
        if asked or getattr(context.get_parameter_source("profile"), "name", "") == "COMMANDLINE":
            fail(f"{' and '.join(asked) or '--profile'}: a run has been narrowed already; leave RUN out to run it now")
    elif not target:
        fail("give a RUN that 'onnxspec run --nonce NONCE' has written, or a --target to run now")
    try:
        signer = signer_in(key) if key is not None else None
        answering = signer.public.fingerprint if signer is not None else ""
        claim = Claim(product, vendor, datetime.date.today(), _waivers(waivers), answering)
        claim.checked()
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
            if runs:
                derivation = derived(_one_run(runs, Path(temporary) / "merged"), target, jobs)
            else:
                chosen = nonce_profile_name(profile, nonce or some_nonce())
                selection = selection_of(chosen, op, None, type)
                derivation = derived(_run(_plan(selection, target, targets_file, jobs)), jobs=jobs)
            _require_borne_out(derivation)
            from ...reports.certificate import pages_of  # pages need their templates only now

            files = files_of(derivation, claim, pages_of)
            if signer is not None:
                files[ENVELOPE] = signer.envelope(files[STATEMENT])
            write_package(out, files)
    except (NotCertifiable, WaiverError, MergeError, UnknownName, TargetError, NoKey) as error:
        fail(str(error))
    except OSError as error:
        fail(why(error))
    statement = _summary(files[STATEMENT])
    signed = f"signed with the key {answering}" if answering else "unsigned: --key KEY.pem signs it"
    say("", f"package: {out} ({out.stat().st_size / 1e6:.1f} MB, {len(files)} files), {signed}")
    asked = ["--nonce", statement.challenge.nonce] if statement.challenge.nonce else []
    say(f"verify:  {shlex.join(['onnxspec', 'verify', str(out), *asked])}")
    raise typer.Exit(int(not any(row.status == "certified" for row in statement.rows)))


def _waivers(path: Path | None) -> bytes:
    if path is None:
        return b""
    try:
        with path.open("rb") as file:
            return file.read(LONGEST + 1)
    except OSError as error:
        fail(f"--waivers {path}: cannot be read: {error.strerror or error}")


def _one_run(runs: Sequence[Path], merged: Path) -> Path:
    """The folder of a run, or of its shards put together."""
    if len(runs) > 1:
        merge(runs, merged)
    return runs[0] if len(runs) == 1 else merged


def _plan(selection: Selection, target: str, targets_file: Path | None, jobs: int) -> Plan:
    """The plan of a run that is made to be certified."""
    plan = planned(selection, targets_of([target], targets_file))
    plan = replace(plan, command=command_given(), targets_file=targets_file, jobs=jobs)
    return replace(plan, record=True, expected=False, shrinks=False, fills=True)


def _run(plan: Plan) -> Path:
    """Run a target, and return the folder of the run."""
    (target,) = plan.targets
    folder = fresh_run()
    try:
        with Journal(folder) as journal, RunDisplay(console_on(sys.stdout), plan) as display:
            finished = execute(plan, journal, display.observe)
    except KeyboardInterrupt:
        fail(f"interrupted; what was obtained is in {folder}", 130)
    if unavailable := next((each.unavailable for each in finished.targets if each.unavailable), ""):
        fail(f"{target.name} could not start: {unavailable}", 3)
    say(f"run:     {folder}")
    return folder


def _require_borne_out(derivation: Derivation) -> None:
    """Raise NotCertifiable where a run says other things than what it has recorded."""
    for flaw in derivation.flaws:
        raise NotCertifiable(f"{derivation.folder}: {flaw}")
    for result in derivation.results:
        if result.verdict is Verdict.NOT_JUDGED and derivation.claimed[result.case].verdict is not result.verdict:
            raise NotCertifiable(f"{derivation.folder}: case {result.case} cannot be judged again: {result.message}")
    for case, claimed, again in differing(derivation):
        raise NotCertifiable(
            f"{derivation.folder}: case {case} is {claimed} there, and {again} by what was recorded: was the run made "
            "with another version, or edited?"
        )


def _summary(content: bytes) -> StatementRecord:
    """Say what a package states."""
    from ..border.strict_json import decode

    statement = decode(content, AttestationRecord).predicate
    for number, waiver in enumerate(statement.waivers, 1):
        say(f"exception {number}: {waiver.op or 'any operator'} {waiver.clause or waiver.verdict}: {waiver.reason}")
    if statement.kind == "trial":
        say("a trial, which certifies nothing:", *(f"  {reason}" for reason in statement.trial_because))
    for row in statement.rows:
        if set(row.verdicts) <= {"unsupported", "fallback"}:
            continue
        level = {"certified": row.level, "exceptions": f"{row.level}, with exceptions"}.get(row.status, "no level")
        say(f"{row.op}-{row.version} {row.type} {row.accuracy}: {level}")
        if row.status != "none":
            continue
        lowest = row.levels[0]
        if lowest.status == "denied":
            say(*(f"  {lowest.level}: {reason}" for reason in lowest.against))
        else:
            kept = [level.level for level in row.levels if level.status != "denied"]
            say(f"  only a trial, whose cases would reach {kept[-1]}")
    return statement


@app.command(name="verify")
def verify_package(
    package: Annotated[Path, typer.Argument(metavar="PACKAGE", help="What 'onnxspec certify' has written.")],
    since: Annotated[
        Path | None,
        typer.Option("--since", metavar="OLD.zip", help="Also say what has changed since an earlier package."),
    ] = None,
    nonce: Annotated[str, typer.Option("--nonce", metavar="NONCE", help="The number that you have asked for.")] = "",
    signer: Annotated[
        Path | None, typer.Option("--signer", metavar="PUB.pem", help="The public key of who answers for it.")
    ] = None,
    jobs: Jobs = CORES,
) -> NoReturn:
    """Verify a certification package: recompute all that it claims from what the target returned.

    Needs no hardware and no runtime but what onnxspec installs. docs/certification.md says what can be concluded.

    Exit code 0: every claim that can be recomputed is confirmed; 1: something differs; 2: it is no package, or one that
    must not be unpacked.
    """
    from ...reports.certificate import pages_of  # pages need their templates only now

    today = datetime.date.today()
    try:
        with tempfile.TemporaryDirectory(prefix="onnxspec-") as temporary:
            unpacked = read_package(package, Path(temporary))
            key = public_key_in(signer) if signer is not None else None
            verification = verify(unpacked, pages_of, today, nonce, key, jobs)
            if verification.derivation is not None and not verification.differs:
                verification.remarks += resemblances(verification.derivation)
            _tell(verification)
            if since is not None:
                with tempfile.TemporaryDirectory(prefix="onnxspec-") as other:
                    for line in changes_since(read_package(since, Path(other)), unpacked):
                        say(line)
    except (NoPackage, NoKey) as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or package}: {error.strerror or error}")
    raise typer.Exit(int(verification.differs))


def _tell(verification: Verification) -> None:
    """Say what was found, check by check."""
    statement = verification.statement
    for number, waiver in enumerate(statement.waivers, 1):
        say(f"exception {number}: {waiver.op or 'any operator'} {waiver.clause or waiver.verdict}: {waiver.reason}")
    say(
        f"{statement.product}, {statement.vendor}, {statement.date}: {statement.kind}",
        f"SHA-256 {verification.package.sha256}",
    )
    width = max(len(name) for name in verification.checks)
    for name, check in verification.checks.items():
        state = "differs" if check.count else check.mark or "same"
        say(f"{name:{width}}  {state:11}  {f'claimed: {check.claimed}' if check.claimed else ''}".rstrip())
        if check.recomputed:
            say(f"{'':{width}}  {'':11}  recomputed: {check.recomputed}")
        for line in check.differs:
            say(f"{'':{width}}  {'':11}  {line}")
        if check.count > len(check.differs):
            say(f"{'':{width}}  {'':11}  and {check.count - len(check.differs)} more")
    for remark in verification.remarks:
        warn(f"remark: {remark}", "yellow")
    confirmed = "same: every claim that can be recomputed is confirmed"
    say("", "differs: not every claim is confirmed" if verification.differs else confirmed)
