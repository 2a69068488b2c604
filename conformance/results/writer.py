"""Writer of run folders: results.jsonl, appended during a run, and run.json, its summary.

Every line is written completely and never changed, so an interrupted run loses nothing. run.json is written to a
temporary file and renamed. No file of a folder is changed before the folder is known to hold that run.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from datetime import datetime
from pathlib import Path

from ...reference.errors import RecordError
from ..border.strict_json import encode
from ..judging.judgement import UNTRIED
from .folder import NODE_CASES, RESULTS, RUN, RunFolder, load_results
from .lines import SAME_RUN, Line, RunStarted, difference
from .recorded import append_whole
from .records import RunRecord
from .result import Result


def fresh_folder(parent: Path, started: datetime) -> Path:
    """Make a new dated folder in `parent` and return it. Raise OSError where it cannot be made."""
    parent.mkdir(parents=True, exist_ok=True)
    name = started.strftime("%Y-%m-%dT%H%M%S")
    for suffix in ("", *(f"-{k}" for k in range(2, 1000))):
        folder = parent / f"{name}{suffix}"
        with contextlib.suppress(FileExistsError):
            folder.mkdir()
            return folder
    raise RecordError(f"{parent} holds a thousand runs of this second")


class RunWriter:
    """Writer of one run, a context manager that owns the run directory while it is open.

    loaded
        The content of the folder when it was opened; empty for a new run.
    problems
        Invalid content, a line each, for the person who resumes it.
    """

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        """Open a folder; its files are not changed yet.

        Raise RecordError where the folder holds a run that is not to be resumed or that this version cannot continue,
        where it holds other files and no run, or where another process is writing to it. Raise OSError where the
        folder cannot be made.
        """
        self.folder = folder
        self._path = folder / RESULTS
        existing = [name for name in (RESULTS, RUN) if (folder / name).exists()]
        if existing and not resume:
            raise RecordError(f"{folder} already holds a run: go on with --resume, or name another folder")
        if resume and existing == [RUN]:
            raise RecordError(f"{folder} holds {RUN} and no {RESULTS}, so it cannot be resumed: give a new folder")
        if not existing and folder.is_dir() and any(path.name != NODE_CASES for path in folder.iterdir()):
            raise RecordError(
                f"{folder} holds other files and no run, and is left alone: give a new or an empty folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _opened(self._path)
        self.loaded = RunFolder(folder)
        try:
            load_results(self.loaded)
        except RecordError as error:
            os.close(self._file)
            raise RecordError(f"{error}; it is left alone: give a new folder") from None
        except BaseException:
            os.close(self._file)
            raise
        self.problems = [f"{folder}: {problem}" for problem in self.loaded.problems]

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    @property
    def done(self) -> list[Result]:
        """The results of cases that need not be run again, because the target was tried with them."""
        return [result for result in self.loaded.results if result.verdict not in UNTRIED]

    def begin(self, header: RunStarted) -> None:
        """Start a run, or resume the one in the folder if it is the same; targets may have been added.

        An incomplete last line is removed. Raise RecordError, which names the difference, with nothing changed; raise
        OSError.
        """
        self.require_same_run(header)
        os.ftruncate(self._file, self.loaded.whole)
        self.append(header)

    def require_same_run(self, header: RunStarted) -> None:
        """Raise RecordError unless the folder is new or holds the run of the header."""
        if not self.loaded.headers:
            if self.loaded.size:
                raise RecordError(f"{self._path}: has no header, so it cannot be resumed: give a new folder")
            return
        earlier = self.loaded.headers[-1]
        by = f"; it was made by: {shlex.join(earlier.command)}" if earlier.command else ""
        hint = f"go on with the options that it was started with{by}"
        if why := difference(earlier, header, SAME_RUN):
            raise RecordError(f"{self.folder} holds a run with another {why}; {hint}")
        targets = {target["name"]: target for target in header.targets}
        for target in earlier.targets:
            name = target["name"]
            if name not in targets:
                raise RecordError(f"{self.folder} holds a run of target {name!r} too: {hint}")
            if why := difference(target, targets[name]):
                raise RecordError(f"{self.folder} holds a run of {name!r} with another {why}; {hint}")

    def append(self, *lines: Line) -> None:
        """Write lines. Raise OSError where the disk is full; no part of the lines is left then."""
        append_whole(self._file, "".join(f"{encode(line)}\n" for line in lines).encode("ascii"))

    def describe(self, record: RunRecord) -> None:
        """Write run.json. Raise OSError, and keep the old file then."""
        unfinished = self.folder / f"{RUN}.new"
        try:
            unfinished.write_text(encode(record, indent=2) + "\n", encoding="ascii")
            unfinished.replace(self.folder / RUN)
        except OSError:
            with contextlib.suppress(OSError):
                unfinished.unlink(missing_ok=True)
            raise


def _opened(path: Path) -> int:
    """Return a descriptor for appending, locked while it is open: two runs in one folder would mix their results."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise RecordError(f"{path.parent}: another onnxspec is writing to this folder") from None
        except OSError:
            pass  # a file system without locks
    return descriptor
