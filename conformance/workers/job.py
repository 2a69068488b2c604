"""Jobs for targets, and their outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from ...cases import Course

Array = NDArray[Any]


@dataclass(frozen=True)
class Job:
    """One model and the feeds to run it with.

    Attributes:
        key: the caller's name for it.
        model: a serialized ModelProto.
        feeds: for each run, input arrays by name; NumPy's numeric types and ml_dtypes' bfloat16.
        alone: whether it may corrupt the memory of its process, and so needs a process of its own.
        traits: features of the job, to find those that hung jobs have in common.
        course: the steps of its sessions; None where one session runs the feeds in turn.
    """

    key: str
    model: bytes
    feeds: tuple[Mapping[str, Array], ...]
    alone: bool = False
    traits: frozenset[str] = frozenset()
    course: Course | None = None

    @property
    def needs(self) -> frozenset[str]:
        """The abilities that a worker's sessions must have for it."""
        return self.course.needs if self.course is not None else frozenset()

    @property
    def steps(self) -> list[list[Any]]:
        """The steps of its sessions, in the form of the worker protocol."""
        if self.course is None:
            return [["run", 0, number] for number in range(len(self.feeds))]
        return [[s.does, s.number] if s.does == "look" else list(s) for s in self.course.steps]

    def runs(self, feed: int) -> int:
        """Return the number of runs of a feed before everything is repeated."""
        return 1 if self.course is None else self.course.runs[feed]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one job.

    Attributes:
        key: that of the job.
        status: "ran", "refused", "crashed", "timed-out", "fell-back", "unavailable"; "not-run" where the target's
        budget for hangs is spent, or "not-tried" where the target's sessions do not declare the needed abilities.
        phase: "load" or "run", where it ended; empty when the worker could not report it.
        outputs: for each feed, the distinct lists of outputs seen over the repeats (one when all agree bit for bit),
        each in the graph's order; None stands for an output that is not a numeric array.
        returned: for each feed and repeat, the index of its list in ``outputs``; empty where the worker does not report
        it.
        changed: names of inputs that the runtime changed.
        malformed: the defect of the form of the outputs, empty if there is none.
        message: the reason in one line, empty if it ran.
        captured: the text that the runtime printed meanwhile, bounded.
        signal: name of the signal that ended the worker, or None.
        seconds: time spent on the job in the worker; in the parent if the worker was lost.
        altered: numbers of feeds whose held outputs had changed when they were checked again.
        proof: evidence of the device where the model ran, empty when none was requested.
        again: the reason why the job was run a second time, empty where it was not.
        broke_at: where a Python program failed with an exception that indicates a bug; otherwise empty.
    """

    key: str
    status: str
    phase: str = ""
    outputs: tuple[tuple[tuple[Array | None, ...], ...], ...] = ()
    changed: tuple[str, ...] = ()
    malformed: str = ""
    message: str = ""
    captured: str = ""
    signal: str | None = None
    seconds: float = 0.0
    proof: str = ""
    again: str = ""
    returned: tuple[tuple[int, ...], ...] = ()
    broke_at: str = ""
    altered: tuple[int, ...] = ()

    @property
    def broke(self) -> bool:
        """Whether a program with a bug failed after it had accepted the model, which is no longer a refusal."""
        return bool(self.broke_at) and (self.status == "crashed" or (self.status, self.phase) == ("refused", "run"))

    @property
    def reason(self) -> str:
        """The message, with the position of the failure."""
        return f"{self.message} ({self.broke_at})" if self.broke_at else self.message


class TargetUnavailable(Exception):
    """The target could not be started; the message has the reason in one line.

    `captured` has its output.
    """

    def __init__(self, message: str, captured: str = "") -> None:
        super().__init__(message)
        self.captured = captured
