"""``onnxspec prove``: mutation testing of the suite."""

from __future__ import annotations

import contextlib
import csv
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from ...cases import Spec
from ...reference import FAULTS
from ..probes.selection import UnknownName, select, selection_of
from ..proof.proof import ENOUGH, FEWEST, Proof, Row, prove
from .command import CORES, Ops, ProfileName, Types
from .terminal import console_on, fail, say, warn

_COLUMNS = ("fault", "clause", "operator", "type", "cases", "well", "best", "by")


def prove_cases(
    profile: ProfileName = "core",
    op: Ops = None,
    type: Types = None,
    fault: Annotated[
        list[str] | None, typer.Option("--fault", metavar="ID", help="Only this fault; repeatable.")
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the whole table goes, as CSV.")
    ] = Path("proof.csv"),
) -> None:
    """Prove that the suite catches faults and accuses nobody.

    Every fault and every conforming variant runs through a profile. A fault is the reference with one thing
    wrong. Each must be caught by two cases or more, eight radii away from what is right, in every operator and type
    in which it can show; every clause that can be broken must have a fault, every clause a case; and no conforming
    kernel may fail anywhere. Exit code 1 where that does not hold.
    """
    selection = selection_of(profile, op, None, type)
    specs = select(selection)
    _require_faults(fault or (), specs)
    console = console_on(sys.stdout)
    _require_place(out)
    proof = _proved(console, specs, fault or None, CORES)
    _write(proof.rows, out)
    # Of a part of the cases or the faults it is not said what they leave out.
    whole = not (fault or selection.versions or type)
    complaints = _complaints(proof, whole=whole)
    for line in complaints:
        warn(line, "red")
    caught = {row.fault for row in proof.rows} - {row.fault for row in proof.surviving}
    total = len({row.fault for row in proof.rows})
    say(f"{len(specs)} cases catch {len(caught)} of {total} faults; table: {out}")
    raise typer.Exit(1 if complaints else 0)


def _require_faults(ids: Sequence[str], specs: Sequence[Spec]) -> None:
    """End the command for an unknown fault, and for one that no chosen case can show."""
    for id in ids:
        if id not in FAULTS:
            fail(str(UnknownName("fault", id, [*FAULTS])))
    for id in ids:
        one = FAULTS[id]
        if not any(one.applies(s.op, s.version, s.type) for s in specs if s.illegal or not one.accepts):
            forbidden = " that takes forbidden models" if one.accepts else ""
            extent = f"a fault in {', '.join(one.operators)}{forbidden} of {', '.join(one.types)}"
            fail(f"none of the chosen cases can show {id}, {extent}: choose others, or leave it out")


def _proved(console: Console, specs: Sequence[Spec], faults: Sequence[str] | None, processes: int) -> Proof:
    """Return the finished proof. End the command if it is interrupted."""
    try:
        with contextlib.closing(prove(specs, faults, processes=processes)) as steps:
            shown = track(steps, "cases", console=console, transient=True) if console.is_terminal else steps
            (proof,) = (step for step in shown if isinstance(step, Proof))
            return proof
    except KeyboardInterrupt:
        fail("interrupted", 130)


def _require_place(path: Path) -> None:
    """End the command if the table could not be written, before the proof takes minutes."""
    if path.is_dir():
        fail(f"--out {path} is a folder: name a file for the table")
    if not path.parent.is_dir():
        fail(f"--out {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        fail(f"--out {path}: no permission to write there")


def _complaints(proof: Proof, *, whole: bool) -> list[str]:
    """Return a line for each requirement that does not hold."""
    complaints = [
        f"{row.fault} survives in {row.op} {row.type}: {row.well} cases catch it with {ENOUGH:g} or more"
        for row in proof.surviving
    ]
    complaints += [f"conforming variant {a.style} is accused by {a.case}: {a.message}" for a in proof.false_positives]
    complaints += [
        f"broke off, by the suite's fault or the operator's: {internal_error}"
        for internal_error in proof.internal_errors
    ]
    if whole:
        complaints += [f"no fault breaks {clause.id}" for clause in proof.without_fault]
        complaints += [f"no case exercises {clause.id}" for clause in proof.without_case]
    return complaints


def _write(rows: Sequence[Row], path: Path) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            for r in rows:
                writer.writerow((r.fault, r.clause, r.op, r.type, r.cases, r.well, f"{r.best:.6g}", r.by))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")


assert FEWEST == 2, "the command's help says two"
