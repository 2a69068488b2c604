"""How commands describe themselves: value names are words, the same ones in every version of typer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import typer
import typer.core

__all__ = ["App", "Command"]


class Command(typer.core.TyperCommand):
    """A command whose help names arguments by the words that they were given, and no type of Python."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS] RUN...``."""
        words = (_word(a) if a.required else f"[{_word(a)}]" for a in self._arguments())
        return ["[OPTIONS]", *words]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """The arguments, and then the options."""
        arguments = [(_word(argument), argument.help or "") for argument in self._arguments()]
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl(arguments)
        with formatter.section("Options"):
            formatter.write_dl([*self._options(ctx)])

    def _options(self, ctx: Any) -> Iterator[tuple[str, str]]:
        for option in self.get_params(ctx):
            record = option.get_help_record(ctx) if option.param_type_name == "option" else None
            if record is not None:
                yield record[0], f"{record[1]} May be repeated." if option.multiple else record[1]

    def _arguments(self) -> Iterator[Any]:
        return (p for p in self.params if p.param_type_name == "argument" and not getattr(p, "hidden", False))


def _word(argument: Any) -> str:
    word: str = argument.metavar or argument.name.upper()
    return word


class App(typer.Typer):
    """An application whose commands are of this kind."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """As that of typer."""
        return super().command(name, **{"cls": Command, **settings})
