"""Results of a check, as commands that GitHub Actions turns into annotations of files."""

from __future__ import annotations

from collections.abc import Iterator

from .problem import Checked, Level

_COMMANDS = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def github_annotations(checked: Checked) -> Iterator[str]:
    """One line for each problem, and for a model that cannot be read."""
    if checked.unreadable:
        yield f"::error file={_property(checked.file)},title=onnxspec::{_message(checked.unreadable)}"
    for problem in checked.counted:
        text = _message(f"{problem.node} ({problem.operator}): {problem.message.rstrip('.')}. {problem.advice}")
        yield f"::{_COMMANDS[problem.level]} file={_property(problem.file)},title={_property(problem.rule)}::{text}"


def _message(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
