"""Compiled templates, kept from one command to the next: to compile them takes a tenth of a second and more."""

from __future__ import annotations

import contextlib
import os
import zlib
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket


class _Cache(FileSystemBytecodeCache):
    """Jinja's own cache, without which a page is as good: what cannot be read is compiled again, and what cannot be
    written (a full disk) is compiled again next time."""

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(Exception):  # reading a pickle that is damaged may raise anything
            super().load_bytecode(bucket)

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            super().dump_bytecode(bucket)


def kept_bytecode(settings: Mapping[str, Any]) -> FileSystemBytecodeCache | None:
    """The cache of what Jinja has compiled by these settings of an environment: in the user's folder for caches, since
    nothing may stay among temporary files; None where there can be none."""
    root = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or "~/.cache"
    # Jinja tells what it keeps apart by Python's version and a template's name and text only.
    tag = zlib.crc32(repr((metadata.version("jinja2"), sorted(settings.items()))).encode())
    try:
        folder = Path(root).expanduser() / "onnxspec"
        folder.mkdir(0o700, parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # the latter where nobody knows whose home it is
        return None
    return _Cache(str(folder), f"{tag:08x}-%s.cache")
