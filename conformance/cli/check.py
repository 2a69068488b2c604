"""``onnxspec check``: the recurrent nodes of models that break their operator's document."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from ..checking.check import check_model
from ..checking.formatters import github_annotations, lines_of, plain, sarif, summary
from ..checking.measured import read_measured
from ..checking.problem import Checked, Level
from ..checking.rule import rules
from ..checking.suppression import read_suppressions, suppressed, unused
from ..results.environment import version_of
from .command import PATH
from .terminal import console_on, fail, put, say, warn

_FORMS = ("text", "json", "sarif", "github")
_STYLES = {"error": "red", "warning": "yellow", "note": "cyan", "": ""}


@click.command()
@click.argument("models", metavar="[MODEL]...", type=PATH, nargs=-1)
@click.option("--format", "form", type=click.Choice(_FORMS), default="text", show_default=True, help="Output format.")
@click.option("--strict", is_flag=True, help="Also fail on warnings, notes and unchecked nodes.")
@click.option("--suppress", metavar="FILE", type=PATH, help="TOML file of accepted problems, each with its reason.")
@click.option(
    "--measured",
    metavar="RUN",
    type=PATH,
    multiple=True,
    help="Annotate nodes with the failures and refusals in RUN; repeatable.",
)
@click.option("--rules", "list_rules", is_flag=True, help="List the rules with their remedies, and exit.")
def check(
    models: Sequence[Path],
    form: str,
    strict: bool,
    suppress: Path | None,
    measured: Sequence[Path],
    list_rules: bool,
) -> None:
    """Find recurrent nodes of ONNX models that violate the ONNX specification, without running them.

    Exit code 0: no error; 1: an error was found, or onnxspec failed (with --strict: anything at all); 2: bad
    arguments, or a model that cannot be read.
    """
    if list_rules:
        put("".join(f"{rule.id}\t{rule.level.value}\t{rule.text}\t{rule.advice}\n" for rule in rules().values()))
        return
    if not models:
        fail("no model is given")
    entries = read_suppressions(suppress) if suppress is not None else []
    recorded = read_measured(measured or [])
    everything = []
    for model in models:
        checked = suppressed(check_model(model, measured=recorded), entries)
        everything.append(checked)
        if form == "text":
            _show(checked)
        elif form == "github":
            put("".join(f"{line}\n" for line in github_annotations(checked)))
    idle = [str(entry) for entry in unused(everything, entries)]
    version = version_of("onnxspec") or ""
    if form == "json":
        put(json.dumps(plain(everything, version, idle), indent=2, ensure_ascii=False) + "\n")
    elif form == "sarif":
        put(json.dumps(sarif(everything, version), indent=2, ensure_ascii=False) + "\n")
    elif form == "text" and len(everything) > 1:
        say(summary(everything))
    for line in idle:
        warn(f"this suppression covers nothing: {line}", "yellow")
    raise click.exceptions.Exit(_exit_code(everything, bool(idle), strict))


def _exit_code(everything: Sequence[Checked], idle: bool, strict: bool) -> int:
    if any(checked.unreadable for checked in everything):
        return 2
    counted = [problem for checked in everything for problem in checked.counted]
    if any(problem.level is Level.ERROR for problem in counted):
        return 1
    if any(unchecked.internal_error for checked in everything for unchecked in checked.unchecked):
        return 1
    left = counted or idle or any(checked.unchecked or checked.inconclusive for checked in everything)
    return 1 if strict and left else 0


def _show(checked: Checked) -> None:
    console = console_on(sys.stdout)
    for line, level in lines_of(checked):
        console.print(line, style=_STYLES[level], markup=False, emoji=False, soft_wrap=True)
