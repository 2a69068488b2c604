"""An axis: one thing in which cases differ, and all that is to be known of it.

Random cases, strategies, searches for simpler cases and reports ask the axes of an operator and nothing else. So an
axis is added by writing one module, and naming it in the lists of the operators that have it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct

from ...reference import OperatorVersion
from .condition import Condition
from .violation import Violation

if TYPE_CHECKING:
    from .course import CourseDraft
    from .observed import Observed
    from .tensors.draft import TensorDraft

Row = Mapping[str, Any]
Kind = Literal["illegal", "open", "same"]
NOTHING: Mapping[str, Any] = MappingProxyType({})


class Field(Struct, frozen=True):
    """A key of a case's JSON.

    type
        As msgspec converts it.
    default
        Its simplest value, which JSON leaves out.
    called
        The word for it in a sentence, where that is not its name.
    """

    name: str
    type: Any
    default: Any
    called: str = ""


class Domain(Struct, frozen=True):
    """Values of an axis in one operator version.

    values
        Simplest first; if not all can be listed, they stand for the others.
    rare
        Further legal values: they open a question, corrupt the data, or mean the same as another value. They would make
        combinations hard to read, so profiles have them in cases of their own; searches draw them seldom.
    between
        Any float32 number from the first to the second is a value too.
    often
        Values for random cases, each with its weight as its number of entries; empty: ``values``.
    fits
        Test for values that are not listed, with a description of these. None if there are none.
    share
        Share of rare values in a search; None if the search decides.
    asked
        Whether strategies draw a rare value only if a test names the axis, so that new axes do not break existing tests
        of kernels for one node.
    """

    values: tuple[Hashable, ...]
    rare: tuple[Hashable, ...] = ()
    between: tuple[float, float] | None = None
    often: tuple[Hashable, ...] = ()
    share: float | None = None
    fits: tuple[Callable[[object], bool], str] | None = None
    asked: bool = False

    def holds(self, value: Hashable) -> bool:
        """Tell whether that is a value of the axis."""
        # True is no layout 1.
        listed = (*self.values, *self.rare)
        if any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in listed):
            return True
        if self.fits is not None and self.fits[0](value):
            return True
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and self.between is not None and self.between[0] <= value <= self.between[1]  # type: ignore

    @property
    def others(self) -> str:
        """Values that are not listed, in words."""
        if self.fits is not None:
            return self.fits[1]
        return f"any number from {self.between[0]:g} to {self.between[1]:g}" if self.between is not None else ""


SELDOM = Domain((False,), rare=(True,), often=(*(False,) * 31, True), share=1 / 32)
"""Domain of a feature that is seldom present: there are several, and a case with one takes longer, or is not tried if a
worker does not declare it."""


class Rule(Struct, frozen=True):
    """Values of a field that do not go with those of others.

    field, values
        The field that gives way, and those of its values that may clash; None: any.
    instead
        The value that replaces it, which clashes with nothing.
    reads
        The other fields on which it depends.
    clashes
        clashes(row): whether the values of a row do not go together; the row has the field and all that it reads.
    kind
        ``illegal``: there is no such case. ``open``: valid, but its meaning is open; profiles avoid it because it makes
        the rest of a case hard to read, searches do not. ``same``: it means the same as ``instead``.
    """

    field: str
    instead: Hashable
    reads: tuple[str, ...]
    clashes: Callable[[Row], bool]
    values: tuple[Hashable, ...] | None = None
    kind: Kind = "illegal"

    def hit(self, row: Row) -> bool:
        """Tell whether a row has values that do not go together; a row without some of the fields has none."""
        if self.field not in row or (self.values is not None and row[self.field] not in self.values):
            return False
        return all(name in row for name in self.reads) and self.clashes(row)


class Axis:
    """One axis. Members that a subclass does not define are empty.

    name
        One word, with which users restrict draws.
    fields
        The keys of a case's JSON that it owns.
    part
        The part that it changes: ``model``, ``inputs`` or ``session``. Cases that differ in inputs alone share a model.
    rules
        Restrictions of its fields.
    forbidden
        Ways in which it makes a model invalid.
    levels
        By level of a certificate the values that belong to it; a missing level allows all, and ``sequence`` defaults to
        ``basic``.
    required
        By level the features that some passing case must have, if the version has them.
    words, columns
        The noun phrase of each of its features, for all readers; and those features that are columns of reports.
    block
        Profile whose cases have its rare values; empty: ``core``.
    order
        Values of a field, simplest first, if there are more than two kinds.
    marked
        Word in a case's id if its field has not its default; ``{}`` stands for the value.
    conditions
        Words for a failing case that needs a value of its field, the plainest first; default: its ``words``.
    absences
        Words for a failing case with a value of its field that passes with the changes of :meth:`richer`.
    richer_alone
        Whether the changes of :meth:`richer` are not combined with those of others.
    """

    name: str
    fields: tuple[Field, ...] = ()
    part: Literal["model", "inputs", "session"] = "inputs"
    rules: tuple[Rule, ...] = ()
    forbidden: tuple[Violation, ...] = ()
    levels: Mapping[str, Collection[Any]] = NOTHING
    required: Mapping[str, tuple[str, ...]] = NOTHING
    words: Mapping[str, str] = NOTHING
    columns: tuple[str, ...] = ()
    block: str = ""
    order: tuple[Any, ...] = ()
    marked: str = ""
    conditions: Mapping[Any, tuple[Condition, ...]] = NOTHING
    absences: Mapping[Any, Condition] = NOTHING
    richer_alone: bool = False

    # The space

    def domains(self, operator: OperatorVersion) -> Mapping[str, Domain]:
        """Domains that a version has, by name of the axis or of one of its fields; empty where it lacks the axis."""
        return NOTHING

    def choices(self, operator: OperatorVersion) -> Mapping[str, tuple[Any, ...]]:
        """Return the values of a case's fields with few values; the default alone if the version lacks the axis."""
        domains = self.domains(operator)
        return {
            f.name: self._simplest_first(choices_of(domains[f.name])) if f.name in domains else (f.default,)
            for f in self.fields
            if f.name not in domains or domains[f.name].between is None
        }

    def _simplest_first(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        ordered = tuple(value for value in self.order if value in values)
        return (*ordered, *(value for value in values if value not in ordered))

    def refusal(self, spec: Any) -> tuple[str, str] | None:
        """Return a field of a case with an impossible value, and its possible values; None if there is none. Values are
        compared with :meth:`choices` before."""
        return None

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        """Return a row with the fields of a case in place of the design's own names."""
        return row

    def drawn(self, st: Any) -> Mapping[str, Any]:
        """Strategies of Hypothesis (`st`) for values that cannot be listed, by field."""
        return NOTHING

    # What it does

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        """Return the attributes that it writes into the node."""
        return NOTHING

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        """First phase of a run's tensors: how many steps and rows there are."""

    def scale(self, spec: Any, draft: TensorDraft) -> None:
        """Second phase: how numbers are drawn."""

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        """Third phase: draw its own."""

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        """Last phase: change tensors that others have drawn."""

    def course(self, spec: Any, draft: CourseDraft) -> None:
        """Add to the actions of the sessions: axes are asked in turn."""

    def constants(self, spec: Any, names: frozenset[str]) -> frozenset[str]:
        """Return the inputs that are initializers, from those of the axes before it."""
        return names

    # What is told

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        """Return each of its features of nodes, and whether this node has it."""
        return NOTHING

    def used(self, spec: Any) -> Mapping[str, bool]:
        """Return each of its features that a node does not show, and whether the case has it."""
        return NOTHING

    def told(self, name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        """Return the conditions for a value of one of its fields, instead of which others were tried."""
        return self.conditions.get(value, ()) if name == self.fields[0].name else ()

    def mark(self, spec: Any) -> str:
        """Return the word for a case's id; mostly none."""
        if not self.marked:
            return ""
        value = getattr(spec, self.fields[0].name)
        return "" if value == self.fields[0].default else self.marked.format(value)

    # Its neighbours

    def simpler(self, spec: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """(field, changes) that make a legal case simpler, those first that take most away."""
        for own in self.fields:
            value = getattr(spec, own.name)
            if value in self.order:
                yield from ((own.name, {own.name: less}) for less in self.order[: self.order.index(value)])
            elif value != own.default:
                yield own.name, {own.name: own.default}

    def richer(self, spec: Any) -> Mapping[str, Any]:
        """Return changes that add something, to tell faults apart; nothing if nothing can be added."""
        return NOTHING


Own = TypeVar("Own", bound=Axis)


def but(axis: Own, **said: Any) -> Own:
    """Return a copy of an axis with other values of some attributes of :class:`Axis`, for one operator."""
    other = copy.copy(axis)
    vars(other).update(said)
    return other


@cache
def acting(axes: tuple[Axis, ...], method: str) -> tuple[Callable[..., Any], ...]:
    """Return a method of those axes that define it, in their order: most do not, and every case asks."""
    usual = getattr(Axis, method)
    return tuple(own for axis in axes if getattr(own := getattr(axis, method), "__func__", own) is not usual)


@cache
def marking(axes: tuple[Axis, ...]) -> tuple[Callable[..., str], ...]:
    """Return the method that marks cases, of those axes that mark any."""
    own = acting(axes, "mark")
    return tuple(axis.mark for axis in axes if axis.marked or axis.mark in own)


def choices_of(domain: Domain) -> tuple[Any, ...]:
    """Return all values that a domain lists."""
    return (*domain.values, *domain.rare)
