"""Conformance test-suite and spec-checker for the recurrent operators of ONNX and AMD Quark.

::

    import onnxspec

    outcome = onnxspec.run("onnxruntime", op="LSTM", profile="smoke")
    print(outcome)

Nothing is loaded before it is asked for.
"""

from __future__ import annotations

from ._face import face

TYPE_CHECKING = False
"""As of ``typing``, which is not loaded before the command heeds Ctrl-C."""

if TYPE_CHECKING:
    from typing import Any

    from .conformance.checking.check import UnreadableModel as UnreadableModel
    from .conformance.checking.check import check as check
    from .conformance.checking.problem import Problem as Problem
    from .conformance.pytest_plugin.assertion import NotConforming as NotConforming
    from .conformance.pytest_plugin.assertion import assert_conforms as assert_conforms
    from .conformance.running.from_python import RunOutcome as RunOutcome
    from .conformance.running.from_python import run as run

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

_PACKAGES = ("cases", "conformance", "reference", "reports")
_load, _ = face(__name__, conformance=" ".join(name for name in __all__ if name != "__version__"))


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("onnxspec")
    if name in _PACKAGES:
        import importlib

        return importlib.import_module(f".{name}", __name__)
    return _load(name)


def __dir__() -> list[str]:
    """What there is to be found by completion, and nothing else."""
    return sorted([*__all__, *_PACKAGES])
