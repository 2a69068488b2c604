"""Courses: what the sessions of a case do beyond running every feed in turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from numpy.typing import NDArray

__all__ = ["ABILITIES", "Course", "Step"]

ABILITIES = {
    "weights": "weights that are fed and change between runs",
    "held": "outputs that are held while the session runs again",
    "several": "sessions of different weights at the same time",
    "many": "many runs of one session",
    "refusals": "a run after one that was refused",
    "sizes": "runs whose sizes go up, down and up again",
}
"""What a worker may say that its sessions can do, by the word it uses in the protocol."""


class Step(NamedTuple):
    """One step of a course.

    does
        ``run`` feed `number` in session `session`; ``try`` attempt `number` there, which may be refused; ``look`` at
        the outputs of the earlier step `number` again.
    """

    does: Literal["run", "try", "look"]
    session: int
    number: int


@dataclass(frozen=True)
class Course:
    """The steps of a case's sessions, and what they need beside its model and feeds.

    needs
        The abilities of a worker without which it is not tried.
    models
        Those of further sessions: the case's own model is session 0, these are 1, 2, ... They are the same node with
        other weights. Each is prepared at its first step, and lives until the end.
    attempts
        Feeds by the names of graph inputs that may be refused; nobody asks what comes of them.
    """

    needs: frozenset[str]
    steps: tuple[Step, ...]
    models: tuple[bytes, ...] = ()
    attempts: tuple[Mapping[str, NDArray[Any]], ...] = ()

    @cached_property
    def runs(self) -> Counter[int]:
        """How often each feed is run."""
        return Counter(step.number for step in self.steps if step.does == "run")
