"""``onnxspec diff``: what is different between two runs."""

from __future__ import annotations

import enum
import json
from pathlib import Path
from typing import Annotated, Optional

import typer

from .command import app, fail, put, why

__all__ = ["diff"]


class Form(str, enum.Enum):
    """In what form a difference is written."""

    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    JSON = "json"


@app.command()
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Folder of the earlier run.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="Folder of the later run.")],
    form: Annotated[Form, typer.Option("--format", "-f", help="How it is written.")] = Form.TEXT,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", metavar="FILE", help="File to write; without it the standard output."),
    ] = None,
) -> None:
    """Say what got worse, better or otherwise different between two runs.

    Targets are compared that have one name in both; where each run has one target only, these two. Cases that
    only one run has are told apart and decide nothing.

    Exit code 0: nothing got worse; 1: a case broke, one is no longer supported, or accuracy has a wider grade;
    2: usage, or a run cannot be read.
    """
    from ...reports.comparison import as_json, compare
    from ...reports.run import read_run

    earlier, later = read_run(old), read_run(new)
    for run in (earlier, later):
        if not run.readable:
            fail(" ".join(run.problems))
    comparison = compare(earlier, later)
    if not comparison.targets:
        fail(
            f"the runs have no target in common: {', '.join(comparison.only_old) or 'none'} in {old}, "
            f"{', '.join(comparison.only_new) or 'none'} in {new}"
        )
    if form is Form.MARKDOWN:
        from ...reports.markdown import difference_markdown

        text = difference_markdown(comparison)
    elif form is Form.HTML:
        from ...reports.page import render_difference

        text = render_difference(comparison)
    elif form is Form.JSON:
        text = json.dumps(as_json(comparison), indent=1, allow_nan=False) + "\n"
    else:
        from ...reports.difference_text import difference_text

        text = difference_text(comparison)
    if out is None:
        put(text)
    else:
        try:
            out.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            fail(why(error))
    raise typer.Exit(int(comparison.worse))
