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
    """The values of an axis in one operator version.

    values
        Simplest first; where not all can be listed, they stand for the others.
    rare
        Further legal values: they open a question, spoil the data, or say in other words what another value says. They
        would make combinations hard to read, so profiles have them in cases of their own; search draws them seldom.
    between
        Any float32 number from the first to the second is a value too.
    often
        Values for dice that throw dense cases, each as often as is its weight; ``values`` where it is empty.
    fits
        Whether a value is one that is not listed; with what these are in words. None where there are no such.
    share
        The share of a search's draws that take a rare value; None where it decides by itself.
    asked
        Whether Hypothesis draws a rare value only where a test names the axis: a kernel that takes one node, and was
        tested before the axis was there, is not to be failed by it.
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
"""The domain of what is there or not, and seldom is: there are several of them, and a case that has one takes longer,
or is not tried where a worker does not speak of it."""


class Rule(Struct, frozen=True):
    """Values of a field that do not go with those of others.

    field, values
        What gives way: the field, and those of its values that may clash; any where it is None.
    instead
        What it gives way to. That clashes with nothing.
    reads
        The other fields on which it depends.
    clashes
        clashes(row): whether the row, which has the field and all that is read, has what does not go together.
    kind
        ``illegal``: there is no such case. ``open``: the document allows it, but leaves open what it means; designs
        keep clear of it, since that would make all the rest of a row hard to read, and search does not. ``same``: it
        says in other words what ``instead`` says.
    """

    field: str
    instead: Hashable
    reads: tuple[str, ...]
    clashes: Callable[[Row], bool]
    values: tuple[Hashable, ...] | None = None
    kind: Kind = "illegal"

    def hit(self, row: Row) -> bool:
        """Tell whether a row has what does not go together; one without some of the fields has not."""
        if self.field not in row or (self.values is not None and row[self.field] not in self.values):
            return False
        return all(name in row for name in self.reads) and self.clashes(row)


class Axis:
    """One axis. What a subclass does not say, it has not.

    name
        One word, which users bound draws by.
    fields
        The keys of a case's JSON that it owns.
    part
        ``model``, ``inputs`` or ``session``: what it changes. Cases that differ in inputs alone share a model.
    rules
        What its fields do not go with.
    forbidden
        The ways in which it breaks a document.
    levels
        By name of a level of a certificate the values that belong to it; all of them where no level is named.
        ``basic`` stands for ``sequence`` too where that is not named.
    required
        By name of a level the features that some passing case of it must have, where the version has them.
    words, columns
        The noun phrase of each of its features, as every reader is told of it; and those of them that are columns of
        reports.
    block
        The profile whose cases have its rare values; those of ``core`` have them where it is empty.
    order
        Values of a field from the simplest on, where there are more than a simplest one.
    marked
        The word for a reader of a case's id where its field has not its default; ``{}`` stands for the value.
    conditions
        What is said of a failing case that has a value of its field and cannot do without, the plainest first; its
        words stand for it where nothing is said here.
    absences
        What is said of a failing case that has a value of its field and passes with what :meth:`richer` adds.
    richer_alone
        Whether what :meth:`richer` adds is not put together with what others add.
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
        """Values that a case may have, of fields with few; the default alone where the version lacks the axis."""
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
        """The field of a case that cannot be what it is, and what it could be; None where all is well. Values are also
        held against :meth:`choices`, before this."""
        return None

    def written(self, row: dict[str, Any], operator: OperatorVersion) -> dict[str, Any]:
        """A row of a design with the fields of a case in place of the design's own words."""
        return row

    def drawn(self, st: Any) -> Mapping[str, Any]:
        """Strategies of Hypothesis (`st`) for values that cannot be listed, by field."""
        return NOTHING

    # What it does

    def attributes(self, spec: Any) -> Mapping[str, Any]:
        """The attributes of the node that it writes down."""
        return NOTHING

    def resize(self, spec: Any, draft: TensorDraft) -> None:
        """First phase of a run's tensors: how many steps and rows there are."""

    def scale(self, spec: Any, draft: TensorDraft) -> None:
        """Second phase: how numbers are drawn."""

    def tensors(self, spec: Any, draft: TensorDraft) -> None:
        """Third phase: draw its own."""

    def spoil(self, spec: Any, draft: TensorDraft) -> None:
        """Last phase: change what others have drawn."""

    def course(self, spec: Any, draft: CourseDraft) -> None:
        """Say what the sessions do: axes are asked in turn, each adds to what others have said."""

    def constants(self, spec: Any, names: frozenset[str]) -> frozenset[str]:
        """The inputs that are initializers, where axes before it say that these are."""
        return names

    # What is told

    def observe(self, observed: Observed) -> Mapping[str, bool]:
        """Each feature of nodes that it is about, and whether this one has it."""
        return NOTHING

    def used(self, spec: Any) -> Mapping[str, bool]:
        """Each feature of a case that its node does not show, and whether it has it."""
        return NOTHING

    def told(self, name: str, value: Any, instead: Collection[Any]) -> tuple[Condition, ...]:
        """The conditions of a value of one of its fields, in the place of which others were tried."""
        return self.conditions.get(value, ()) if name == self.fields[0].name else ()

    def mark(self, spec: Any) -> str:
        """The word that a reader of a case's id should know; nothing mostly."""
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
        """Changes with which more is there, for faults to be told apart; nothing where there is no more."""
        return NOTHING


Own = TypeVar("Own", bound=Axis)


def but(axis: Own, **said: Any) -> Own:
    """The axis as an operator has it of which it says some things otherwise, each an attribute of :class:`Axis`."""
    other = copy.copy(axis)
    vars(other).update(said)
    return other


@cache
def acting(axes: tuple[Axis, ...], method: str) -> tuple[Callable[..., Any], ...]:
    """A method of those axes that have one of their own, in their order: most have not, and every case asks."""
    usual = getattr(Axis, method)
    return tuple(own for axis in axes if getattr(own := getattr(axis, method), "__func__", own) is not usual)


@cache
def marking(axes: tuple[Axis, ...]) -> tuple[Callable[..., str], ...]:
    """The method that marks cases, of those axes that mark any."""
    own = acting(axes, "mark")
    return tuple(axis.mark for axis in axes if axis.marked or axis.mark in own)


def choices_of(domain: Domain) -> tuple[Any, ...]:
    """All values that a domain lists."""
    return (*domain.values, *domain.rare)
