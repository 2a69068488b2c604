"""``onnxspec prove``: what the suite is worth, by the mistakes that it catches."""

from __future__ import annotations

import contextlib
import csv
import os
import sys
from collections import defaultdict
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Annotated, Optional

import typer
from rich.box import SIMPLE
from rich.progress import track
from rich.table import Table
from rich.text import Text

from ..cases import CaseSpec
from ..cases.extended_spec import ExtendedSpec
from ..reference import DEVIATIONS, EXTENDED, EXTENDED_DEVIATIONS, FORMATS, OPERATORS, mistake_named
from .command import CaseIds, Ops, ProfileName, Types, Versions, app, fail, say, selection_of, warn
from .display import console_on
from .extended_probe import ExtendedProbe
from .extended_proof import prove_extended
from .probe import SpecProbe
from .proof import ENOUGH, FEWEST, Proof, Row, prove
from .selection import UnknownName, select_probes

__all__ = ["prove_command"]

_LEGEND = "cases that catch it / best distance from right over two radii; both of the operator where they are least"
_COLUMNS = ("deviation", "clause", "operator", "type", "cases", "well", "best", "by")


@app.command("prove")
def prove_command(
    profile: ProfileName = "core",
    op: Ops = None,
    since_version: Versions = None,
    type: Types = None,
    case: CaseIds = None,
    deviation: Annotated[
        Optional[list[str]],  # noqa: UP045 - typer evaluates it on Python 3.10
        typer.Option("--deviation", metavar="ID", help="Only this deviation. May be repeated."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where the whole table goes, as CSV.")
    ] = Path("proof.csv"),
    processes: Annotated[
        int, typer.Option("--processes", "-j", metavar="N", min=1, help="How many at a time; all cores without.")
    ] = os.cpu_count() or 1,
) -> None:
    """Prove that the suite catches mistakes and accuses nobody.

    Every deviation and every honest kernel runs through a profile. A deviation is the reference with one thing
    wrong. Each must be caught by two cases or more, eight radii away from what is right, in every operator and type
    in which it can show; every clause that can be broken must have a deviation, every clause a case; and no honest
    kernel may fail anywhere. Exit code 1 where that does not hold.
    """
    try:
        probes = select_probes(selection_of(profile, op, since_version, type, case), OPERATORS)
        for id in deviation or ():
            if mistake_named(id) is None:
                raise UnknownName("deviation", id, [*DEVIATIONS, *EXTENDED_DEVIATIONS])
    except UnknownName as error:
        fail(str(error))
    specs = [probe.spec for probe in probes if isinstance(probe, SpecProbe)]
    extended = [probe.spec for probe in probes if isinstance(probe, ExtendedProbe)]
    for id in deviation or ():
        if not _can_show(id, specs, extended):
            fail(f"none of the chosen cases can show {id}, {_extent(id)}: choose others, or leave it out")
    _require_place(out)
    console = console_on(sys.stdout)
    proofs: list[Proof] = []
    try:
        with contextlib.closing(_steps(specs, extended, deviation or None, processes)) as steps:
            shown = track(steps, "cases", console=console, transient=True) if console.is_terminal else steps
            for step in shown:
                if isinstance(step, Proof):
                    proofs.append(step)
    except KeyboardInterrupt:
        fail("interrupted", 130)
    proof = _joined(proofs)
    console.print(_table(proof.rows))
    _write(proof.rows, out)
    # Of a part of the cases or the deviations it is not said what they leave out.
    complaints = _complaints(proof, whole=not (deviation or since_version or type or case))
    for line in complaints:
        warn(line, "red")
    caught = {row.deviation for row in proof.rows} - {row.deviation for row in proof.survivors}
    total = len({row.deviation for row in proof.rows})
    say(f"{len(specs) + len(extended)} cases catch {len(caught)} of {total} deviations; table: {out}")
    raise typer.Exit(1 if complaints else 0)


def _can_show(id: str, specs: Sequence[CaseSpec], extended: Sequence[ExtendedSpec]) -> bool:
    """Whether there is a case that a deviation can show in."""
    mistake = DEVIATIONS.get(id)
    if mistake is None:
        return bool(extended)
    return any(mistake.applies(s.op, s.version, s.type) for s in specs if s.illegal or not mistake.accepts)


def _extent(id: str) -> str:
    """Where a deviation can be made and show."""
    mistake = DEVIATIONS.get(id)
    if mistake is None:
        return f"a mistake in {', '.join(EXTENDED)}"
    forbidden = " that takes forbidden models" if mistake.accepts else ""
    return f"a mistake in {', '.join(mistake.operators)}{forbidden} of {', '.join(mistake.types)}"


def _require_place(path: Path) -> None:
    """Make sure that the table can be written before minutes go into it."""
    if path.is_dir():
        fail(f"--out {path} is a folder: name a file for the table")
    if not path.parent.is_dir():
        fail(f"--out {path}: there is no folder {path.parent}")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        fail(f"--out {path}: no permission to write there")


def _steps(
    specs: Sequence[CaseSpec], extended: Sequence[ExtendedSpec], deviations: Sequence[str] | None, processes: int
) -> Generator[int | Proof, None, None]:
    """The proofs of the cases of ONNX's operators and of ExtendedLSTM, those that there are."""
    if specs:
        own = None if deviations is None else [id for id in deviations if id in DEVIATIONS]
        yield from prove(specs, own, processes=processes)
    if extended:
        own = None if deviations is None else [id for id in deviations if id in EXTENDED_DEVIATIONS]
        yield from prove_extended(extended, own, processes=processes)


def _joined(proofs: Sequence[Proof]) -> Proof:
    """What several proofs say together."""
    return Proof(
        tuple(row for proof in proofs for row in proof.rows),
        tuple(accusation for proof in proofs for accusation in proof.accusations),
        tuple(clause for proof in proofs for clause in proof.without_deviation),
        tuple(clause for proof in proofs for clause in proof.without_case),
    )


def _complaints(proof: Proof, *, whole: bool) -> list[str]:
    """What does not hold, in a line each."""
    said = [
        f"{row.deviation} survives in {row.op} {row.type}: {row.well} cases catch it with {ENOUGH:g} or more"
        for row in proof.survivors
    ]
    said += [f"honest kernel {a.style} is accused by {a.case}: {a.message}" for a in proof.accusations]
    if whole:
        said += [f"no deviation breaks {clause.id}" for clause in proof.without_deviation]
        said += [f"no case exercises {clause.id}" for clause in proof.without_case]
    return said


def _table(rows: Sequence[Row]) -> Table:
    """A row for each deviation: for each type the fewest cases that catch it in an operator, and the lowest best."""
    table = Table(box=SIMPLE, caption=_LEGEND, caption_justify="left")
    table.add_column("deviation", overflow="fold")
    table.add_column("clause", overflow="fold")
    kinds = [kind for kind in FORMATS if any(row.type == kind for row in rows)]
    for kind in kinds:
        table.add_column(kind, justify="right", no_wrap=True)
    found: dict[str, dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        found[row.deviation][row.type].append(row)
    for id, by_type in found.items():
        mistake = mistake_named(id)
        table.add_row(
            id, mistake.topic if mistake is not None else "", *(_cell(by_type.get(kind, ())) for kind in kinds)
        )
    return table


def _cell(rows: Sequence[Row]) -> Text:
    if not rows:
        return Text("-", "dim")
    weakest = min(rows, key=lambda row: (row.well, row.best))
    style = "" if all(row.proved for row in rows) else "bold red"
    return Text(f"{weakest.cases} / {_short(min(row.best for row in rows))}", style)


def _short(number: float) -> str:
    return "inf" if number == float("inf") else f"{number:.1e}" if number >= 1000 else f"{number:.3g}"


def _write(rows: Sequence[Row], path: Path) -> None:
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(_COLUMNS)
            for r in rows:
                writer.writerow((r.deviation, r.clause, r.op, r.type, r.cases, r.well, f"{r.best:.6g}", r.by))
    except OSError as error:
        fail(f"{path}: {error.strerror or error}")


assert FEWEST == 2, "the command's help says two"
