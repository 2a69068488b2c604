"""Faults: the reference with one thing wrong, each a named violation of a clause.

They prove the suite (each must be caught) and diagnose targets (which one explains this failure?). A fault changes a
computation (:mod:`.computing`; of a cell, :class:`~.recurrence.Computation`): what is computed from, or by which
equations. Such a fault is a row: :func:`fault`. A fault that depends on more than the computation, or that changes
outputs, is a function of the conforming :class:`Compute` and a computation: :func:`fault_of_run`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec import Struct
from numpy.typing import NDArray

from ..documents.clauses import base_of, clause_named, clauses_of
from ..documents.operators import document_of, operator_names, versions_of
from ..numbers.formats import FORMATS
from ..recurrent.rnn import CELLS
from .memory import Memory

Outputs = dict[str, NDArray[Any]]

# Types in which something can show: roundings of the others may be as large.
WIDE = ("float32", "float64")
ALL_BUT_BFLOAT16 = (*WIDE, "float16")

# The number in memory that nobody has written to: one like any other, the same on every machine, but no result's.
UNINITIALIZED = 0.5 + 2.0**-40

LAYERS = ("arithmetic", "operands", "computation", "levels", "form")
"""The layers where a fault is made, innermost first: an arithmetic of its own, which asks nothing below; the operands
of products, which needs numbers to alter; what is computed, from what, and what of it is given; between numbers and
levels, of quantized nodes alone; and the form in which it is given, behind which nobody knows the outputs any more."""

KINDS = ("structural", "small", "rounding", "bias", "accepts")
"""How a fault shows: it changes what is computed; it does so by about one radius, or one level; it hides in roundings;
it stays within the bounds of every result, and only the mean over a run shows it; it computes something where the
clause makes a model illegal, and does nothing else."""

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-([a-z0-9]+|[A-Z]))*)+")


class FaultError(ValueError):
    """A fault is registered that cannot be: the message names its place, its id and what is wrong."""


@dataclass
class Compute:
    """The conforming computation of all outputs, called with what to compute from; and what an implementation can get
    at.

    observed
        What a target reported, in the computation's own form: of a cell Y, (T, D, N, H) in float64. Then each step
        starts from the reported state of the step before; without it from the computed one.
    fed
        The arrays that the caller handed over, which must not be changed.
    memory
        What an implementation keeps from one run of a session to the next.
    attributes
        The node's, as they are written down: an absent one may be taken for something else than its default.
    """

    observed: Any = None
    fed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    memory: dict[str, Any] = field(default_factory=dict)
    attributes: Mapping[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def process(self) -> MutableMapping[str, Any]:
        """Memory that an implementation keeps for all of its sessions; where there is but one, that of that one."""
        return self.memory.process if isinstance(self.memory, Memory) else self.memory

    @property
    def refused(self) -> bool:
        """Tell whether the session has refused inputs before."""
        return isinstance(self.memory, Memory) and self.memory.refused

    @property
    def overridden(self) -> Mapping[str, NDArray[Any]]:
        """The values that the model holds for constants which this run is fed something else for."""
        return self.memory.overridden if isinstance(self.memory, Memory) else {}

    def __call__(self, computation: Any) -> Outputs:
        outputs: Outputs = computation.plain(self.observed)
        return outputs


Wrong = Callable[[Compute, Any], Outputs]
"""A fault: from what computes rightly, and a computation, to the outputs."""

F = TypeVar("F", bound=Callable[..., Any])

Change = Callable[[Any], Any]
"""A function from a computation to another one, which is then made rightly."""


class Changing(Struct, frozen=True):
    """A fault where another computation is made rightly, and nothing else."""

    change: Change

    def __call__(self, compute: Compute, computation: Any) -> Outputs:
        return compute(self.change(computation))


@dataclass(frozen=True)
class Fault:
    """One plausible fault.

    id
        ``gates.order-ifoc``: stable, readable.
    topic
        The clause that it violates, without the operator: ``gates.order`` stands for ``lstm.gates.order``.
    summary
        The fault in words, as a report would say it of a runtime.
    wrong
        What is wrong; see :data:`Wrong`.
    operators, versions
        Operators that it applies to, and their versions; all of them that the clause holds for where that is None.
    types
        Types that it can show in.
    kind
        One of KINDS: how it shows.
    layer
        One of LAYERS: how far from the numbers it is made. It settles in which order faults are made together, and
        which cannot be.
    needs
        What a case must contain, as a feature, for the fault to be made; empty for nothing.
    within
        The accuracy class whose error bounds hold for what it returns, in whatever order it rounds; empty where there
        is none. Once it is known of a target, results that are right by that class show nothing else.
    varies
        Whether it is one of several that differ in a number.
    """

    id: str
    topic: str
    summary: str
    wrong: Wrong = field(hash=False, compare=False)
    operators: tuple[str, ...]
    versions: frozenset[int] | None = None
    types: tuple[str, ...] = tuple(FORMATS)
    kind: str = "structural"
    layer: str = "computation"
    needs: str = ""
    within: str = ""
    varies: bool = False

    @property
    def accepts(self) -> bool:
        """Tell whether it consists in computing an illegal model."""
        return self.kind == "accepts"

    @property
    def structural(self) -> bool:
        """Tell whether it changes what is computed by more than a level. The others hide in roundings."""
        return self.kind in ("structural", "accepts") or (self.kind == "small" and self.layer != "levels")

    def applies(self, op_type: str, since_version: int, type_name: str | None = None) -> bool:
        """Tell whether an implementation of that operator version can make this fault, and show it in that type. Who
        extends another operator can make that one's, as far as it has the clause."""
        if op_type not in self.operators:
            base = base_of(op_type)
            if base is None or not self.applies(*base, type_name):
                return False
            return self.clause(op_type) in {clause.id for clause in clauses_of(op_type, since_version)}
        return (
            (self.versions is None or since_version in self.versions)
            and since_version in clause_named(self.clause(op_type)).versions
            and (type_name is None or type_name in self.types)
        )

    def concerns(self, op_type: str) -> bool:
        """Tell whether an implementation of some version of that operator can make it."""
        return op_type in self.operators or any(self.applies(op_type, version) for version in versions_of(op_type))

    def clause(self, op_type: str) -> str:
        """The id of the clause that an implementation of that operator violates with it."""
        return f"{document_of(op_type).prefix}.{self.topic}"


class FaultTable(MutableMapping[str, Fault]):
    """Faults by id, in the order in which they were registered. The tables that come with this package are loaded when
    somebody looks: a run that finds nothing wrong needs none of them, and loading them takes a quarter of its start."""

    def __init__(self) -> None:
        self._known: dict[str, Fault] = {}
        self._tables: list[Callable[[], None]] = []

    def await_tables(self, load: Callable[[], None]) -> None:
        """`load` registers more faults, as soon as any is asked for."""
        self._tables.append(load)

    def _loaded(self) -> dict[str, Fault]:
        while self._tables:
            self._tables.pop(0)()
        return self._known

    def __getitem__(self, id: str) -> Fault:
        return self._loaded()[id]

    def __setitem__(self, id: str, fault: Fault) -> None:
        self._known[id] = fault

    def __delitem__(self, id: str) -> None:
        del self._loaded()[id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._loaded())

    def __len__(self) -> int:
        return len(self._loaded())


FAULTS = FaultTable()

VARIANTS = FaultTable()
"""Faults of the table with another number in them, as the size of a block, and rare ones: nobody asks that cases catch
each of them, and they are tried on what no fault of the table explains."""


def _load_table() -> None:
    """Variants come with the faults of the table that they are variants of."""
    iter(FAULTS)


VARIANTS.await_tables(_load_table)


def fault(
    id: str, clause: str, words: str, change: Change | None = None, *, proved: bool = True, **fields: Any
) -> Callable[[F], F]:
    """Register a change of a computation as a fault. Without the change, the result is a decorator of a function.

    clause
        Without the operator; every one of the operators has it.
    words
        The fault, as a report says it of a runtime.
    proved
        Whether cases must catch it: it stands in FAULTS, otherwise in VARIANTS.
    fields
        Of :class:`Fault`. `operators` are ONNX's recurrent ones without it.

    Raises FaultError for an id that is taken or begins with an operator that is not the only one, for an operator, a
    version, a type, a kind or a clause that does not exist, and where there are no words.
    """
    return _registering(id, clause, words, change, proved, fields, made=Changing)


def fault_of_run(
    id: str, clause: str, words: str, wrong: Wrong | None = None, *, proved: bool = True, **fields: Any
) -> Callable[[F], F]:
    """Register a fault like :func:`fault`, by a function of what computes rightly and a computation, which returns the
    outputs."""
    return _registering(id, clause, words, wrong, proved, fields)


def family(
    id: str,
    numbers: Iterable[Any],
    clause: str,
    words: str,
    change: Callable[..., Any] | None = None,
    *,
    proved: bool = True,
    of_run: bool = False,
    **fields: Any,
) -> Callable[[F], F]:
    """Register faults that differ in a number, which stands for ``{}`` in the id and for ``{0}`` in the words.

    numbers
        The first one makes the fault that stands in the table, the others its variants. Of those that explain the same
        a search takes the first variant, so they begin with the one that says least.
    change
        As :func:`fault` takes it, with the number as its last parameter; without it, a decorator.
    proved
        Whether the first one stands in the table at all.
    of_run
        Whether `change` is what :func:`fault_of_run` takes.
    """
    register = fault_of_run if of_run else fault

    def register_all(change: F) -> F:
        for place, number in enumerate(numbers):
            chosen = id.format(str(number).replace(".", "-"))
            first = proved and place == 0
            register(
                chosen, clause, words.format(number), _numbered(change, number), proved=first, varies=True, **fields
            )
        return change

    if change is not None:
        register_all(change)
    return register_all


def _numbered(change: Callable[..., Any], number: Any) -> Callable[..., Any]:
    return lambda *arguments: change(*arguments, number)


def _registering(
    id: str,
    clause: str,
    words: str,
    function: Callable[..., Any] | None,
    proved: bool,
    fields: dict[str, Any],
    made: Callable[[Any], Wrong] = lambda wrong: wrong,
) -> Callable[[F], F]:
    fields = {"operators": tuple(CELLS), **fields}
    if fields.get("versions") is not None:
        fields["versions"] = frozenset(fields["versions"])

    def register(function: F) -> F:
        code = getattr(function, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""
        enter(Fault(id, clause, words, made(function), **fields), place, FAULTS if proved else VARIANTS)
        return function

    if function is not None:
        register(function)
    return register


def enter(fault: Fault, place: str = "", table: FaultTable = FAULTS) -> Fault:
    """Put a fault into a table. Raises FaultError, which names the place, as :func:`fault` does."""
    place = f"{place}fault {fault.id}"
    if fault.id in FAULTS or fault.id in VARIANTS:
        raise FaultError(f"{place}: the id is taken")
    if not _ID.fullmatch(fault.id):
        raise FaultError(
            f"{place}: an id is words in small letters, joined by dots and hyphens; a tensor keeps its capital"
        )
    for op_type in fault.operators:
        if op_type not in operator_names():
            raise FaultError(f"{place}: there is no operator {op_type!r}; one of {', '.join(operator_names())}")
        if fault.clause(op_type) not in {c.id for c in clauses_of(op_type)}:
            raise FaultError(f"{place}: there is no clause {fault.clause(op_type)}")
    own = id_owner(fault.id)
    if own is not None and fault.operators != (own,):
        raise FaultError(f"{place}: an id that begins so is about {own} alone")
    known = {v for op_type in fault.operators for v in versions_of(op_type)}
    if unknown := set(fault.versions or ()) - known:
        raise FaultError(f"{place}: there is no version {', '.join(map(str, sorted(unknown)))}")
    if strange := [name for name in fault.types if name not in FORMATS]:
        raise FaultError(f"{place}: there is no type {', '.join(strange)}; one of {', '.join(FORMATS)}")
    if not fault.summary:
        raise FaultError(f"{place}: words must say the fault")
    for name, value, known_values in (("layer", fault.layer, LAYERS), ("kind", fault.kind, KINDS)):
        if value not in known_values:
            raise FaultError(f"{place}: there is no {name} {value!r}; one of {', '.join(known_values)}")
    table[fault.id] = fault
    return fault


def id_owner(id: str) -> str | None:
    """The operator that an id begins with; None where it begins with something else."""
    return next((name for name in operator_names() if id.startswith(f"{document_of(name).prefix}.")), None)


def made_together(faults: Iterable[Fault]) -> tuple[Fault, ...] | None:
    """Some faults in the order in which they are made together, the innermost first; None for those that cannot be."""
    ordered = tuple(sorted(faults, key=lambda fault: LAYERS.index(fault.layer)))
    layers = [fault.layer for fault in ordered]
    inner = layers.count("arithmetic")
    if inner > 1 or layers.count("form") > 1 or (inner and "operands" in layers):
        return None
    return ordered


def faults_of(op_type: str, since_version: int, type_name: str | None = None) -> Iterator[Fault]:
    """The faults that apply to an operator version, those that can show in a type where one is named."""
    return (d for d in FAULTS.values() if d.applies(op_type, since_version, type_name))


def variants_of(op_type: str, since_version: int, type_name: str | None = None) -> Iterator[Fault]:
    """The faults that differ in a number, and apply to an operator version: those that can show in a type where one is
    named. Those that stand in the table come last."""
    several = (*VARIANTS.values(), *(d for d in FAULTS.values() if d.varies))
    return (d for d in several if d.applies(op_type, since_version, type_name))
