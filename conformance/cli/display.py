"""What a person sees of a run on a terminal: progress while it lasts, and a summary in words.

All text that comes from elsewhere (names, messages of runtimes) is never read as markup, and passes :mod:`.terminal`.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from ..diagnosis.failing_case import DIAGNOSED
from ..judging.judgement import FAILING, UNTRIED, Verdict
from ..results.answer import Answer, Hit, answer_of
from ..results.coverage import coverage_line
from ..results.interpreted import followed_interpretations, followed_line, shown_elements, shown_line
from ..results.records import Finding
from ..results.support import DECLINED, Problem, Tried
from ..running.events import CaseJudged, CasesFilled, Event, TargetBegun
from ..running.run import Plan, Run, TargetRun
from ..targets.target import Target
from ..workers.survey import is_command
from ..workers.worker import one_line
from .terminal import single

__all__ = ["RunDisplay", "answer_on", "cases_counted", "could_not_start", "summarize"]

_COLOURS = {Verdict.PASS: "green", Verdict.UNSUPPORTED: "yellow", Verdict.FALLBACK: "yellow"}
_MARGIN = 14
_PAUSE = 10.0  # seconds without a line, at least
_NAMED = 200  # characters of a name or a version
VALIDATION = "Input validation, of models that the document forbids and that ran (--no-illegal leaves them out):"
_LEGIBLE = 30  # characters of a message below which it says nothing


def _coloured(verdict: Verdict, count: int) -> Text:
    failing = verdict in FAILING or verdict in UNTRIED
    return Text(f"{count} {verdict.value}", "red" if failing else _COLOURS.get(verdict, "cyan"))


def _counts(run: TargetRun) -> Text:
    counts = run.counts
    return Text("  ").join(_coloured(v, counts[v.value]) for v in reversed(Verdict) if counts[v.value])


class _CountsColumn(ProgressColumn):
    """The verdicts so far."""

    def render(self, task: Task) -> Text:
        counts: Text = task.fields["counts"]
        return counts


class RunDisplay:
    """A progress bar for each target, with live counts. Where the output is no terminal, a line now and then.

    aside
        Where these lines go, which are no part of what a run says in the end.
    """

    def __init__(
        self,
        console: Console,
        plan: Plan,
        *,
        silent: bool = False,
        aside: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._aside = None if silent or console.file.isatty() else aside
        self._clock, self._begun, self._due = clock, clock(), _PAUSE
        self._progress = Progress(
            TextColumn("{task.description}", style="bold", markup=False),
            BarColumn(None, table_column=Column(min_width=4, max_width=24)),  # what gives way to the counts
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _CountsColumn(table_column=Column(no_wrap=True)),
            console=console,
            disable=silent or not console.file.isatty(),
        )
        self._run: TargetRun | None = None
        self._task: Any = None
        self._total = 0

    def __enter__(self) -> RunDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._progress.stop()

    def observe(self, event: Event) -> None:
        """Show what happens."""
        if self._progress.disable and self._aside is None:
            return
        if isinstance(event, CasesFilled):
            self._total += len(event.probes)
            self._progress.update(self._task, total=self._total)
            return
        if isinstance(event, TargetBegun):
            self._run, self._total = event.target, len(self._plan.probes_of(event.target.target))
            name = one_line(self._run.target.name, _NAMED)
            self._task = self._progress.add_task(name, total=self._total, counts=Text())
        elif not isinstance(event, CaseJudged) or self._run is None:
            return
        # Counting is cheap but not free: every tenth result is often enough for eyes.
        count = len(self._run.results)
        if self._aside is not None:
            self._tell(count, self._run, self._aside)
            return
        if isinstance(event, TargetBegun) or count % 10 == 0 or count == self._total:
            self._progress.update(self._task, completed=count, counts=_counts(self._run))

    def _tell(self, count: int, run: TargetRun, console: Console) -> None:
        """A line, if one is due: the longer a run takes, the longer nobody looks."""
        passed = self._clock() - self._begun
        if passed < self._due:
            return
        self._due = passed + max(_PAUSE, passed / 4)
        line = Text(f"{run.target.name[:_NAMED]}: {count:,} of {self._total:,} cases after {passed:.0f} s: ")
        console.print(single(line + _counts(run)))


def summarize(run: Run, console: Console, *, only_new: bool = False) -> None:
    """Print what the run found, target by target; of those with nothing new, nothing if only that is asked for."""
    for target in run.targets:
        version = str(target.description.get("version", ""))
        if only_new and not _is_news(target, run):
            continue
        console.print()
        heading = single(Text.assemble((target.target.name[:_NAMED], "bold"), f" {version[:_NAMED]}".rstrip(), ": "))
        console.print(heading + _counts(target))
        if target.unavailable:
            _entry(console, Text("failed", "bold red"), [Text(could_not_start(target.target, target.unavailable))])
        if any(result.verdict is not Verdict.UNAVAILABLE for result in target.results):
            answer = answer_on(target, run)
            if only_new:
                _hits(target, [hit for hit in answer.relied_on if not hit.known], console)
                _validation(target, [hit for hit in answer.validation if not hit.known], console)
            else:
                for line in answer_lines(answer):
                    _entry(console, Text(""), [line], indent=2)
                _findings(target, answer, console)
        for entry in target.stale:
            text = f"no longer fails, though it is expected to: {entry.reason}"
            _entry(console, Text("stale", "yellow"), [Text(text)])
        left_out = [result for result in target.results if result.verdict is Verdict.NOT_RUN]
        if left_out:
            text = f"{cases_counted(len(left_out))}, e.g. {left_out[0].case}: {left_out[0].message}"
            _entry(console, Text("not run", "bold red"), [Text(text)])
        missing = target.missing(run.plan.require)
        if missing:
            text = f"does not support what is required in {cases_counted(len(missing))}, e.g. {missing[0].case}"
            _entry(console, Text("missing", "bold red"), [Text(text)])
        special = target.special(run.plan.require_special)
        if special:
            text = f"loses special values, which are required, in {cases_counted(len(special))}, e.g. {special[0].case}"
            _entry(console, Text("required", "bold red"), [Text(text)], special[0].repeat)


def _is_news(target: TargetRun, run: Run) -> bool:
    """Whether a target has something that is not known already, or that nobody could know."""
    missing = target.missing(run.plan.require)
    missing = missing or target.special(run.plan.require_special)
    return bool(target.unavailable or target.unexpected or target.stale or missing or target.counts["not-run"])


def answer_on(target: TargetRun, run: Run) -> Answer:
    """The first lines on a target."""
    alike = Counter(
        Tried(r.op, r.version, r.type, r.verdict.value, r.reason or "", r.expected, 0) for r in target.results
    )
    reasons = {result.case: result.reason or "" for result in target.results}
    problems = [
        Problem(
            finding["title"],
            finding["kind"],
            finding["verdict"],
            reasons.get(finding["smallest"], ""),
            finding["conditions"],
            tuple(finding["clauses"]),
            tuple(finding["operators"]),
            tuple(finding["types"]),
            len(finding["cases"]),
            finding["expected"],
            finding["why"],
            finding["smallest"],
        )
        for finding in target.findings
    ]
    tried = [one._replace(times=count) for one, count in alike.items()]
    reach = coverage_line(target.coverage) if target.coverage is not None else ""
    return answer_of(
        tried,
        problems,
        stale=len(target.stale),
        lists_used=run.plan.expected,
        coverage=reach,
        follows=followed_line(followed_interpretations(target.results)),
        shown=shown_line(shown_elements(target.results)),
    )


def answer_lines(answer: Answer) -> Iterator[Text]:
    """The lines that answer whoever must decide; the report's page has the same ones."""
    style = {"conforms": "bold green", "few": "bold yellow", "departs": "bold red"}.get(answer.state, "bold cyan")
    yield Text.assemble("Conforms: ", (answer.conforms, style))
    yield Text.assemble("Since the last known state: ", (answer.since, "bold"))
    lacking = f". Not: {answer.lacking}" if answer.lacks else ""
    yield Text(f"Supports: {answer.supported}{lacking}")
    if answer.coverage:
        yield Text(f"Coverage: {answer.coverage}")
    if answer.shown:
        yield Text(f"Shown: {answer.shown}")
    if answer.follows:
        yield Text(f"Follows against the letter: {answer.follows}")
    if answer.relied_on:
        yield Text("It hits you if you rely on:")


def could_not_start(target: Target, reason: str) -> str:
    """That a target could not start and why, with a hint where its runtime is not installed here."""
    hint = "; 'onnxspec targets' says what installs it"
    missing = "No module named" in reason and target.adapter != "backend" and not is_command(target)
    return f"could not start: {reason}{hint if missing else ''}"


def _hits(target: TargetRun, hits: Iterable[Hit], console: Console) -> None:
    for hit in hits:
        findings = [target.findings[place] for place in hit.problems]
        first = findings[0]
        label = Text("known", "dim") if hit.known else Text("NEW", "bold red")
        detail = first["why"] or first["message"]
        lines = [_headline(hit.text, findings), *([Text(detail, "dim")] if detail else [])]
        # Of what is known there is nothing to look up; the report has its command all the same.
        _entry(console, label, lines, "" if hit.known else first["repeat"])


def _validation(target: TargetRun, hits: Sequence[Hit], console: Console) -> None:
    if hits:
        _entry(console, Text(""), [Text(VALIDATION)], indent=2)
        _hits(target, hits, console)


def _findings(target: TargetRun, answer: Answer, console: Console) -> None:
    _hits(target, answer.relied_on, console)
    _validation(target, answer.validation, console)
    for finding in target.findings:
        if finding["kind"] in _NO_FAILURE:
            lines = [_headline(finding["title"], [finding]), *([Text(m, "dim")] if (m := finding["message"]) else [])]
            _entry(console, Text("finding", "dim"), lines, finding["repeat"])
    for line in _notes(target):
        _entry(console, Text("note", "dim"), [Text(line)])
    for finding in target.findings:
        if finding["verdict"] in DECLINED:
            _entry(console, Text(finding["verdict"], "dim"), [_refusal(finding, console)])
    if not target.findings:
        text = "nothing to report: all cases that could be judged passed"
        _entry(console, Text(""), [Text(text if target.results else "no case ran")])


_NO_FAILURE = ("convention", "special-values", "mixed", "biased")


def _headline(text: str, findings: Sequence[Mapping[str, Any]]) -> Text:
    """What happens, and in how many cases of what."""
    count, new = sum(len(f["cases"]) for f in findings), sum(f["new"] for f in findings)
    some = f", {new} of them new" if 0 < new < count else ""
    cases = f" ({cases_counted(count)}{some}, {_extent(*findings)})"
    first = findings[0]
    unexplained = first["verdict"] in _EXPLAINABLE and not first["fault"] and not first["expected"]
    remark = "; no known fault explains it" if unexplained else ""
    return Text.assemble(text, (f"{cases}{remark}", "dim"))


# Of what is inaccurate the title says by which wider class it is right.
_EXPLAINABLE = frozenset(verdict.value for verdict in DIAGNOSED - {Verdict.INACCURATE})


def _extent(*findings: Mapping[str, Any]) -> str:
    return ", ".join(dict.fromkeys(name for key in ("operators", "types") for f in findings for name in f[key]))


def _refusal(finding: Finding, console: Console) -> Text:
    """What is refused, and in a dim voice the words of the first refusal, so far as the line has room for them. Where
    nothing is known of what is refused but these words, they stand for it."""
    extent = f" ({cases_counted(len(finding['cases']))}, {_extent(finding)})"
    if finding["message"] and not finding["conditions"]:
        message = Text(finding["message"])
        if console.file.isatty():
            message.truncate(max(console.width - _MARGIN - len(extent), _LEGIBLE), overflow="ellipsis")
        return message.append(extent)
    line = Text(f"{finding['conditions']}{extent}")
    room = console.width - _MARGIN - len(line) - 2
    if finding["message"] and (not console.file.isatty() or room >= _LEGIBLE):
        message = Text(f": {finding['message']}", "dim")
        if console.file.isatty():
            message.truncate(room + 2, overflow="ellipsis")
        line.append(message)
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


def _entry(console: Console, label: Text, lines: Iterable[Text], command: str = "", indent: int = _MARGIN) -> None:
    """A label in the margin and lines beside it. A command is not broken into lines: it is there to be copied."""
    margin = Text(f"\n{' ' * indent}")
    lines = [single(line) for line in lines]
    if console.file.isatty():
        lines = [part for line in lines for part in line.wrap(console, max(console.width - indent, 20))]
    shown = [*lines, *([single(Text(command, "dim"))] if command else [])]
    label.pad_right(indent - 2 - len(label))
    console.print(Text.assemble("  ", label, margin.join(shown)), soft_wrap=True)
