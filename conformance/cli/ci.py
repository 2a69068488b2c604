"""Output of a run for other programs and for services of continuous integration."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from ..results.sections import sections_of, summary_text
from ..running.conclusion import summary_on
from ..running.run import Run, TargetRun
from ..workers.worker import one_line
from .display import STALE, problems_of
from .terminal import LINE

SUMMARY = "summary.md"
"""The summary in Markdown, in the folder of a run."""


def write_files(run: Run, junit: Path | None) -> None:
    """Write the summary (on GitHub also to the job's page) and the JUnit file. Raise OSError."""
    if junit is not None:
        from ...reports.junit import junit_xml

        plan = run.plan
        required = [r for t in run.targets for r in (*t.missing(plan.require), *t.special(plan.require_special))]
        junit.write_bytes(junit_xml({t.target.name: t.results for t in run.targets}, required))
    lines = ["# Conformance"]
    for target in run.targets:
        heading = f"{target.target.name} {target.description.get('version', '')}".rstrip()
        summary = summary_on(target, run)
        sections = sections_of(summary, target.findings, target.results)
        problems = [f"  {one_line(f'{label}: {text}', LINE)}" for label, text, _ in problems_of(target, run.plan)]
        # In an indented block no text of a runtime can format.
        lines += ["", textwrap.indent("\n".join([summary_text(heading, summary, sections), *problems]), "    ")]
    text = "\n".join([*lines, ""]).encode("utf-8", errors="backslashreplace")
    (run.folder / SUMMARY).write_bytes(text)
    if job := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(job).open("ab") as file:  # one file for all steps of a job
            file.write(text)


def on_github() -> bool:
    """Return whether a GitHub workflow runs this."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def github_marks(run: Run) -> Iterator[str]:
    """Yield lines that GitHub shows as marks on a job: new findings, and other reasons of the exit code."""
    from ..checking.formatters import github_command

    for target in run.targets:
        error = partial(github_command, "error", title=_title(target))
        for group in summary_on(target, run).groups:
            if not group.known:
                repeat = target.findings[group.problems[0]]["repeat"]
                yield error(f"{group.text} ({group.count}; {group.where}). To repeat it: {repeat}")
        for label, text, _ in problems_of(target, run.plan):
            yield github_command("warning" if label == STALE else "error", text, title=_title(target))


def _title(target: TargetRun) -> str:
    return f"onnxspec: {target.target.name} {target.description.get('version', '')}".strip()
