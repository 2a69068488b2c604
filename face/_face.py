"""The face of a package: its public names in one place, each loaded when it is first asked for.

A command loads what it uses and nothing else, and who imports from a face need not know in which module a name lives.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False
"""As of ``typing``, which is not loaded before the command heeds Ctrl-C."""

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["face"]


def face(package: str, /, **homes: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """``__getattr__`` and ``__dir__`` of a package.

    package
        Its ``__name__``.
    homes
        By module of the package the public names that live there, with spaces between them. None of them is the name
        of a module, which would hide it once that is loaded.
    """
    modules = {name: module for module, names in homes.items() for name in names.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f".{modules[name]}", package), name)

    def names() -> list[str]:
        import sys

        return sorted({*vars(sys.modules[package]), *modules})

    return load, names
