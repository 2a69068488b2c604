"""What ``onnxspec prove`` says of interactions: how many faults "X goes wrong when Y and Z" a profile shows."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from ...reference import FORMATS
from ..proof.exposure import Run
from ..proof.interactions import GOAL, LEAST, Score, faults_in, faults_of, tally

__all__ = ["interaction_complaints", "interaction_table"]

_LEGEND = (
    'faults "X goes wrong", "X goes wrong when Y", "... when Y and Z" that cases show, of all that can occur and show; '
    "twice: by two cases or more; core is meant to show "
) + ", ".join(f"{goal:.1%} of {name}" for name, goal in GOAL.items())
_NAMED = 8  # surviving pairs that are named

Measured = Sequence[Sequence[Run]]
"""What the runs of each case show, its own one first."""


def interaction_table(measured: Measured) -> Table:
    """A row for each operator, and one for each of its types by itself."""
    table = Table(box=SIMPLE, caption=_LEGEND, caption_justify="left")
    for title in ("operator", "type", "cases", "parts", "pairs", "twice", "triples"):
        table.add_column(title, justify="left" if title in ("operator", "type") else "right", no_wrap=True)
    for op, cases in _by_operator(measured).items():
        whole = tally(op, cases).score(faults_of(op))
        table.add_row(op, "all", str(len(cases)), *_cells(whole, must=True))
        for kind in FORMATS:
            own = [runs for runs in cases if runs[0][0].type == kind]
            if own:
                table.add_row("", kind, str(len(own)), *_cells(tally(op, own).score(faults_in(op, kind)), must=False))
    return table


def interaction_complaints(measured: Measured) -> list[str]:
    """What falls short of what must be shown, and what is shown though it is held to be impossible, in a line each."""
    complaints = []
    for op, cases in _by_operator(measured).items():
        tallied, faults = tally(op, cases), faults_of(op)
        score = tallied.score(faults)
        for name, least in LEAST.items():
            shown, there = getattr(score, name)
            if shown < least * there:
                complaints.append(f"{op}: {_share(shown, there)} of {name} are shown, at least {least:.1%} must be")
        left = tallied.surviving(faults)
        if left and score.pairs[0] < LEAST["pairs"] * score.pairs[1]:
            named = "; ".join(f"{part} when {context}" for part, context in left[:_NAMED])
            more = f"; and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            complaints.append(f"{op}: no case shows {named}{more}")
        wrong = [" when ".join((fault[0], " and ".join(fault[1:]))) for fault in tallied.contradicting(faults)]
        complaints += [f"{op}: shown, though it is held to be impossible: {fault}" for fault in wrong]
    return complaints


def _by_operator(measured: Measured) -> dict[str, list[Sequence[Run]]]:
    by: dict[str, list[Sequence[Run]]] = {}
    for runs in measured:
        by.setdefault(runs[0][0].op, []).append(runs)
    return by


def _cells(score: Score, *, must: bool) -> list[Text]:
    cells = [Text(f"{score.parts[0]}/{score.parts[1]}")]
    for name, least in LEAST.items():
        shown, there = getattr(score, name)
        cells.append(Text(_share(shown, there), "bold red" if must and shown < least * there else ""))
    return cells


def _share(shown: int, there: int) -> str:
    return f"{100 * shown / there:.2f} %" if there else "-"
