"""Results of a check: problems, what could not be checked, and the nodes that were looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum

from msgspec import Struct


class Level(Enum):
    """The severity of a problem.

    ``error``: the document is broken. ``warning``: it is left open what the node does, or an exporter froze what was
    meant to vary. ``note``: legal, but a target was measured to fail or not to support it.
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Problem:
    """Problem of one node.

    rule
        Id of the rule, or of the violated clause.
    file
        The model's name as given; empty for a model in memory.
    node
        The node's path: ``/If_1:else_branch/decoder/LSTM_3``.
    operator
        ``LSTM-14``; only the operator's name if its version is not known.
    message
        The problem, in one line.
    clause
        Text of the clause; empty if the rule has none.
    advice
        The remedy.
    suppressed
        The reason of a suppression; None without one.
    """

    rule: str
    level: Level
    file: str
    node: str
    operator: str
    message: str
    clause: str = ""
    advice: str = ""
    suppressed: str | None = None


class Unchecked(Struct, frozen=True):
    """A rule that nobody can decide by looking at the model, and what is missing for it.

    ``rule`` is empty where no rule of the node could be tried, and ``internal_error`` is whether the suite's
    own code, or the operator's, raised an exception.
    """

    rule: str
    file: str
    node: str
    operator: str
    missing: str
    internal_error: bool = False


@dataclass(frozen=True)
class Checked:
    """One model, checked.

    nodes
        Paths of all recurrent nodes, with their operators.
    inconclusive
        Paths of recurrent nodes of operators that have no document here, with their names.
    unreadable
        Why nothing was checked at all; empty where something was.
    """

    file: str
    nodes: tuple[tuple[str, str], ...] = ()
    inconclusive: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    unreadable: str = ""

    @property
    def counted(self) -> tuple[Problem, ...]:
        """The problems that no suppression covers."""
        return tuple(problem for problem in self.problems if problem.suppressed is None)

    def with_problems(self, problems: Sequence[Problem]) -> Checked:
        return replace(self, problems=tuple(problems))
