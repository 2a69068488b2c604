"""Compiled templates, kept where Python keeps compiled modules: to compile them takes longer than to fill them.

What cannot be written there is compiled anew each time, as are modules.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

__all__ = ["compiled_templates"]


class _BesideModules(jinja2.FileSystemBytecodeCache):
    """Files in a folder, which is not made and need not be writable."""

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Write what was compiled, if that can be."""
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


_FOLDER = Path(__file__).with_name("__pycache__")


def compiled_templates(folder: Path = _FOLDER) -> jinja2.BytecodeCache | None:
    """Where compiled templates are kept; None where Python is told to keep nothing (PYTHONDONTWRITEBYTECODE) or to keep
    it elsewhere. Jinja itself compares the template's text and Python's version."""
    if sys.dont_write_bytecode or sys.pycache_prefix is not None:
        return None
    return _BesideModules(str(folder), f"%s.jinja-{jinja2.__version__}.pyc")
