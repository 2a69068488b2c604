"""The harness: targets and their workers, the run and its verdicts, the command line, the pytest plugin,
and the check of models, which needs no target.

Nothing is loaded before it is asked for: pytest imports this package in every session.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
"""As of ``typing``, which is not loaded before the command heeds Ctrl-C."""

if TYPE_CHECKING:
    from typing import Any

    from .checking.check import UnreadableModel as UnreadableModel
    from .checking.check import check as check
    from .checking.problem import Problem as Problem
    from .pytest_plugin.assertion import NotConforming as NotConforming
    from .pytest_plugin.assertion import assert_conforms as assert_conforms
    from .running.from_python import RunOutcome as RunOutcome
    from .running.from_python import run as run

    __version__: str

__all__ = [
    "NotConforming",
    "Problem",
    "RunOutcome",
    "UnreadableModel",
    "__version__",
    "assert_conforms",
    "check",
    "run",
]

_HOMES = {
    "NotConforming": "pytest_plugin.assertion",
    "Problem": "checking.problem",
    "RunOutcome": "running.from_python",
    "UnreadableModel": "checking.check",
    "assert_conforms": "pytest_plugin.assertion",
    "check": "checking.check",
    "run": "running.from_python",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("onnxspec")
    if name in _HOMES:
        return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
