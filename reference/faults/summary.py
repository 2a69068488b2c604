"""The first line of a fault's docstring: data that people read, and that is there with ``python -OO`` too."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

__all__ = ["summary_of"]


def summary_of(function: Callable[..., Any]) -> str:
    """The first line of a function's docstring; empty where it has none."""
    text = function.__doc__ or (_written(function) if not __debug__ else "")
    return text.strip().splitlines()[0] if text.strip() else ""


def _written(function: Callable[..., Any]) -> str:
    """The docstring as it stands in the source, which an interpreter that optimizes has left out."""
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, ValueError):
        return ""
    return ast.get_docstring(definition) or "" if isinstance(definition, ast.FunctionDef) else ""
