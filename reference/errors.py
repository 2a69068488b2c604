"""Errors that a person can mend, and internal errors.

A command prints the message of the former, one line, and ends with the error's exit code. Internal errors are
exceptions in the suite's own code or in an operator's, formatted as one line with the place. They are no failure of a
target. Each costs the case in which it is raised, and is always reported.
"""

from __future__ import annotations

import sys
import traceback
from collections import defaultdict
from types import FrameType
from typing import ClassVar


class UserError(ValueError):
    """A request that cannot be carried out; the message names the fault, the place and the reason in one line."""

    code: ClassVar[int] = 2


class DirectoryError(UserError):
    """A test-case directory that cannot be used; the message gives the file and the reason."""


class RecordError(UserError):
    """A run, a package or a database that cannot be used."""


_LIBRARIES = frozenset({"numpy", "onnx", "onnxruntime", "ml_dtypes", "msgspec", "hypothesis", *sys.stdlib_module_names})
"""Packages that are not to blame for an exception that they raise: their caller is."""

_SUITE = __name__.partition(".")[0]
_LONGEST = 400  # characters of a message


def format_internal_error(error: BaseException, package: str = "") -> str:
    """Format an exception and its place in the suite or in the operator:
    ``ValueError: negative (onnxspec/reference/operators/lstm/cell.py, line 12, in gates)``.

    package
        Package of an operator that is not registered. Its code is the place, or that of registered operators.
    """
    frames = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    packages = [*_operators_by_package(), *([package] if package else [])]
    of_users = [entry for entry in frames if _package(entry[0]) in packages]
    own_frames = of_users or [entry for entry in frames if _package(entry[0]) not in _LIBRARIES] or frames
    text = " ".join(str(error).split())[:_LONGEST]
    message = f"{type(error).__name__}: {text}" if text else type(error).__name__
    if not own_frames:
        return message
    frame, line = own_frames[-1]
    return f"{message} ({_file(frame)}, line {line}, in {frame.f_code.co_name})"


def operators_in(error: BaseException) -> list[str]:
    """Return the names of the operators of other distributions whose code is in the traceback of an exception."""
    packages = {_package(frame) for frame, _ in traceback.walk_tb(error.__traceback__)}
    return [op for package, ops in _operators_by_package().items() if package in packages for op in ops]


def _operators_by_package() -> dict[str, list[str]]:
    from .operators.operator import OPERATORS  # imported late: operators report internal errors, too

    by_package: dict[str, list[str]] = defaultdict(list)
    for (_, op), operator in OPERATORS.items():
        by_package[type(operator).__module__.partition(".")[0]].append(op)
    by_package.pop(_SUITE, None)
    return by_package


def _package(frame: FrameType) -> str:
    return _module(frame).partition(".")[0]


def _module(frame: FrameType) -> str:
    """Return the module's name; for a program, the name under which it can be imported."""
    spec = frame.f_globals.get("__spec__")
    return str(spec.name if spec is not None else frame.f_globals.get("__name__", ""))


def _file(frame: FrameType) -> str:
    """Return the file of a frame by its module's name, which is the same on every machine."""
    module = _module(frame)
    last = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    if not module or module == "__main__":
        return last
    return f"{module.replace('.', '/')}/{last}" if last == "__init__.py" else f"{module.replace('.', '/')}.py"
