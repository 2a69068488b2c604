"""A run on a terminal: progress, then a summary.

Foreign text (names, messages of runtimes) is never read as markup, and passes :mod:`.terminal`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from ..judging.judgement import DECLINED, Verdict
from ..judging.vocabulary import word
from ..results.lines import CasesAdded, Line
from ..results.result import Result
from ..results.sections import FAILS, NEW, Item, Section, first_lines, sections_of
from ..results.summary import Summary
from ..running.conclusion import summary_on
from ..running.run import Plan, Run, TargetRun
from ..targets.target import Target
from ..text import plural
from ..workers.survey import way_to_install
from ..workers.worker import one_line
from .terminal import single, warn

_MARGIN = 15
_PAUSE = 30.0  # seconds
_NAMED = 200  # characters of a name or a version
_LEGIBLE = 30  # characters of a message below which it says nothing


def _counts(run: TargetRun) -> Text:
    counts, verdicts = run.counts, [verdict.value for verdict in reversed(Verdict)]
    shown = [Text(f"{counts[v]:,} {v}", word(v).colour) for v in verdicts if counts[v]]
    return Text("  ", no_wrap=True, overflow="ellipsis").join(shown)


class _CountsColumn(ProgressColumn):
    """Column of verdicts so far."""

    def render(self, task: Task) -> Text:
        counts: Text = task.fields["counts"]
        return counts


class RunDisplay:
    """Progress bar with live counts for each target; without a terminal, a line on standard error every 30 seconds."""

    def __init__(self, console: Console, plan: Plan, *, silent: bool = False) -> None:
        self._plan = plan
        hidden = silent or not console.file.isatty()
        self._next_line = math.inf if silent or not hidden else time.monotonic() + _PAUSE
        self._progress = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            # Where a terminal is narrow, the bar gives way first, then the counts.
            BarColumn(None, table_column=Column(min_width=4, max_width=24)),
            MofNCompleteColumn(table_column=Column(no_wrap=True)),
            TimeElapsedColumn(table_column=Column(no_wrap=True)),
            _CountsColumn(),
            console=console,
            disable=hidden,
        )
        self._target: Target | None = None
        self._task: Any = None
        self._total = 0

    def __enter__(self) -> RunDisplay:
        self._progress.start()
        self._begin(self._plan.targets[0])  # a bar from the start, because a runtime may take long to start
        return self

    def __exit__(self, *error: object) -> None:
        self._progress.stop()

    def _begin(self, target: Target) -> None:
        self._target, self._total = target, len(self._plan.probes_of(target))
        self._task = self._progress.add_task(one_line(target.name, _NAMED), total=self._total, counts=Text())

    def observe(self, run: TargetRun, line: Line) -> None:
        """Handle a line of the results."""
        if run.target != self._target:
            self._begin(run.target)
        if isinstance(line, CasesAdded):
            self._total += len(line.cases)
            self._progress.update(self._task, total=self._total)
        elif isinstance(line, Result):
            count = len(run.results)
            if time.monotonic() >= self._next_line:
                self._next_line = time.monotonic() + _PAUSE
                warn(f"{run.target.name}: {count:,} of {self._total:,} cases: {_counts(run).plain}")
            # Counting is cheap but not free: every tenth result is often enough for eyes.
            if not self._progress.disable and (count % 10 == 0 or count == self._total):
                diagnosing = count == self._total and run.unexpected and self._plan.draws is None
                counts = Text("diagnosing failures") if diagnosing else _counts(run)
                self._progress.update(self._task, completed=count, counts=counts)


def summarize(run: Run, console: Console, *, only_new: bool = False) -> None:
    """Print the findings of a run by target; `only_new` leaves out targets without new ones."""
    for target in run.targets:
        version = str(target.description.get("version", ""))
        problems = list(problems_of(target, run.plan))
        if only_new and not (problems or target.unexpected):
            continue
        console.print()
        heading = single(Text.assemble((target.target.name[:_NAMED], "bold"), f" {version[:_NAMED]}".rstrip(), ": "))
        console.print(heading + _counts(target))
        if any(result.verdict is not Verdict.UNAVAILABLE for result in target.results):
            _show(target, summary_on(target, run), console, only_new=only_new)
        for label, text, command in problems:
            _entry(console, Text(label, "yellow" if label == STALE else "bold red"), [Text(text)], command)


STALE = "stale"
"""The label of an entry of a list of known failures that no longer fails."""


def problems_of(target: TargetRun, plan: Plan) -> Iterator[tuple[str, str, str]]:
    """Yield problems that are no findings: label, text, and a command, which may be empty."""
    if target.unavailable:
        yield "failed", could_not_start(target.target, target.unavailable), ""
    for entry in target.stale:
        yield STALE, f"no longer fails, though it is expected to: {entry.reason}", ""
    for verdict in (Verdict.NOT_RUN, Verdict.NOT_JUDGED):
        left_out = [result for result in target.results if result.verdict is verdict]
        if left_out:
            text = f"{plural(len(left_out))}, e.g. {left_out[0].case}: {left_out[0].message}"
            yield verdict.value.replace("-", " "), text, ""
    for internal_error in target.internal_errors:
        yield "error", f"{internal_error}; this is not a failure of the target", ""
    if missing := target.missing(plan.require):
        text = f"does not support what is required in {plural(len(missing))}, e.g. {missing[0].case}"
        yield "missing", text, ""
    if special := target.special(plan.require_special):
        text = f"loses special values, which are required, in {plural(len(special))}, e.g. {special[0].case}"
        yield "required", text, special[0].repeat or ""


def _show(target: TargetRun, summary: Summary, console: Console, *, only_new: bool) -> None:
    """Print the first screen: answer, failures, refusals, remarks."""
    style = {"conforms": "bold green", "known": "bold yellow", "lacks": "bold yellow", "departs": "bold red"}.get(
        summary.state, "bold cyan"
    )
    for number, (name, text) in enumerate([] if only_new else first_lines(summary)):
        _entry(console, Text(""), [Text.assemble(f"{name}: ", (text, "" if number else style))], indent=2)
    for section in sections_of(summary, target.findings, target.results, only_new=only_new):
        _print_section(section, console)


def _print_section(section: Section, console: Console) -> None:
    if section.heading:
        _entry(console, Text(""), [Text(section.heading)], indent=2)
    for item in section.items:
        if item.label in DECLINED:
            _entry(console, Text(item.label, "dim"), [_refusal(item, console)])
            continue
        label = Text(item.label, "bold red" if item.label in (NEW, FAILS) else "dim")
        lines = [Text.assemble(item.text, (item.extent, "dim")), Text(item.message, "dim")]
        _entry(console, label, [line for line in lines if line], item.command)


def could_not_start(target: Target, reason: str) -> str:
    """Return a message for a target that could not start, with a hint if a module of a known package is missing."""
    known = "No module named" in reason and way_to_install(target, reason)
    hint = "; 'onnxspec targets' says what installs it" if known else ""
    return f"could not start: {reason}{hint}"


def _refusal(item: Item, console: Console) -> Text:
    """Return a refused feature and, dimmed, as much of the first refusal's message as fits."""
    line = Text(f"{item.text}{item.extent}")
    terminal, room = console.file.isatty(), console.width - _MARGIN - len(line) - 2
    if item.message and (room >= _LEGIBLE or not terminal):
        message = Text(f": {item.message}", "dim")
        if terminal:
            message.truncate(room + 2, overflow="ellipsis")
        line.append(message)
    return line


def _entry(console: Console, label: Text, lines: Iterable[Text], command: str = "", indent: int = _MARGIN) -> None:
    """Print a label in the margin and lines beside it. A command is not wrapped, so that it can be copied."""
    indent = indent if label or command else 2
    margin = Text(f"\n{' ' * indent}")
    lines = [single(line) for line in lines]
    if console.file.isatty():
        lines = [part for line in lines for part in line.wrap(console, max(console.width - indent, 20))]
    shown = [*lines, *([single(Text(command, "dim"))] if command else [])]
    label.pad_right(indent - 2 - len(label))
    console.print(Text.assemble("  ", label, margin.join(shown)), soft_wrap=True)
