"""Mishaps: exceptions in the suite's own code or in an operator's, told in one line with the place.

What is raised there says nothing of any target. It costs the case in which it is raised, and nothing hides it.
"""

from __future__ import annotations

import sys
import traceback
from types import FrameType

_LIBRARIES = frozenset({"numpy", "onnx", "onnxruntime", "ml_dtypes", "msgspec", "hypothesis", *sys.stdlib_module_names})
"""Packages in which an exception may be raised, and which are not to blame: whoever called them is."""

_LONGEST = 400  # characters of a message


def told_mishap(error: BaseException) -> str:
    """``ValueError: negative (onnxspec/reference/operators/lstm/cell.py, line 12, in gates)``: what was raised, and
    where in the suite or in the operator."""
    places = [(frame, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    own = [place for place in places if _package(place[0]) not in _LIBRARIES] or places
    words = " ".join(str(error).split())[:_LONGEST]
    what = f"{type(error).__name__}: {words}" if words else type(error).__name__
    if not own:
        return what
    frame, line = own[-1]
    return f"{what} ({_file(frame)}, line {line}, in {frame.f_code.co_name})"


def packages_of(error: BaseException) -> frozenset[str]:
    """The packages whose code an exception has gone through."""
    return frozenset(_package(frame) for frame, _ in traceback.walk_tb(error.__traceback__))


def _package(frame: FrameType) -> str:
    return _module(frame).partition(".")[0]


def _module(frame: FrameType) -> str:
    """Its name; of what runs as a program that under which it can be imported."""
    spec = frame.f_globals.get("__spec__")
    return str(spec.name if spec is not None else frame.f_globals.get("__name__", ""))


def _file(frame: FrameType) -> str:
    """The file of a frame by the name of its module, which is the same on every machine."""
    module = _module(frame)
    last = frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    if not module or module == "__main__":
        return last
    return f"{module.replace('.', '/')}/{last}" if last == "__init__.py" else f"{module.replace('.', '/')}.py"
