"""Results of a check: problems, undecided rules, and the checked nodes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from msgspec import Struct


class Level(Enum):
    """The severity of a problem.

    ``error``: the document is violated. ``warning``: the document leaves the node's behaviour open, or an exporter
    fixed a size that should vary. ``note``: legal, but a target was measured to fail or not to support it.
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
    """A rule that the model alone does not decide, and the fact that is missing.

    ``rule`` is empty if no rule of the node could be checked. ``internal_error`` is whether the suite's own code, or
    the operator's, raised an exception.
    """

    rule: str
    node: str
    operator: str
    missing: str
    internal_error: bool = False


@dataclass(frozen=True)
class Checked:
    """Result of the check of one model.

    nodes
        Paths of all recurrent nodes, with their operators.
    inconclusive
        Paths of recurrent nodes of operators that have no document here, with their names.
    unreadable
        Why the model was not checked at all; empty if it was.
    """

    file: str
    nodes: tuple[tuple[str, str], ...] = ()
    inconclusive: tuple[tuple[str, str], ...] = ()
    problems: tuple[Problem, ...] = ()
    unchecked: tuple[Unchecked, ...] = ()
    unreadable: str = ""

    @property
    def counted(self) -> tuple[Problem, ...]:
        """Problems that no suppression covers."""
        return tuple(problem for problem in self.problems if problem.suppressed is None)
