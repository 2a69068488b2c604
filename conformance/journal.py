"""The run directory: results.jsonl, appended as results come, and run.json beside it.

Whatever ends a run, what was obtained is on disk: every result is one whole line, written at once. A last line that a
kill cut in half is dropped when the run goes on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from .judgement import Verdict
from .result import Result

__all__ = ["SAME_RUNTIME", "SAME_TARGET", "SCHEMA", "Journal", "OccupiedFolder", "RunMismatch", "fresh_folder"]

SCHEMA = 1

SAME_TARGET = ("adapter", "options", "class", "wrap", "expected_file")
"""What run.json says of a target and must say again for it to be the same one."""

SAME_RUNTIME = ("runtime", "version", "build", "provider", "device")
"""What a description says and must say again for it to be the same runtime."""

RESULTS, RUN, PAGE = "results.jsonl", "run.json", "report/index.html"


class OccupiedFolder(Exception):
    """The output folder already holds a run, or one is writing to it."""


class RunMismatch(Exception):
    """The run in the folder is another one than that which is to go on."""


def fresh_folder(parent: Path, started: datetime) -> Path:
    """Make a dated folder under `parent` that did not exist before. Raises OSError where it cannot be made."""
    parent.mkdir(parents=True, exist_ok=True)
    name = started.strftime("%Y-%m-%dT%H%M%S")
    for suffix in ("", *(f"-{k}" for k in range(2, 1000))):
        folder = parent / f"{name}{suffix}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise OccupiedFolder(f"{parent} holds a thousand runs of this second")


class Journal:
    """The results of one run, a context manager that owns the run directory while it is open."""

    def __init__(self, folder: Path, *, resume: bool = False, overwrite: bool = False) -> None:
        """Open the journal; ``done`` is what it holds.

        Raises OccupiedFolder where the folder holds a run and neither `resume` nor `overwrite` is meant, or where
        another process is writing to it; OSError where it cannot be made.
        """
        self.folder = folder
        self._path = folder / RESULTS
        if any((folder / name).exists() for name in (RESULTS, RUN)) and not (resume or overwrite):
            raise OccupiedFolder(f"{folder} already holds a run: go on with --resume, or start again with --overwrite")
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _opened(self._path)
        if overwrite:
            os.ftruncate(self._file, 0)
            for name in (RUN, PAGE):
                (folder / name).unlink(missing_ok=True)
        self.done = self._recover()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        os.close(self._file)

    def _recover(self) -> list[Result]:
        """The whole lines of an earlier run; what follows the first that is not whole is cut off."""
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
            os.ftruncate(self._file, good)
        return results

    def described(self) -> dict[str, Any] | None:
        """What run.json says, None where there is none that can be read."""
        try:
            found = json.loads((self.folder / RUN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def same_run(self, description: Mapping[str, Any]) -> None:
        """Make sure that the run in the folder is the one described; targets may have been added to it.

        Raises RunMismatch, naming what differs.
        """
        earlier = self.described()
        if earlier is None:
            if self.done:
                raise RunMismatch(f"{self.folder} holds results but no {RUN} that says of what: use --overwrite")
            return
        command = earlier.get("command")
        by = f"; it was made by: {shlex.join(map(str, command))}" if isinstance(command, list) and command else ""
        hint = f"go on with the options that it was started with{by}"
        for key in ("schema", "onnxspec", "profile", "selection", "digests", "expected_failures", "shard"):
            if earlier.get(key) != description.get(key):
                raise RunMismatch(f"{self.folder} holds a run with another {key.replace('_', ' ')}: {hint}")
        targets = {target["name"]: target for target in description["targets"]}
        for target in earlier.get("targets", ()):
            name = target["name"]
            if name not in targets:
                raise RunMismatch(f"{self.folder} holds a run of target {name!r} too: {hint}")
            if any(target.get(key) != targets[name].get(key) for key in SAME_TARGET):
                raise RunMismatch(f"{self.folder} holds a run of another target of the name {name!r}: {hint}")

    def forget_unavailable(self) -> None:
        """Drop the results of cases that no runtime was there for: they are due again."""
        left = [result for result in self.done if result.verdict is not Verdict.UNAVAILABLE]
        if len(left) < len(self.done):
            self._replace(left)

    def amend(self, results: Sequence[Result]) -> None:
        """Put results in the place of those of the same case and target, now that more is known of them. Raises
        OSError, with the old ones still there."""
        amended = {(result.case, result.target): result for result in results}
        whole = [Result.from_line(line) for line in self._path.read_text(encoding="utf-8").splitlines()]
        changed = [amended.get((result.case, result.target), result) for result in whole]
        if changed != whole:
            self._replace(changed)

    def _replace(self, left: list[Result]) -> None:
        """Write the journal anew; the old file stays until the new one is whole."""
        beside = self.folder / f"{RESULTS}.new"
        beside.unlink(missing_ok=True)
        new = _opened(beside)
        try:
            _write(new, left)
            beside.replace(self._path)
        except OSError:
            os.close(new)
            beside.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file, self.done = new, left

    def append(self, result: Result) -> None:
        """Write a result. Raises OSError, with nothing half-written left, where the disk has no room for it."""
        _write(self._file, [result])

    def describe(self, description: Mapping[str, Any]) -> None:
        """Write run.json, the old one staying until the new one is whole."""
        text = json.dumps(description, indent=2, allow_nan=False)
        beside = self.folder / f"{RUN}.new"
        try:
            beside.write_text(text + "\n", encoding="utf-8")
            beside.replace(self.folder / RUN)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise


def _write(file: int, results: Iterable[Result]) -> None:
    """Append results to an open file; all of them or none."""
    lines = "".join(f"{result.to_line()}\n" for result in results).encode("utf-8")
    before = os.fstat(file).st_size
    written = 0
    try:
        while written < len(lines):
            written += os.write(file, lines[written:])
    except OSError:
        os.ftruncate(file, before)
        raise


def _opened(path: Path) -> int:
    """A descriptor to append to, locked as long as it is open: two runs in one folder would mix their results."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise OccupiedFolder(f"{path.parent}: another onnxspec is writing to this folder") from None
        except OSError:
            pass  # a file system without locks
    return descriptor
