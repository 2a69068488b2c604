"""Writer of run folders: results.jsonl, appended as a run goes, and run.json, its summary.

Every line is whole and written at once, and none is changed, so that whatever ends a run loses nothing. run.json is
written beside the old file and takes its place by one rename. Nothing in a folder is touched before it is known to hold
that run.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from datetime import datetime
from pathlib import Path

from ...reference.errors import RecordError, UserError
from ..border.strict_json import decode, encode
from ..judging.judgement import UNTRIED
from .folder import NODE_CASES, RESULTS, RUN, load_run
from .lines import Line, RunStarted
from .records import RunRecord
from .result import Result

SAME_RUN = ("schema", "onnxspec", "profile", "selection", "digests", "expected_failures", "keeps_outputs", "shard")
"""Keys of a header that must be the same when a run is resumed."""

SAME_TARGET = ("adapter", "options", "class", "wrap", "expected_file")
"""Keys of a target in run.json that must be the same for it to be the same target."""

SAME_RUNTIME = ("runtime", "version", "build", "provider", "device")
"""Keys of a description that must be the same for it to be the same runtime."""

CUT = f"{RESULTS}.cut"


class OccupiedFolder(UserError):
    """The output folder already holds something, or a run is writing to it."""


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


class RunWriter:
    """Writer of one run, a context manager that owns the run directory while it is open.

    loaded
        What the folder held when it was opened; empty for a new run.
    problems
        What is invalid in it, a line each, for the person who resumes it.
    """

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        """Open a folder. Nothing in it is changed yet.

        Raises OccupiedFolder where the folder holds a run that is not to be resumed, where it holds something else and
        no run, or where another process is writing to it; RecordError where it holds what this version cannot go on
        with; OSError where it cannot be made.
        """
        self.folder = folder
        self._path = folder / RESULTS
        there = [name for name in (RESULTS, RUN) if (folder / name).exists()]
        if there and not resume:
            raise OccupiedFolder(f"{folder} already holds a run: go on with --resume, or name another folder")
        if resume and there == [RUN]:
            raise RecordError(f"{folder} holds {RUN} and no {RESULTS}, so it cannot be resumed: give a new folder")
        if not there and folder.is_dir() and any(path.name != NODE_CASES for path in folder.iterdir()):
            raise OccupiedFolder(
                f"{folder} holds other files and no run, and is left alone: give a new or an empty folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _opened(self._path)
        try:
            self.loaded = load_run(self._path)
        except RecordError as error:
            os.close(self._file)
            raise RecordError(f"{error}; it is left alone: give a new folder") from None
        except BaseException:
            os.close(self._file)
            raise
        self.problems = [f"{folder}: {problem}" for problem in self.loaded.messages]

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    @property
    def done(self) -> list[Result]:
        """The results of cases that need not be run again: those that the target was tried with."""
        return [result for result in self.loaded.results.values() if result.verdict not in UNTRIED]

    def begin(self, header: RunStarted) -> None:
        """Start a run, or resume the one that the folder holds, if it is the same; targets may have been added.

        An incomplete last line is moved to a file beside results.jsonl. Raises RecordError, naming what differs, with
        nothing touched, and OSError.
        """
        self.require_same_run(header)
        self._cut()
        self.append(header)

    def require_same_run(self, header: RunStarted) -> None:
        """Raise RecordError unless the folder is new or holds the run that the header describes."""
        header = decode(encode(header), RunStarted)  # as it would be read again
        if not self.loaded.headers:
            if self.loaded.size:
                raise RecordError(f"{self._path}: has no header, so it cannot be resumed: give a new folder")
            return
        earlier = self.loaded.headers[-1]
        by = f"; it was made by: {shlex.join(earlier.command)}" if earlier.command else ""
        hint = f"go on with the options that it was started with{by}"
        for key in SAME_RUN:
            if getattr(earlier, key) != getattr(header, key):
                raise RecordError(f"{self.folder} holds a run with another {key.replace('_', ' ')}: {hint}")
        targets = {target.name: target for target in header.targets}
        for target in earlier.targets:
            if target.name not in targets:
                raise RecordError(f"{self.folder} holds a run of target {target.name!r} too: {hint}")
            if target != targets[target.name]:
                raise RecordError(f"{self.folder} holds a run of another target of the name {target.name!r}: {hint}")

    def _cut(self) -> None:
        """Move an incomplete last line to a file beside results.jsonl."""
        if self.loaded.size == self.loaded.whole:
            return
        with self._path.open("rb") as results, (self.folder / CUT).open("ab") as beside:
            results.seek(self.loaded.whole)
            rest = results.read()
            beside.write(rest + b"\n")
        os.ftruncate(self._file, self.loaded.whole)
        self.problems.append(
            f"{self.folder}: {RESULTS} ended in an incomplete line of {len(rest)} bytes, which now is in {CUT}"
        )

    def append(self, *lines: Line) -> None:
        """Write lines. Raises OSError, with nothing half-written left, where the disk has no room for them."""
        _write(self._file, "".join(f"{encode(line)}\n" for line in lines).encode("ascii"))

    def describe(self, record: RunRecord) -> None:
        """Write run.json. Raises OSError, with the old one there."""
        beside = self.folder / f"{RUN}.new"
        try:
            beside.write_text(encode(record, indent=2) + "\n", encoding="ascii")
            beside.replace(self.folder / RUN)
        except OSError:
            with contextlib.suppress(OSError):
                beside.unlink(missing_ok=True)
            raise


def _write(file: int, lines: bytes) -> None:
    """Append to an open file; all or nothing."""
    before = os.fstat(file).st_size
    written = 0
    try:
        while written < len(lines):
            written += os.write(file, lines[written:])
    except BaseException:  # a signal as well as a full disk
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
