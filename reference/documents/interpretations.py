"""Interpretations: the meanings of ambiguous clauses, as choices with which the reference can compute.

A target may follow any interpretation of a clause, but the same one everywhere. Each open :class:`Question` belongs to
the documents that have it; their clause tables explain it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct


class Question(Struct, frozen=True):
    """Question that a document leaves open.

    name
        A Python name; clause tables refer to it under ``interpretation``.
    options
        Its answers; the first one is the reference's own.
    asked_anew
        Whether it is a separate question for every activation function: following both options is then no
        contradiction.
    generous
        Option that contradicts the strict wording of the document but is still a possible reading; empty if there is
        none. Reports name the targets that follow it, with these ``words``.
    rare
        Options that are tried last, before a target fails.
    """

    name: str
    options: tuple[str, ...]
    asked_anew: bool = False
    generous: str = ""
    words: str = ""
    rare: tuple[str, ...] = ()


class _Questions(dict[str, Question]):
    """Questions of the documents that are loaded, by name. A search for another question loads the other documents."""

    def __init__(self) -> None:
        super().__init__()
        self._load: Callable[[], object] = lambda: None

    def await_documents(self, load: Callable[[], object]) -> None:
        """Set the function that loads all documents."""
        self._load = load

    def __contains__(self, name: object) -> bool:
        if not super().__contains__(name):
            self._load()
        return super().__contains__(name)


QUESTIONS = _Questions()


def ask(questions: Collection[Question]) -> None:
    """Make a document's questions known. Raises ValueError for a name that stands for another question already."""
    for question in questions:
        if QUESTIONS.setdefault(question.name, question) != question:
            raise ValueError(f"question {question.name!r} is asked by another document, with other options")


QUANTIZED_STATE = Question("quantized_state", ("float", "quantized"))
"""The state that passes from step to step if Y is quantized: the number, or its level in Y."""

ask((QUANTIZED_STATE,))


def asked_anew(name: str) -> bool:
    """Return whether a known question is a separate one for every activation function."""
    return name in QUESTIONS and QUESTIONS[name].asked_anew


class Interpretations:
    """One choice for each open question, an attribute by its name; the reference's own for those that are left out.

    Immutable. Raises ValueError for a question that nobody asks, and for an option that it does not have.
    """

    __slots__ = ("_choices", "_hash")
    _choices: dict[str, str]
    _hash: int

    def __init__(self, **choices: str) -> None:
        for name, option in choices.items():
            if name not in QUESTIONS:
                raise ValueError(f"there is no interpretation {name}; there are: {', '.join(QUESTIONS)}")
            if option not in (options := QUESTIONS[name].options):
                raise ValueError(f"interpretation {name} is one of {', '.join(options)}, not {option!r}")
        own = {name: option for name, option in sorted(choices.items()) if option != QUESTIONS[name].options[0]}
        object.__setattr__(self, "_choices", own)
        object.__setattr__(self, "_hash", hash(tuple(own.items())))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError("interpretations are values: see with_choices")

    def __getattr__(self, name: str) -> str:
        if name.startswith("_") or name not in QUESTIONS:
            raise AttributeError(name)
        return self._choices.get(name, QUESTIONS[name].options[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Interpretations) and self._choices == other._choices

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Interpretations({', '.join(f'{name}={option!r}' for name, option in self._choices.items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (tuple(self._choices.items()),)

    def with_choices(self, **choices: str) -> Interpretations:
        """These with other choices for some questions."""
        return Interpretations(**{**self._choices, **choices})

    def alternatives(self, open_questions: Iterable[str]) -> Iterator[Interpretations]:
        """Return every combination of the options of the named interpretations: this one first, rare ones last."""
        return iter(_alternatives(self, frozenset(open_questions)))


def _made(choices: tuple[tuple[str, str], ...]) -> Interpretations:
    return Interpretations(**dict(choices))


@cache  # every case asks, and few questions are open together
def _alternatives(usual: Interpretations, open_questions: frozenset[str]) -> tuple[Interpretations, ...]:
    names = sorted(open_questions)
    choices = []
    for name in names:
        own = getattr(usual, name)
        choices.append(sorted(QUESTIONS[name].options, key=own.__ne__))

    def rare(options: tuple[str, ...]) -> bool:
        pairs = zip(names, options, strict=True)
        return any(option in QUESTIONS[name].rare and option != getattr(usual, name) for name, option in pairs)

    combinations = sorted(itertools.product(*choices), key=rare)
    return tuple(usual.with_choices(**dict(zip(names, options, strict=True))) for options in combinations)


USUAL = Interpretations()
"""The reference's own."""


Default = int | float | str | tuple[str, ...]


class Erratum(Struct, frozen=True):
    """Default value that a schema registers and its own document contradicts.

    registered
        The value in ``onnx.defs``.
    meant
        The value in the document; None if the document says that there is no single default.
    why
        Section of the document.
    """

    op_type: str
    versions: tuple[int, ...]
    attribute: str
    registered: Default
    meant: Default | None
    why: str


ERRATA: tuple[Erratum, ...] = (
    Erratum(
        "GRU",
        (1,),
        "direction",
        "foward",
        "forward",
        "Attribute direction of GRU-1: must be one of forward (default), reverse, or bidirectional",
    ),
    Erratum(
        "RNN",
        (1, 7, 14, 22),
        "activations",
        ("Tanh", "Tanh"),
        None,
        "Attribute activations of RNN: one function, or two if bidirectional; the default is Tanh for each",
    ),
)


def corrected(op_type: str, version: int, attribute: str, registered: Default) -> Default | None:
    """Return the true default of an attribute. An erratum that no longer fits the registered value corrects nothing."""
    for erratum in ERRATA:
        if (erratum.op_type, erratum.attribute) == (op_type, attribute) and version in erratum.versions:
            return erratum.meant if registered == erratum.registered else registered
    return registered
