"""What a person sees of a run on a terminal: progress while it lasts, and a summary in words.

All text that comes from elsewhere (names, messages of runtimes) is printed as it stands, never read as markup.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, TextIO, cast

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from .diagnosis import DIAGNOSED
from .judgement import FAILING, Verdict
from .result import Result
from .run import Plan, Run, TargetRun
from .target import Target
from .target_survey import is_command

__all__ = ["LastingStream", "RunDisplay", "cases_counted", "console_on", "could_not_start", "drop", "summarize"]

_COLOURS = {Verdict.PASS: "green", Verdict.REFUSED: "yellow", Verdict.UNJUDGED: "cyan"}
_UNWRAPPED = 100_000
_MARGIN = 11
_GONE = (errno.EPIPE, errno.EIO, errno.EINVAL)  # a pipe without a reader, a closed terminal, and Windows for both
_LEGIBLE = 30  # characters of a message below which it says nothing


def drop(stream: TextIO) -> None:
    """Send all that a stream still holds or will be given nowhere, or the interpreter would stumble over it when it
    ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


class LastingStream:
    """A stream whose reader may go away (a pipe, a closed terminal): what nobody takes is dropped, work goes on.

    What cannot be written for another reason, such as a full disk, raises OSError; complaints on the standard error are
    dropped then, too.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write, or drop."""
        try:
            return self._stream.write(text)
        except OSError as error:
            return self._lost(error)

    def flush(self) -> None:
        """Flush, or drop."""
        try:
            self._stream.flush()
        except OSError as error:
            self._lost(error)

    def _lost(self, error: OSError) -> int:
        if error.errno not in _GONE and self._stream is not sys.stderr:
            raise error
        drop(self._stream)
        return 0


def console_on(stream: TextIO) -> Console:
    """A console that colours and wraps on terminals only: files and pipes get every line whole."""
    lasting = cast(TextIO, LastingStream(stream))
    return Console(file=lasting, highlight=False, width=None if stream.isatty() else _UNWRAPPED)


def _coloured(verdict: Verdict, count: int) -> Text:
    failing = verdict in FAILING or verdict is Verdict.UNAVAILABLE
    return Text(f"{count} {verdict.value}", "red" if failing else _COLOURS[verdict])


def _counts(run: TargetRun) -> Text:
    counts = run.counts
    return Text("  ").join(_coloured(v, counts[v.value]) for v in reversed(Verdict) if counts[v.value])


class _CountsColumn(ProgressColumn):
    """The verdicts so far."""

    def render(self, task: Task) -> Text:
        counts: Text = task.fields["counts"]
        return counts


class RunDisplay:
    """A progress bar for each target, with live counts; silent where the output is no terminal."""

    def __init__(self, console: Console, plan: Plan) -> None:
        self._plan = plan
        self._progress = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(table_column=Column(max_width=24, ratio=1)),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _CountsColumn(),
            console=console,
            disable=not console.file.isatty(),
        )
        self._tasks: dict[int, Any] = {}
        self._total = 0

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
            self._total = len(self._plan.probes_of(run.target))
            task = self._progress.add_task(run.target.name, total=self._total, counts=Text())
            self._tasks[id(run)] = task
        # Counting is cheap but not free: every tenth result is often enough for eyes.
        if self._progress.disable:
            return
        if result is None or len(run.results) % 10 == 0 or len(run.results) == self._total:
            self._progress.update(self._tasks[id(run)], completed=len(run.results), counts=_counts(run))


def summarize(run: Run, console: Console) -> None:
    """Print what the run found, target by target."""
    for target in run.targets:
        version = str(target.description.get("version", ""))
        console.print()
        console.print(Text.assemble((target.target.name, "bold"), f" {version}".rstrip(), ": ", _counts(target)))
        if target.unavailable:
            _entry(console, Text("failed", "bold red"), [Text(could_not_start(target.target, target.unavailable))])
        if any(result.verdict is not Verdict.UNAVAILABLE for result in target.results):
            _findings(target, run, console)
        for entry in target.stale:
            text = f"no longer fails, though it is expected to: {entry.reason}"
            _entry(console, Text("stale", "yellow"), [Text(text)])
        missing = target.missing(run.plan.require)
        if missing:
            text = f"refuses what is required in {cases_counted(len(missing))}, e.g. {missing[0].case}"
            _entry(console, Text("missing", "bold red"), [Text(text)])


def could_not_start(target: Target, reason: str) -> str:
    """That a target could not start and why, with a hint where its runtime is not installed here."""
    hint = "; 'onnxspec targets' says what installs it"
    missing = "No module named" in reason and target.adapter != "backend" and not is_command(target)
    return f"could not start: {reason}{hint if missing else ''}"


def _findings(target: TargetRun, run: Run, console: Console) -> None:
    refused = [finding for finding in target.findings if finding["kind"] == "refused"]
    others = [finding for finding in target.findings if finding["kind"] != "refused"]
    for finding in sorted(others, key=lambda f: (f["kind"] in _NO_FAILURE, f["expected"])):
        label = "finding" if finding["kind"] in _NO_FAILURE else "known" if finding["expected"] else "NEW"
        detail = finding["why"] or finding["message"]
        lines = [_headline(finding), *([Text(detail, "dim")] if detail else [])]
        # Of what is known there is nothing to look up; the report has its command all the same.
        command = "" if label == "known" else finding["repeat"]
        _entry(console, Text(label, "bold red" if label == "NEW" else "dim"), lines, command)
    for line in _notes(target):
        _entry(console, Text("note", "dim"), [Text(line)])
    for finding in refused:
        _entry(console, Text("refused", "dim"), [_refusal(finding, console)])
    if not target.findings:
        text = "nothing to report: all cases that could be judged passed"
        _entry(console, Text(""), [Text(text if target.results else "no case ran")])


_NO_FAILURE = ("convention", "mixed", "biased")


def _headline(finding: Mapping[str, Any]) -> Text:
    count, new = len(finding["cases"]), finding["new"]
    some = f", {new} of them new" if 0 < new < count else ""
    cases = f" ({cases_counted(count)}{some}, {_extent(finding)})"
    unexplained = finding["verdict"] in _EXPLAINABLE and not finding["deviation"] and not finding["expected"]
    remark = "; no known mistake explains it" if unexplained else ""
    return Text.assemble(finding["title"], (f"{cases}{remark}", "dim"))


# Of what is inaccurate the title says by which wider class it is right.
_EXPLAINABLE = frozenset(verdict.value for verdict in DIAGNOSED - {Verdict.INACCURATE})


def _extent(finding: Mapping[str, Any]) -> str:
    return ", ".join((*finding["operators"], *finding["types"]))


def _refusal(finding: Mapping[str, Any], console: Console) -> Text:
    """What is refused, and in a dim voice the words of the first refusal, so far as the line has room for them. Where
    nothing is known of what is refused but these words, they stand for it."""
    extent = f" ({cases_counted(len(finding['cases']))}, {_extent(finding)})"
    if finding["message"] and not finding["conditions"]:
        said = Text(finding["message"])
        if console.file.isatty():
            said.truncate(max(console.width - _MARGIN - len(extent), _LEGIBLE), overflow="ellipsis")
        return said.append(extent)
    line = Text(f"{finding['title'].removeprefix('refuses ')}{extent}")
    room = console.width - _MARGIN - len(line) - 2
    if finding["message"] and (not console.file.isatty() or room >= _LEGIBLE):
        said = Text(f": {finding['message']}", "dim")
        if console.file.isatty():
            said.truncate(room + 2, overflow="ellipsis")
        line.append(said)
    return line


def _notes(target: TargetRun) -> Iterator[str]:
    """What is no fault, but good to know."""
    for flag, text in (
        ("nondeterministic", "repeated runs of the same data differ"),
        ("outputs-differ-from-twin", "outputs differ from those of the same node with all outputs asked for"),
    ):
        count = sum(flag in result.flags and not result.failing for result in target.results)
        if count:
            yield f"{text}, within what is allowed, in {cases_counted(count)}"


def cases_counted(count: int) -> str:
    """So many cases, in words."""
    return f"{count} case{'' if count == 1 else 's'}"


def _entry(console: Console, label: Text, lines: Iterable[Text], command: str = "") -> None:
    """A label in the margin and lines beside it. A command is not broken into lines: it is there to be copied."""
    margin = Text(f"\n{' ' * _MARGIN}")
    if console.file.isatty():
        lines = [part for line in lines for part in line.wrap(console, max(console.width - _MARGIN, 20))]
    shown = [*lines, *([Text(command, "dim")] if command else [])]
    label.pad_right(_MARGIN - 2 - len(label))
    console.print(Text.assemble("  ", label, margin.join(shown)), soft_wrap=True)
