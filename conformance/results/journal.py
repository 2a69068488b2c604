"""The run directory as it is written: journal.jsonl, appended as things become known, and what is made from it.

Whatever ends a run, what was obtained is on disk: every line is whole and written at once, and none is ever changed.
What people and programs read, results.jsonl and run.json, is made anew when a run ends or is cut short, beside the old
file, and put in its place by one rename. Nothing in a folder is touched before it is known to hold that run.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from datetime import datetime
from pathlib import Path

from ..border.strict_json import decode, encode
from ..judging.judgement import UNTRIED
from .folder import JOURNAL, NODE_CASES, RESULTS, RUN, Held, NoRun, held_in
from .lines import Begun, Line
from .records import RunRecord
from .result import Result

SAME_RUN = ("schema", "onnxspec", "profile", "selection", "digests", "expected_failures", "keeps_outputs", "shard")
"""Keys that a run says of itself and must say again for it to be the same one."""

SAME_TARGET = ("adapter", "options", "class", "wrap", "expected_file")
"""Keys that run.json has of a target and must say again for it to be the same one."""

SAME_RUNTIME = ("runtime", "version", "build", "provider", "device")
"""Keys that a description has and must say again for it to be the same runtime."""

PAGE = "report/index.html"
CUT = f"{JOURNAL}.cut"


class OccupiedFolder(Exception):
    """The output folder already holds something, or a run is writing to it."""


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
    """The journal of one run, a context manager that owns the run directory while it is open.

    held
        What it held when it was opened; empty for a new run.
    problems
        What is amiss with it, a line each, for the person who goes on with it.
    """

    def __init__(self, folder: Path, *, resume: bool = False) -> None:
        """Open the journal. Nothing that is there is changed yet.

        Raises OccupiedFolder where the folder holds a run that is not to be resumed, where it holds something else and
        no run, or where another process is writing to it; RunMismatch where it holds what this version cannot go on
        with; OSError where it cannot be made.
        """
        self.folder = folder
        self._path = folder / JOURNAL
        there = [name for name in (JOURNAL, RESULTS, RUN) if (folder / name).exists()]
        if there and not resume:
            raise OccupiedFolder(f"{folder} already holds a run: go on with --resume, or name another folder")
        if resume and there and JOURNAL not in there:
            raise RunMismatch(
                f"{folder} holds {' and '.join(there)} and no {JOURNAL}, so it is no run that this version can go on "
                "with; it is left alone: give a new folder"
            )
        if not there and folder.is_dir() and any(path.name != NODE_CASES for path in folder.iterdir()):
            raise OccupiedFolder(
                f"{folder} holds other files and no run, and is left alone: give a new or an empty folder"
            )
        folder.mkdir(parents=True, exist_ok=True)
        self._file = _opened(self._path)
        try:
            self.held = held_in(self._path)
        except NoRun as error:
            os.close(self._file)
            raise RunMismatch(f"{error}; it is left alone: give a new folder") from None
        except BaseException:
            os.close(self._file)
            raise
        self.problems = [f"{folder}: {problem}" for problem in self.held.told]

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._file)

    @property
    def done(self) -> list[Result]:
        """The results of cases that need not be run again: those that the target was tried with."""
        return [result for result in self.held.results.values() if result.verdict not in UNTRIED]

    def begin(self, begun: Begun) -> None:
        """Begin a run, or go on with the one that the folder holds, if it is the same; targets may have been added.

        What a kill cut off at the end is put into a file beside the journal. Raises RunMismatch, naming what differs,
        with nothing touched, and OSError.
        """
        self.same_run(begun)
        self._cut()
        self.append(begun)

    def same_run(self, begun: Begun) -> None:
        """Make sure that the run that is to begin is the one that the folder holds. Raises RunMismatch."""
        begun = decode(encode(begun), Begun)  # as it would be read again
        if not self.held.begun:
            if self.held.size:
                raise RunMismatch(
                    f"{self.folder / JOURNAL}: no line says of what run it is; it is left alone: give a new folder"
                )
            return
        earlier = self.held.begun[-1]
        by = f"; it was made by: {shlex.join(earlier.command)}" if earlier.command else ""
        hint = f"go on with the options that it was started with{by}"
        for key in SAME_RUN:
            if getattr(earlier, key) != getattr(begun, key):
                raise RunMismatch(f"{self.folder} holds a run with another {key.replace('_', ' ')}: {hint}")
        targets = {target.name: target for target in begun.targets}
        for target in earlier.targets:
            if target.name not in targets:
                raise RunMismatch(f"{self.folder} holds a run of target {target.name!r} too: {hint}")
            if target != targets[target.name]:
                raise RunMismatch(f"{self.folder} holds a run of another target of the name {target.name!r}: {hint}")

    def _cut(self) -> None:
        """Take an incomplete last line from the journal; it stays beside it."""
        if self.held.size == self.held.whole:
            return
        with self._path.open("rb") as journal, (self.folder / CUT).open("ab") as beside:
            journal.seek(self.held.whole)
            rest = journal.read()
            beside.write(rest + b"\n")
        os.ftruncate(self._file, self.held.whole)
        self.problems.append(
            f"{self.folder}: {JOURNAL} ended in an incomplete line of {len(rest)} bytes, which now is in {CUT}"
        )

    def append(self, *lines: Line) -> None:
        """Write lines. Raises OSError, with nothing half-written left, where the disk has no room for them."""
        _write(self._file, "".join(f"{encode(line)}\n" for line in lines).encode("ascii"))

    def publish(self) -> Held:
        """Make results.jsonl from what the journal holds, which is returned. Raises OSError, with the old one there."""
        held = held_in(self._path)
        # Somebody may have written to it meanwhile.
        self.problems = list(dict.fromkeys([*self.problems, *(f"{self.folder}: {each}" for each in held.told)]))
        self._replace(RESULTS, "".join(f"{result.to_line()}\n" for result in held.results.values()))
        return held

    def describe(self, record: RunRecord) -> None:
        """Write run.json. Raises OSError, with the old one there."""
        self._replace(RUN, encode(record, indent=2) + "\n")

    def _replace(self, name: str, text: str) -> None:
        """Put a text in the place of a file, which stays until the text is whole."""
        beside = self.folder / f"{name}.new"
        try:
            beside.write_text(text, encoding="ascii")
            beside.replace(self.folder / name)
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
