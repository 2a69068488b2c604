"""The run directory: results.jsonl, appended as results come, and run.json beside it.

Whatever ends a run, what was obtained is on disk: every result is one whole line, written at once. A last line that a
kill cut in half is dropped when the run goes on.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from .result import Result

__all__ = ["SCHEMA", "Journal", "OccupiedFolder", "RunMismatch", "fresh_folder"]

SCHEMA = 1
RESULTS, RUN = "results.jsonl", "run.json"


class OccupiedFolder(Exception):  # noqa: N818 - it reads as what it says
    """The output folder already holds a run."""


class RunMismatch(Exception):  # noqa: N818 - it reads as what it says
    """The run in the folder is another one than that which is to go on."""


def fresh_folder(parent: Path, started: datetime) -> Path:
    """A dated folder under `parent` that does not exist yet."""
    name = started.strftime("%Y-%m-%dT%H%M%S")
    for suffix in ("", *(f"-{k}" for k in range(2, 1000))):
        folder = parent / f"{name}{suffix}"
        if not folder.exists():
            return folder
    raise OccupiedFolder(f"{parent} holds a thousand runs of this second")


class Journal:
    """The results of one run, a context manager that owns the run directory while it is open."""

    def __init__(self, folder: Path, *, resume: bool = False, overwrite: bool = False) -> None:
        """Raises OccupiedFolder where the folder holds a run and neither `resume` nor `overwrite` is meant; OSError
        where it cannot be made."""
        self.folder = folder
        self._path = folder / RESULTS
        if any((folder / name).exists() for name in (RESULTS, RUN)) and not (resume or overwrite):
            raise OccupiedFolder(f"{folder} already holds a run: go on with --resume, or start again with --overwrite")
        folder.mkdir(parents=True, exist_ok=True)
        if overwrite and not resume:
            self._path.unlink(missing_ok=True)
            (folder / RUN).unlink(missing_ok=True)
        self.done = self._recover() if resume else []
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._file)

    def _recover(self) -> list[Result]:
        """The whole lines of an earlier run; what follows the first that is not whole is cut off."""
        if not self._path.exists():
            return []
        content = self._path.read_bytes()
        results, good = [], 0
        for line in content.splitlines(keepends=True):
            try:
                if not line.endswith(b"\n"):
                    break
                results.append(Result.from_line(line.decode("utf-8")))
            except ValueError:
                break
            good += len(line)
        if good < len(content):
            os.truncate(self._path, good)
        return results

    def described(self) -> dict[str, Any] | None:
        """What run.json says, None where there is none that can be read."""
        try:
            found = json.loads((self.folder / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def same_run(self, description: Mapping[str, Any]) -> None:
        """Make sure that the run in the folder is the one described. Raises RunMismatch, naming what differs."""
        earlier = self.described()
        if earlier is None:
            return
        for key in ("schema", "profile", "selection", "digests"):
            if earlier.get(key) != description[key]:
                raise RunMismatch(
                    f"{self.folder} holds a run with another {key}: go on with the options that it was started with"
                )

    def append(self, result: Result) -> None:
        """Write a result. Raises OSError, with nothing half-written left, where the disk has no room for it."""
        line = (result.to_line() + "\n").encode("utf-8")
        before = os.fstat(self._file).st_size
        written = 0
        try:
            while written < len(line):
                written += os.write(self._file, line[written:])
        except OSError:
            os.ftruncate(self._file, before)
            raise

    def describe(self, description: Mapping[str, Any]) -> None:
        """Write run.json, the old one staying until the new one is whole."""
        text = json.dumps(description, indent=2, allow_nan=False)
        beside = self.folder / f"{RUN}.new"
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(self.folder / RUN)
