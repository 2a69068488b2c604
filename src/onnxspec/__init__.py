"""Conformance test-suite and spec-checker for the recurrent operators of ONNX and AMD Quark.

::

    import onnxspec

    outcome = onnxspec.run("onnxruntime", op="LSTM", profile="smoke")
    print(outcome)

These are the public names, with those of `onnxspec.reference` and `onnxspec.cases` for operators of your own. Each is
loaded when it is first used, because pytest imports this package in every session.
"""

from __future__ import annotations

TYPE_CHECKING = False
"""As of ``typing``, which is not loaded before the command heeds Ctrl-C."""

if TYPE_CHECKING:
    from . import cases as cases
    from . import conformance as conformance
    from . import reference as reference
    from . import reports as reports
    from .conformance.checking.check import UnreadableModel, check
    from .conformance.checking.problem import Problem
    from .conformance.comparing.comparison import Comparison, ComparisonError, compare
    from .conformance.pytest_plugin.assertion import NotConforming, NotJudged, assert_conforms
    from .conformance.running.from_python import RunOutcome, run

    __version__: str

_PACKAGES = ("cases", "conformance", "reference", "reports")
_MODULES = {
    "Comparison": "conformance.comparing.comparison",
    "ComparisonError": "conformance.comparing.comparison",
    "NotConforming": "conformance.pytest_plugin.assertion",
    "NotJudged": "conformance.pytest_plugin.assertion",
    "Problem": "conformance.checking.problem",
    "RunOutcome": "conformance.running.from_python",
    "UnreadableModel": "conformance.checking.check",
    "assert_conforms": "conformance.pytest_plugin.assertion",
    "check": "conformance.checking.check",
    "compare": "conformance.comparing.comparison",
    "run": "conformance.running.from_python",
}

__all__ = [
    "Comparison",
    "ComparisonError",
    "NotConforming",
    "NotJudged",
    "Problem",
    "RunOutcome",
    "UnreadableModel",
    "__version__",
    "assert_conforms",
    "check",
    "compare",
    "run",
]

if not TYPE_CHECKING:  # so that type checkers know each name, and report others

    def __getattr__(name: str) -> object:
        if name == "__version__":
            from importlib.metadata import version

            return version("onnxspec")
        if name not in _MODULES and name not in _PACKAGES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        if name in _PACKAGES:
            return import_module(f".{name}", __name__)
        return getattr(import_module(f".{_MODULES[name]}", __name__), name)


def __dir__() -> list[str]:
    """Names for completion."""
    return sorted([*__all__, *_PACKAGES])
