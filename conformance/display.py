"""What a person sees of a run on a terminal: progress while it lasts, and a summary in words."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from .engine import Run, TargetRun
from .findings import findings_of
from .result import Result
from .verdict import FAILING, Verdict

__all__ = ["RunDisplay", "summarize"]

_COLOURS = {Verdict.PASS: "green", Verdict.REFUSED: "yellow", Verdict.UNJUDGED: "cyan"}


def _coloured(verdict: Verdict, count: int) -> str:
    colour = "red" if verdict in FAILING or verdict is Verdict.UNAVAILABLE else _COLOURS[verdict]
    return f"[{colour}]{count} {verdict.value}[/]"


def _counts(run: TargetRun) -> str:
    counts = run.counts
    return "  ".join(_coloured(v, counts[v.value]) for v in reversed(Verdict) if counts[v.value])


class RunDisplay:
    """A progress bar for each target, with live counts; silent where the output is no terminal."""

    def __init__(self, console: Console, total: int) -> None:
        self._total = total
        self._progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[counts]}"),
            console=console,
            disable=not console.is_terminal,
        )
        self._tasks: dict[int, TaskID] = {}

    def __enter__(self) -> RunDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def observe(self, run: TargetRun, result: Result | None) -> None:
        """What the engine tells of a target."""
        if result is None:
            task = self._progress.add_task(escape(run.target.name), total=self._total, counts="")
            self._tasks[id(run)] = task
        # Counting is cheap but not free: every tenth result is often enough for eyes.
        if result is None or len(run.results) % 10 == 0 or len(run.results) == self._total:
            self._progress.update(self._tasks[id(run)], completed=len(run.results), counts=_counts(run))


def summarize(run: Run, console: Console) -> None:
    """Print what the run found, target by target."""
    for target in run.targets:
        console.print()
        version = target.description.get("version", "")
        console.print(f"[bold]{escape(target.target.name)}[/] {escape(str(version))}: {_counts(target)}")
        if target.unavailable:
            console.print(f"  [red]could not start:[/] {escape(target.unavailable)}")
            continue
        _findings(target, run, console)
        for entry in target.stale:
            console.print(f"  [yellow]no longer fails, though it is expected to:[/] {escape(entry.reason)}")
        for result in target.missing(run.plan.require)[:1]:
            count = len(target.missing(run.plan.require))
            console.print(f"  [red]refuses what is required[/] in {count} cases, e.g. {escape(result.case)}")


def _findings(target: TargetRun, run: Run, console: Console) -> None:
    found = findings_of(target.results, {spec.id: spec for spec in run.plan.specs})
    if not found:
        console.print("  nothing to report: all cases that ran passed")
        return
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    rank = {"refused": 3, "biased": 2, "convention": 2}
    for finding in sorted(found, key=lambda f: (rank.get(f["kind"], 0), f["expected"], -len(f["cases"]))):
        kind = finding["kind"]
        label = {"refused": "refused", "biased": "finding", "convention": "finding"}.get(
            kind, "known" if finding["expected"] else "[bold red]NEW[/]"
        )
        count = len(finding["cases"])
        text = f"{escape(finding['title'])} [dim]({count} case{'s' if count != 1 else ''}, {', '.join(finding['types'])})[/]"
        detail = finding["why"] or finding["message"]
        text += f"\n[dim]{escape(detail)}[/]" if detail else ""
        if kind != "refused":
            text += f"\n[dim]{escape(finding['repeat'])}[/]"
        table.add_row(f"  {label}", text)
    console.print(table)
