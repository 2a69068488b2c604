"""The harness: targets and their workers, the run and its verdicts, the command line, the pytest plugin,
and the check of models, which needs no target.

Nothing is loaded before it is asked for: pytest imports this package in every session.
"""

from __future__ import annotations

from .._face import face

TYPE_CHECKING = False
"""A stand-in for ``typing``'s, which is not loaded before the command heeds Ctrl-C."""

if TYPE_CHECKING:
    from typing import Any

    from .checking.check import UnreadableModel as UnreadableModel
    from .checking.check import check as check
    from .checking.problem import Problem as Problem
    from .pytest_plugin.assertion import NotConforming as NotConforming
    from .pytest_plugin.assertion import NotJudged as NotJudged
    from .pytest_plugin.assertion import assert_conforms as assert_conforms
    from .running.from_python import RunOutcome as RunOutcome
    from .running.from_python import run as run

    __version__: str

__all__ = [
    "NotConforming",
    "NotJudged",
    "Problem",
    "RunOutcome",
    "UnreadableModel",
    "__version__",
    "assert_conforms",
    "check",
    "run",
]

_load, __dir__ = face(
    __name__,
    **{
        "checking.check": "UnreadableModel check",
        "checking.problem": "Problem",
        "pytest_plugin.assertion": "NotConforming NotJudged assert_conforms",
        "running.from_python": "RunOutcome run",
    },
)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from .. import __version__

        return __version__
    return _load(name)
