"""The application: its commands and their help.

Only click is loaded here. A command is loaded when it is used, because that takes a second, and help and completion
should not wait for it.
"""

from __future__ import annotations

import importlib
import io
import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from ..workers.one_thread import one_thread

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run:run", "Run test cases on targets and report what is wrong."),
    "list": ("directories:list_cases", "List the cases of a profile, one a line."),
    "check": (
        "check:check",
        "Find recurrent nodes of ONNX models that violate the ONNX specification, without running them.",
    ),
    "compare": (
        "compare:compare",
        "Compare a model with a framework's results, and find the cause of a difference.",
    ),
    "clauses": ("clauses:clauses", "Show the clauses of an operator (GRU), of one version of it (GRU-3), or of all."),
    "diff": ("report:diff", "Compare two runs: what got worse, better or otherwise different."),
    "generate": ("directories:generate_cases", "Write cases as ONNX test-case directories, with a manifest."),
    "explain": ("explain:explain", "Show one case, step by step."),
    "fuzz": ("fuzz:fuzz", "Run random cases beyond the profiles, and report failures as run does."),
    "merge": ("merge:merge", "Merge the shards of a run."),
    "prove": ("prove:prove_cases", "Test the test suite (mutation testing)."),
    "report": ("report:report", "Write one report of several runs."),
    "site": ("report:site", "Write a static site: what each runtime computes correctly, and since which release."),
    "certify": (
        "certify:certify",
        "Make a certification package, which anybody can verify without the hardware.",
    ),
    "verify": (
        "certify:verify_package",
        "Verify a certification package: recompute its claims from the recorded outputs.",
    ),
    "targets": ("targets:list_targets", "List the targets, and how to install missing ones."),
}
"""Each command, in the order of the help: its module and function, and the first sentence of its help."""

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


def load_command(name: str) -> click.Command:
    """Return a command, with the module that it is in."""
    module, _, function = COMMANDS[name][0].partition(":")
    with one_thread():
        command: click.Command = getattr(importlib.import_module(f".{module}", __package__), function)
    command.name, command.context_settings = name, _SETTINGS
    return command


class Commands(click.Group):
    """The command ``onnxspec``, which loads subcommands lazily."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Load a command; return None if there is none of that name."""
        return load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the summaries of the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: Any) -> Any:
        """Run a command; turn user errors, and exceptions of foreign operators, into one line."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            from .terminal import fail

            fail("interrupted", 130)
        except Exception as error:
            from ...reference.errors import UserError, format_internal_error, operators_in
            from .terminal import fail

            if isinstance(error, UserError):
                fail(str(error), error.code)
            operators = operators_in(error)
            if not operators:
                raise
            fail(f"error in the code of {', '.join(operators)}: {format_internal_error(error)}")


@click.command("onnxspec", cls=Commands, no_args_is_help=True, context_settings=_SETTINGS)
@click.version_option(package_name="onnxspec", message="%(prog)s %(version)s")
def app() -> None:
    """Does this runtime compute what the ONNX specification says, on every legal configuration?"""


def main() -> None:
    """Entry point of the command ``onnxspec``."""
    # An output that is closed (">&-") is nowhere; that stays open as long as the process.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False, prog_name="onnxspec")
    except click.UsageError as error:
        from .terminal import warn

        place = error.ctx.command_path if error.ctx is not None else "onnxspec"
        warn(f"{place}: {error.format_message().rstrip('.')}. See {place} --help.", "red")
        code = error.exit_code
    except OSError as error:
        from .terminal import drop, warn, why

        if error.filename is not None:
            raise
        drop(sys.stdout)  # nothing but the standard output has no name
        warn(f"onnxspec: {why(error)}", "red")
        code = 2
    sys.exit(code if sys.argv[1:] else 2)
