"""``onnxspec prove``: mutation testing of the suite."""

from __future__ import annotations

import contextlib
import csv
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.progress import track

from ...cases import Spec
from ...reference import FAULTS
from ..probes.selection import UnknownName, select, selection_of
from ..proof.proof import ENOUGH, FEWEST, FINE, Proof, Row, prove
from .command import CORES, PATH, op_option, profile_option, require_writable, type_option
from .terminal import console_on, fail, say, warn

_COLUMNS = ("fault", "clause", "operator", "type", "cases", "well", "best", "by")


@click.command()
@profile_option
@op_option
@type_option
@click.option("--fault", metavar="ID", multiple=True, help="Only this fault; repeatable.")
@click.option(
    "--out",
    "-o",
    metavar="FILE",
    type=PATH,
    default="proof.csv",
    show_default=True,
    help="Table of all faults, as CSV.",
)
def prove_cases(profile: str, op: Sequence[str], type: Sequence[str], fault: Sequence[str], out: Path) -> None:
    """Test the test suite (mutation testing).

    Every fault (the reference with one thing wrong) and every conforming variant runs through a profile. At least two
    cases must catch each fault, by at least 8 error bounds, in every operator and type that it concerns. Every clause
    that can be violated must have a fault, every clause a case; and no conforming variant may fail. Exit code 1:
    something of this does not hold.
    """
    selection = selection_of(profile, op, type)
    specs = select(selection)
    _require_faults(fault or (), specs)
    require_writable(out)
    console = console_on(sys.stdout)
    with contextlib.closing(prove(specs, fault or None, processes=CORES)) as steps:
        shown = track(steps, "cases", console=console, transient=True) if console.is_terminal else steps
        (proof,) = (step for step in shown if isinstance(step, Proof))
    try:
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            writer.writerows(
                (r.fault, r.clause, r.op, r.type, r.cases, r.well, f"{r.best:.6g}", r.by) for r in proof.rows
            )
    except OSError as error:
        fail(f"{out}: {error.strerror or error}")
    # Of a part of the cases or the faults it is not said what they leave out.
    complaints = list(_complaints(proof, whole=not (fault or selection.versions or type)))
    for line in complaints:
        warn(line, "red")
    caught = {row.fault for row in proof.rows} - {row.fault for row in proof.surviving}
    total = len({row.fault for row in proof.rows})
    say(f"{len(specs)} cases catch {len(caught)} of {total} faults; table: {out}")
    raise click.exceptions.Exit(1 if complaints else 0)


def _require_faults(ids: Sequence[str], specs: Sequence[Spec]) -> None:
    """End the command for a fault that no chosen case can show. Raise UnknownName."""
    for id in ids:
        if id not in FAULTS:
            raise UnknownName("fault", id, [*FAULTS])
        fault = FAULTS[id]
        if not any(fault.applies(s.op, s.version, s.type) for s in specs if s.illegal or not fault.accepts):
            forbidden = " that takes forbidden models" if fault.accepts else ""
            extent = f"a fault in {', '.join(fault.operators)}{forbidden} of {', '.join(fault.types)}"
            fail(f"none of the chosen cases can show {id}, {extent}: choose others, or leave it out")


def _complaints(proof: Proof, *, whole: bool) -> Iterator[str]:
    """Yield a line for each requirement that does not hold; errors come first, because they explain others."""
    for internal_error in proof.internal_errors:
        yield f"could not run: {internal_error}"
    for row in proof.surviving:
        yield f"{row.fault} survives in {row.op} {row.type}: {_caught(row)}"
    for a in proof.false_positives:
        yield f"conforming variant {a.style} is accused by {a.case}: {a.message}"
    if whole:
        yield from (f"no fault breaks {clause.id}" for clause in proof.without_fault)
        yield from (f"no case exercises {clause.id}" for clause in proof.without_case)


def _caught(row: Row) -> str:
    """Return the number of cases that catch a fault, and the required number."""
    bounds = FINE if FAULTS[row.fault].kind == "small" else 2 * ENOUGH
    return f"{row.cases} cases catch it, {row.well} of them by at least {bounds:g} error bounds; {FEWEST} are required"


assert FEWEST == 2, "the command's help says two"
