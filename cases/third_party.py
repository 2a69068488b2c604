"""Operators that other distributions bring, found by their entry points in the group ``onnxspec.operators``.

An entry point names a module, which registers an operator and its cases when it is imported: see docs/operators.md.
"""

from __future__ import annotations

import importlib
import warnings
from importlib import metadata

__all__ = ["GROUP", "OperatorWarning", "load_operators"]

GROUP = "onnxspec.operators"
"""The group of entry points."""


class OperatorWarning(UserWarning):
    """An operator that another distribution promises cannot be had; the text says which, whose, and why."""


def load_operators() -> tuple[str, ...]:
    """Import what is promised, in the order of names: which of two operators of one name keeps the bare name does not
    depend on the order in which distributions are found. What fails is left out with an OperatorWarning.

    Returns the names of the entry points that were loaded.
    """
    loaded = []
    for entry in sorted(metadata.entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        try:
            importlib.import_module(entry.module)
        except Exception as error:  # whatever it is, it is theirs, and costs nobody else's operators
            owner = "" if entry.dist is None else f" of {entry.dist.name} {entry.dist.version}"
            words = " ".join(str(error).split())
            what = f"operator {entry.name!r}{owner} is left out: {type(error).__name__}: {words}"
            warnings.warn(what, OperatorWarning, stacklevel=2)
        else:
            loaded.append(entry.name)
    return tuple(loaded)
