"""Draft of the sessions of a case: axes add to it in turn."""

from __future__ import annotations

from typing import NamedTuple


class Turn(NamedTuple):
    """One run.

    run
        Number of the inputs: 0 for the case's own.
    weights
        0 for the case's own, 1 for others.
    session
        0 for the case's own; 1 for another one, of a model with the other weights.
    part
        The part of the inputs that is another one; the others are the case's own. All are as `run` and `weights` say
        where it is empty.
    """

    run: int
    weights: int = 0
    session: int = 0
    part: str = ""


class CourseDraft:
    """Draft that :meth:`..axis.Axis.course` changes.

    turns
        The runs in their order; the case's own is among them.
    needs
        Abilities that a worker's sessions must have.
    refused
        Whether an attempt that must fail comes before the case's own run is repeated.
    looks
        Whether all outputs are held, and compared in the end.
    """

    def __init__(self) -> None:
        self.turns = [Turn(0)]
        self.needs: set[str] = set()
        self.refused = self.looks = False
