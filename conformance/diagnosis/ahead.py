"""Cases looked at ahead of their turn, by other processes: which of the faults that are known explain them.

That is a function of a case, of the faults that are known by then, and of what explained the last case which exercises
the same clauses. So the cases that come next are sent away with what is known now. An answer counts if the question is
still the same when it is their turn, and then everything is as if they had been looked at here: what is known, what it
has cost, and which numbers are at hand. It is forgotten otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ...reference.operators.observation import Observation
from ..workers.pool import Pool
from .failing_case import FailingCase
from .fitting import Arithmetics, Explanation, Followed
from .search import Search

__all__ = ["Ahead"]

_WINDOW = 8
"""Cases for each process that are looked at ahead of their turn, at most: they may be so in vain."""


@dataclass(frozen=True)
class _Question:
    """Everything on which it depends, beside the case, whether known faults explain it.

    known, alike
        The faults that are known, and those of them that explained the last case with the same clauses.
    wider
        The arithmetics that do not explain the case by themselves, where that is known.
    """

    known: Explanation
    alike: Explanation
    wider: tuple[str, ...] | None


@dataclass(frozen=True)
class _Answer:
    """The outcome of a question.

    faults
        Those that explain the case; None where none do.
    alike, wider
        As in a question, afterwards.
    work
        What it cost.
    """

    question: _Question
    faults: Explanation | None
    alike: Explanation
    wider: tuple[str, ...] | None
    work: float


@dataclass(frozen=True)
class _Group:
    """Cases of an operator that exercise the same clauses, one after the other: each depends on those before it."""

    accuracy: str
    followed: Followed
    arithmetics: Arithmetics
    cases: tuple[FailingCase, ...]
    questions: tuple[_Question, ...]

    @property
    def bytes(self) -> int:
        """The bytes of all numbers in it, at least 1."""
        runs = (run for case in self.cases for run in case.runs)
        return 1 + sum(array.nbytes for run in runs for array in (*run.inputs.values(), *run.outputs.values()))

    def searched(self) -> tuple[Ahead, list[_Answer]]:
        """A search that has looked at these cases, and nothing else, and what came of it, as far as it went: what
        breaks off does so once more where it is that case's turn."""
        search = Ahead(self.accuracy, 1.0, self.followed, arithmetics=self.arithmetics)
        first, asked = self.cases[0], self.questions[0]
        search.known[first.op] = [*asked.known]
        search.explain_alike(first, asked.alike)
        answers: list[_Answer] = []
        for case, question in zip(self.cases, self.questions, strict=True):
            search.compute_wider(case, question.wider)
            try:
                answers.append(search.answer(case))
            except Exception:
                break
        return search, answers


def _answers(group: _Group) -> list[_Answer]:
    return group.searched()[1]


class Ahead(Search):
    """A search in which other processes look at cases ahead of their turn."""

    def __init__(self, *args: Any, pool: Pool | None = None, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._pool = pool or Pool()
        self._answers: dict[str, _Answer] = {}
        # Cases of which the numbers are at hand, as far as anybody can tell, by the question to which they were used.
        self._used: dict[str, _Question] = {}
        self._since, self._size = 0, 0  # cases since the number of known faults has changed, and that number

    def in_turn(self, cases: Sequence[FailingCase], settled: bool = False) -> Iterator[FailingCase]:
        """The cases in their order.

        settled
            Whether no fault becomes known on the way.
        """
        for number, case in enumerate(cases):
            size = sum(map(len, self.known.values()))
            self._since, self._size = (self._since + 1 if size == self._size else 0), size
            most = len(cases) if settled else min(self._since, _WINDOW * self._pool.jobs)
            if self._pool.shares() and most >= self._pool.jobs and not self._answered(case):
                self._look_ahead(cases[number : number + most])
            yield case

    def _look_ahead(self, cases: Iterable[FailingCase]) -> None:
        groups: dict[tuple[str, frozenset[str]], list[FailingCase]] = {}
        for case in cases:
            asked = self._known_then.get(case.case) != len(self.known[case.op])
            if asked and case.case not in self._observations and not self._answered(case):
                groups.setdefault((case.op, case.topics), []).append(case)
        sent = [
            _Group(self.accuracy, self.followed, self.arithmetics, tuple(some), tuple(map(self._question, some)))
            for some in groups.values()
        ]
        results = self._pool.map(_answers, sent, lambda group: group.bytes, together=1)
        for group, answers in zip(sent, results, strict=True):
            self._answers |= {case.case: answer for case, answer in zip(group.cases, answers, strict=False)}

    def _question(self, case: FailingCase) -> _Question:
        known = tuple(self.known[case.op])
        alike = tuple(d for d in self._alike.get(case.topics, ()) if d in known)
        return _Question(known, alike, self._arithmetics_of.get(case.case))

    def _answered(self, case: FailingCase) -> bool:
        """Tell whether there is an answer for a case to what would be asked now."""
        answer = self._answers.get(case.case)
        at_hand = case.case in self._observations
        return answer is not None and not at_hand and answer.question == self._question(case)

    def by_known(self, failing_case: FailingCase) -> Explanation | None:
        """The faults among those known of the operator that explain a case."""
        case, known = failing_case.case, self.known[failing_case.op]
        if self._known_then.get(case) == len(known):
            return None
        answered = self._answered(failing_case)
        answer = self._answers.pop(case, None)
        if answer is None or not answered:
            return super().by_known(failing_case)
        self.compute_wider(failing_case, answer.wider)
        if answer.alike != answer.question.alike:
            self.explain_alike(failing_case, answer.alike)
        self._used[case] = answer.question
        self._hold(case, None)
        self._charge(answer.work)
        if answer.faults is None:
            self._known_then[case] = len(known)
        return answer.faults

    def answer(self, failing_case: FailingCase) -> _Answer:
        """The answer to what is asked of a case now, in a search that has not looked at it."""
        question = self._question(failing_case)
        faults = self.by_known(failing_case)
        after = self._question(failing_case)
        return _Answer(question, faults, after.alike, after.wider, self._observed(failing_case).work)

    def explain_alike(self, failing_case: FailingCase, faults: Explanation) -> None:
        """Have faults be what explained the last case that exercises the same clauses as one."""
        self._alike[failing_case.topics] = faults

    def compute_wider(self, failing_case: FailingCase, wider: tuple[str, ...] | None) -> None:
        """Have arithmetics be those that do not explain a case by themselves, where they are known."""
        if wider is not None:
            self._arithmetics_of[failing_case.case] = wider

    def _made(self, failing_case: FailingCase) -> Observation:
        """The numbers of a case; those that were used elsewhere are used in the same way here, as what was worked out
        from them once costs nothing when it is asked for again."""
        question = self._used.pop(failing_case.case, None)
        if question is None or failing_case.case not in self._observations:
            return super()._made(failing_case)
        group = _Group(self.accuracy, self.followed, self.arithmetics, (failing_case,), (question,))
        return group.searched()[0]._observed(failing_case)
