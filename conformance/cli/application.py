"""The application: its commands and their help.

Only typer is loaded here. A command is loaded when it is used, because that takes a second, and help and completion
should not wait for it. Help names values in words, the same in every version of typer.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from ..workers.one_thread import one_thread

# Typer has the class of all usage errors, but under no name of its own.
_USAGE: Any = typer.BadParameter.__base__

COMMANDS: Mapping[str, tuple[str, str]] = {
    "run": ("run", "Run the cases on targets, compare, and say what is wrong."),
    "list": ("directories", "List the cases of a profile, one a line."),
    "check": (
        "check",
        "Find the recurrent nodes of models that break their operator's document, without running anything.",
    ),
    "compare": (
        "compare",
        "Compare a model with a framework's results, and find the attribute or weight that explains a difference.",
    ),
    "clauses": ("clauses", "Show the clauses of an operator, or of all."),
    "diff": ("report", "Say what got worse, better or otherwise different between two runs."),
    "generate": ("directories", "Write cases as ONNX test-case directories, with a manifest."),
    "explain": ("explain", "Show one case, step by step."),
    "fuzz": ("fuzz", "Search for failures beyond the profiles, and make each as small as it can be."),
    "merge": ("merge", "Put the shards of a run together."),
    "prove": ("prove", "Prove that the suite catches faults and accuses nobody."),
    "report": ("report", "Put several runs side by side in one report."),
    "site": ("report", "Write a static site: which runtime computes what rightly, and since which release."),
    "certify": (
        "certify",
        "Make a certification package of a runtime, which anybody can verify without the hardware.",
    ),
    "verify": (
        "certify",
        "Verify a certification package: recompute its claims from the recorded outputs.",
    ),
    "targets": ("targets", "List the targets, and what installs those that are missing."),
}
"""Each command, in the order of the help: the module that has it, and the first sentence of its help."""


class Command(typer.core.TyperCommand):
    """Command whose help names arguments by their metavars. An exception in an operator of another distribution ends it
    with one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; turn user errors, and exceptions of foreign operators, into one line."""
        try:
            return super().invoke(ctx)
        except Exception as error:
            from ...reference.errors import UserError
            from ...reference.operators.internal_error import format_internal_error
            from .terminal import fail

            if isinstance(error, UserError):
                fail(str(error), error.code)
            if not _theirs(error):
                raise
            fail(f"broke off, by the fault of an operator's own code: {format_internal_error(error)}", 1)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return ``[OPTIONS] RUN...``."""
        words = (_word(a) if a.required else f"[{_word(a)}]" for a in self._arguments())
        return ["[OPTIONS]", *words]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, then options."""
        arguments = [(_word(argument), argument.help or "") for argument in self._arguments()]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        options = (option for option in self.get_params(ctx) if option.param_type_name == "option")
        with formatter.section("Options"):
            formatter.write_dl([record for option in options if (record := option.get_help_record(ctx))])

    def _arguments(self) -> Iterator[Any]:
        return (p for p in self.params if p.param_type_name == "argument" and not getattr(p, "hidden", False))


def _theirs(error: Exception) -> bool:
    """Return whether an exception was raised in, or below, the code of an operator of another distribution."""
    from ...cases.specs.family import family_of
    from ...reference import OPERATORS
    from ...reference.operators.internal_error import packages_of

    kinds: list[type[Any]] = [type(operator) for operator in OPERATORS.values()]
    for operator in OPERATORS.values():
        with contextlib.suppress(KeyError):  # it has no cases
            kinds += [type(family_of(operator.document.name)), family_of(operator.document.name).spec]
    brought = {kind.__module__.partition(".")[0] for kind in kinds} - {"onnxspec"}
    return bool(brought & packages_of(error))


def _word(argument: Any) -> str:
    word: str = argument.metavar or argument.name.upper()
    return word


class _Loaded(Mapping[str, Any]):
    """Commands by name, each loaded when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        module, _ = COMMANDS[name]
        with one_thread():
            importlib.import_module(f".{module}", __package__)
        (info,) = (i for i in app.registered_commands if (i.name or _name_of(i.callback)) == name)
        alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
        alone.registered_commands = [info]
        alone.info.context_settings = app.info.context_settings
        return typer.main.get_command(alone)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _name_of(callback: Any) -> str:
    name: str = callback.__name__
    return name


class Commands(typer.core.TyperGroup):
    """The command ``onnxspec``, which loads subcommands lazily."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**{**settings, "commands": None})
        self.commands = _Loaded()  # type: ignore[assignment] # nobody adds to it

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the summaries of the table."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


class App(typer.Typer):
    """Application whose commands are of class `Command`."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command."""
        return super().command(name, **{"cls": Command, **settings})


app = App(
    name="onnxspec",
    cls=Commands,
    help="Does this runtime compute what the ONNX specification says, on every legal configuration?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _print_version(asked: bool) -> None:
    if asked:
        from ..results.environment import version_of

        print(f"onnxspec {version_of('onnxspec') or 'unknown'}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


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
    except _USAGE as error:
        from .terminal import warn

        place = error.ctx.command_path if error.ctx is not None else "onnxspec"
        warn(f"{place}: {error.format_message().rstrip('.')}. See {place} --help.", "red")
        code = error.exit_code
    except typer.Abort:
        code = 130
    except OSError as error:
        from .terminal import drop, warn, why

        if error.filename is not None:
            raise
        drop(sys.stdout)  # nothing but the standard output has no name
        warn(f"onnxspec: {why(error)}", "red")
        code = 2
    sys.exit(code if sys.argv[1:] else 2)
