"""Results of a check, as commands that GitHub Actions turns into annotations of files."""

from __future__ import annotations

from collections.abc import Iterator

from .problem import Checked, Level

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def github_annotations(checked: Checked) -> Iterator[str]:
    """One line for each problem, and for a model that cannot be read."""
    if checked.unreadable:
        yield github_command("error", checked.unreadable, file=checked.file, title="onnxspec")
    for problem in checked.counted:
        text = f"{problem.node} ({problem.operator}): {problem.message.rstrip('.')}. {problem.advice}"
        yield github_command(_COMMANDS[problem.level], text, file=problem.file, title=problem.rule)


def github_command(kind: str, message: str, **properties: str) -> str:
    """A workflow command: one line, whatever a model or a runtime said."""
    named = ",".join(
        f"{name}={_one_line(text).replace(':', '%3A').replace(',', '%2C')}" for name, text in properties.items()
    )
    return f"::{kind} {named}::{_one_line(message)}"


def _one_line(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
