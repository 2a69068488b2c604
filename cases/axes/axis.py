"""An axis: one field of a case, with its values, rules, effect and descriptions.

Random cases, strategies, searches for simpler cases and reports use only the axes of an operator. So a field is added
by a line in its spec and one record in a table of this package.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from ...reference import OperatorVersion
from .violation import Violation

if TYPE_CHECKING:
    from ..specs.features import Observed
    from ..specs.model import TensorDraft
    from .session import SessionScript

Row = Mapping[str, Any]
Kind = Literal["illegal", "open", "same"]
Changes = Mapping[str, Any]
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Condition(Struct, frozen=True):
    """Description that is true or false of any case."""

    words: str
    holds: Callable[[Any], bool]


def of_values(words: str, name: str, *values: Any) -> Condition:
    """Return the condition of a case whose field has one of some values."""
    return Condition(words, lambda spec: getattr(spec, name, None) in values)


class Feature(Struct, frozen=True):
    """A property of cases, as clause tables and files of expected failures name it.

    words
        Its noun phrase, for all readers.
    node
        Whether a node with its inputs has it; None if the operator version cannot have it.
    case
        Whether a case has it, for properties that its node does not show.
    column
        Whether reports have a column for it.
    level
        The level of a certificate for which some passing case must have it, if the version can.
    """

    name: str
    words: str = ""
    node: Callable[[Observed], bool | None] | None = None
    case: Callable[[Any], bool] | None = None
    column: bool = False
    level: str = ""


def has_attribute(name: str) -> Callable[[Observed], bool]:
    """Return a predicate that is true of nodes with an attribute."""
    return lambda o: o.attributes.get(name) is not None


def open_question(name: str) -> Callable[[Observed], bool]:
    """Return a predicate that is true of nodes whose outputs depend on an interpretation."""
    return lambda o: name in o.configuration.open_questions


class Rule(Struct, frozen=True):
    """Values of a field that do not go with those of others.

    reads, clashes
        The other fields on which it depends, and whether their values do not go with the field.
    values
        The values of the field that may clash; None: any.
    instead
        The value that replaces them, which clashes with nothing; None: the first value of the field.
    kind
        ``same``: a case with it tests no more than one with ``instead``. ``illegal``: such a case cannot be made.
        ``open``: valid, but its meaning is open; profiles avoid it because it makes the rest of a case hard to read,
        searches do not.
    field
        The field that gives way; its axis sets it (:func:`rules_of`).
    """

    reads: tuple[str, ...]
    clashes: Callable[..., Any]
    values: tuple[Any, ...] | None = None
    instead: Any = None
    kind: Kind = "same"
    field: str = ""

    def hit(self, row: Row) -> bool:
        """Return whether a row has values that do not go together; False if it lacks one of the fields."""
        if self.field not in row or row[self.field] == self.instead:
            return False
        if self.values is not None and row[self.field] not in self.values:
            return False
        return all(name in row for name in self.reads) and bool(self.clashes(*(row[name] for name in self.reads)))


class Axis(Struct, frozen=True, kw_only=True, eq=False):
    """One field of a case. Members that are not given are empty.

    name
        The field of the spec, the key of a case's JSON, and the name with which users restrict draws.
    values
        Its listed values, simplest first.
    rare
        Those of its values that open a question, corrupt the data, or mean the same as another one. Searches draw them
        seldom, since they make combinations hard to read.
    fits
        Test for values that are not listed, with a description of all values.
    between
        Any float32 number from the first to the second is drawn, too.
    often
        Values for random cases and strategies, each with its weight as its number of entries; empty: in random cases
        all that are not rare, and in strategies rare ones, too, a few times.
    drawn
        Strategy for values that cannot be listed, from ``hypothesis.strategies``.
    there
        Whether an operator version has a value. A version that has none of the values has only the default.
    ordered
        Whether each value is simpler than those after it; else only the default is simpler.
    rules
        Restrictions of the field.
    forbidden
        Ways in which it makes a model invalid.
    level, usual
        The narrowest level of a certificate with all its values, and the values that belong to narrower ones (default:
        the default); ``none``: no level has the others.
    features
        Features that it adds to a case.
    called
        Its name in a sentence, if that is not ``name``.
    marked
        Part of a case's id if its field does not have its default: a format of the value, or a function of the spec.
    conditions
        Descriptions of a failing case that needs a value, the simplest first, by value or as a function of the value
        and of those that were tried instead. Default: the descriptions of its features.
    absences
        Descriptions of a failing case with a value that passes with the changes of ``richer``.
    richer, richer_alone
        Changes that add something, to tell faults apart, and whether they are not combined with those of others.
    simpler
        Changes that make a legal case simpler, in place of those that follow from the values.
    attribute
        The attribute of the node that has its value, unless that is the default.
    prepare, fill
        Effect on the tensors of a run: before X, W and R are drawn, and after.
    script
        Effect on the runs of a case's sessions, where the field does not have its default.
    """

    name: str
    values: tuple[Any, ...] = ()
    rare: tuple[Any, ...] = ()
    fits: tuple[Callable[[Any], bool], str] | None = None
    between: tuple[float, float] | None = None
    often: tuple[Any, ...] = ()
    drawn: Callable[[Any], Any] | None = None
    there: Callable[[OperatorVersion, Any], bool] | None = None
    ordered: bool = False
    rules: tuple[Rule, ...] = ()
    forbidden: tuple[Violation, ...] = ()
    level: Literal["", "sequence", "complete", "none"] = ""
    usual: tuple[Any, ...] | None = None
    features: tuple[Feature, ...] = ()
    called: str = ""
    marked: str | Callable[[Any], str] = ""
    conditions: Mapping[Any, tuple[Condition, ...]] | Callable[[Any, Collection[Any]], tuple[Condition, ...]] = NOTHING
    absences: Mapping[Any, Condition] = NOTHING
    richer: Changes | Callable[[Any], Changes] = NOTHING
    richer_alone: bool = False
    simpler: Callable[[Any], Iterable[Changes]] | None = None
    attribute: str = ""
    prepare: Callable[[Any, TensorDraft], None] | None = None
    fill: Callable[[Any, TensorDraft], None] | None = None
    script: Callable[[Any, SessionScript], None] | None = None

    @property
    def common(self) -> tuple[Any, ...]:
        """Listed values that are not rare."""
        return tuple(value for value in self.values if value not in self.rare)

    def holds(self, value: Any) -> bool:
        """Return whether strategies may draw a value."""
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        # True is not layout 1.
        if any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in self.values):
            return True
        if self.between is not None:
            return number and self.between[0] <= value <= self.between[1]
        return self.fits is not None and self.fits[0](value)

    @property
    def others(self) -> str:
        """Description of the values that strategies may draw and that are not listed."""
        if self.between is not None:
            return f"any number from {self.between[0]:g} to {self.between[1]:g}"
        return self.fits[1] if self.fits is not None else ""

    def of(self, operator: OperatorVersion) -> Axis | None:
        """Return the axis with the values that an operator version has; None if it has none."""
        supports = self.there
        if supports is None:
            return self
        values, rare, often = (
            tuple(value for value in listed if supports(operator, value))
            for listed in (self.values, self.rare, self.often)
        )
        return replace(self, values=values, rare=rare, often=often) if values else None

    def mark(self, spec: Any) -> str:
        """Return the part of a case's id; usually empty."""
        if callable(self.marked):
            return self.marked(spec)
        value = getattr(spec, self.name)
        return "" if value == default_of(spec, self.name) else self.marked.format(value)

    def conditions_for(self, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        """Return the conditions for a value; `instead` are the values that were tried in its place."""
        return self.conditions(value, instead) if callable(self.conditions) else self.conditions.get(value, ())

    def added(self, spec: Any) -> Changes:
        """Return the changes of `richer`."""
        return self.richer(spec) if callable(self.richer) else self.richer

    def simplified(self, spec: Any) -> Iterator[tuple[str, Changes]]:
        """Yield (field, changes) that make a legal case simpler, the largest simplification first."""
        if self.simpler is not None:
            yield from ((self.name, changes) for changes in self.simpler(spec))
            return
        value, plain = getattr(spec, self.name), default_of(spec, self.name)
        if self.ordered and value in self.values:
            yield from ((self.name, {self.name: less}) for less in self.values[: self.values.index(value)])
        elif value != plain:
            yield self.name, {self.name: plain}


def default_of(spec: Any, name: str) -> Any:
    """Return the default of a field of a spec."""
    return getattr(type(spec), name)


def switch(name: str, **members: Any) -> Axis:
    """Return the axis of a rare option, off by default.

    A case with it takes longer, or is skipped if a worker does not declare it.
    """
    return choice(name, False, (True,), 31, **{"marked": name, **members})


def choice(name: str, usual: Any, others: tuple[Any, ...], weight: int, **members: Any) -> Axis:
    """Return the axis of a field that has a usual value, drawn `weight` times as often as each of the other ones."""
    members = {"rare": others, "often": (usual,) * weight + others, "ordered": True, **members}
    return Axis(name=name, values=(usual, *others), **members)


def needs(others: Mapping[Any, str], absent: tuple[Any, ...] = (False, "none")) -> tuple[Rule, ...]:
    """Return the rules of values that need an input which another field adds; `others` has that field by value."""
    return tuple(Rule((field,), absent.__contains__, (value,)) for value, field in others.items())


def needs_numbers(*values: Any, kind: Kind = "same") -> Rule:
    """Return the rule of values, or of all but the first one, that need an X with elements."""
    return Rule(("T", "N"), lambda T, N: not (T and N), values or None, kind=kind)


@cache
def rules_of(axes: tuple[Axis, ...]) -> tuple[Rule, ...]:
    """Return the rules of some axes, each with its field and the value that replaces another one.

    A rule follows those that may change a field that it reads.
    """
    rules = [
        replace(rule, field=axis.name, instead=axis.values[0] if rule.instead is None else rule.instead)
        for axis in axes
        for rule in axis.rules
    ]
    own = dict.fromkeys(rule.field for rule in rules)
    reads = {name: {read for rule in rules if rule.field == name for read in rule.reads if read in own} for name in own}
    order = list(TopologicalSorter(reads).static_order())
    return tuple(sorted(rules, key=lambda rule: order.index(rule.field)))


@cache
def features_in(axes: tuple[Axis, ...]) -> tuple[Feature, ...]:
    """Return the features of some axes in order."""
    return tuple(feature for axis in axes for feature in axis.features)


def skips(formal: Sequence[str], given: Container[str]) -> bool:
    """Return whether a name that is absent comes before one that is present."""
    present = [name in given for name in formal]
    return any(not before and after for before, after in itertools.pairwise(present))
