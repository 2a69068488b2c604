"""The harness: targets and their workers, the run and its verdicts, the command line, the pytest plugin,
and the check of models, which needs no target.

The functions of `onnxspec` can be imported from here, too.
"""

from __future__ import annotations

TYPE_CHECKING = False

if TYPE_CHECKING:
    from .. import (
        NotConforming,
        NotJudged,
        Problem,
        RunOutcome,
        UnreadableModel,
        __version__,
        assert_conforms,
        check,
        run,
    )

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

if not TYPE_CHECKING:  # so that type checkers know each name, and report others

    def __getattr__(name: str) -> object:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import onnxspec

        value: object = getattr(onnxspec, name)
        return value
