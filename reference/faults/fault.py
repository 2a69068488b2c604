"""Faults: the reference with one change each, which violates a clause.

Faults prove the suite (cases must catch each fault) and diagnose targets (which fault explains this failure?). Most
faults change a computation (:mod:`.computing`; of a cell, :class:`..recurrent.computation.Computation`), its inputs or
its equations, and are rows: :func:`fault`. A fault that changes outputs, or depends on attributes or memory, is a
function of the conforming :class:`Compute` and a computation: :func:`fault_of_run`.
"""

from __future__ import annotations

import re
from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, TypeVar

from msgspec import Struct
from numpy.typing import NDArray

from ..documents.clauses import base_of, clause_named, clauses_of
from ..documents.operators import operator_names, prefix_of, versions_of
from ..numbers.accuracy import FORMATS
from ..recurrent.rnn import CELLS


class Memory(dict[str, Any]):
    """State that an implementation keeps between the runs of a session.

    process
        State that it keeps for all sessions together.
    refused
        Whether the session has refused inputs before.
    overridden
        The model's own values of constants that are fed in this run.
    """

    def __init__(self, process: MutableMapping[str, Any]) -> None:
        super().__init__()
        self.process, self.refused = process, False
        self.overridden: Mapping[str, Any] = {}

    def of(self, name: str) -> Memory:
        """Return the part of the memory that belongs to one of several faults."""
        if name not in self:
            self[name] = Memory(self.process.setdefault(name, {}))
        part: Memory = self[name]
        part.refused, part.overridden = self.refused, self.overridden
        return part


class Sessions:
    """Memories of sessions that are alive at the same time, by number."""

    def __init__(self) -> None:
        self._process: dict[str, Any] = {}
        self._known: dict[int, Memory] = {}

    def __getitem__(self, number: int) -> Memory:
        return self._known.setdefault(number, Memory(self._process))

    @property
    def empty(self) -> bool:
        """Whether nothing has been kept so far."""
        return not (_holds(self._process) or any(map(_holds, self._known.values())))


def _holds(kept: Mapping[str, Any]) -> bool:
    """Return whether a value is kept, and not only empty dictionaries."""
    return any(not isinstance(value, dict) or _holds(value) for value in kept.values())


Array = NDArray[Any]
Outputs = dict[str, Array]

# Types in which a fault can be detected: in the others, roundings may be as large.
WIDE = ("float32", "float64")
ALL_BUT_BFLOAT16 = (*WIDE, "float16")

# Value of memory that a faulty implementation never wrote: the same on every machine, and unlikely as a result.
UNINITIALIZED = 0.5 + 2.0**-40

LAYERS = ("arithmetic", "operands", "computation", "levels", "form")
"""Layers at which faults are applied, innermost first: another arithmetic; the operands of products; the computation
(inputs, equations, outputs); the conversion between numbers and quantized levels; the form of the outputs."""

KINDS = ("structural", "small", "rounding", "bias", "accepts")
"""How a fault is visible.

structural: it changes values. small: by about one error bound, or one level. rounding: it is as small as roundings.
bias: only the mean error over a run shows it. accepts: it computes an illegal model.
"""

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*(\.[a-z0-9]+(-([a-z0-9]+|[A-Z]))*)+")


class FaultError(ValueError):
    """An invalid fault was registered; the message has its place, its id and the defect."""


@dataclass
class Compute:
    """Conforming computation of all outputs (call it with a computation), and the data that an implementation can
    access.

    observed
        The outputs that a target reported, in the computation's form; for a cell, Y (T, D, N, H) in float64. Each step
        then starts from the reported state of the step before; the default is the computed state.
    fed
        The caller's arrays, which must not be changed.
    memory
        State that the implementation keeps between the runs of a session.
    attributes
        The attributes that the node has; absent ones are missing, because faults may use another default.
    below
        Function from a computation to its outputs, if they are not those of the reference: with another fault, for
        example.
    """

    observed: Any = None
    fed: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    memory: Memory = field(default_factory=lambda: Memory({}))
    attributes: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    below: Callable[[Any], Outputs] | None = field(default=None, kw_only=True)

    def __call__(self, computation: Any) -> Outputs:
        outputs: Outputs = computation.plain(self.observed) if self.below is None else self.below(computation)
        return outputs


Wrong = Callable[[Compute, Any], Outputs]
"""A fault as a function of the conforming computation and a computation, which returns the outputs."""

F = TypeVar("F", bound=Callable[..., Any])

Change = Callable[[Any], Any]
"""A function that changes a computation, which is then evaluated correctly."""


class Changing(Struct, frozen=True):
    """A fault that only changes the computation."""

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
        Description of the fault, as a report prints it.
    wrong
        See :data:`Wrong`.
    operators, versions
        Operators to which it applies, and their versions; None: all versions that have the clause.
    types
        Types in which it can show.
    kind
        One of KINDS.
    layer
        One of LAYERS. The layers decide in which order faults are combined, and which cannot be.
    needs
        Feature that a case must have for the fault to be possible; empty for none.
    within
        Accuracy class whose error bounds contain all of its results; empty if there is none. If a target is known to
        have this fault, results within that class show no other fault.
    varies
        Whether it is one of several faults that differ in a number.
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
        """Whether the fault is to compute an illegal model."""
        return self.kind == "accepts"

    @property
    def structural(self) -> bool:
        """Whether it changes values by more than a level. Other faults are as small as roundings."""
        return self.kind in ("structural", "accepts") or (self.kind == "small" and self.layer != "levels")

    def applies(self, op_type: str, since_version: int, type_name: str | None = None) -> bool:
        """Return whether an implementation of that operator version can have this fault and show it in that type.

        An operator that extends another one has the other's faults too, if it has the clause.
        """
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
        """Return whether an implementation of some version of that operator can have it."""
        return op_type in self.operators or any(self.applies(op_type, version) for version in versions_of(op_type))

    def clause(self, op_type: str) -> str:
        """Return the id of the violated clause of that operator."""
        return f"{prefix_of(op_type)}.{self.topic}"


class FaultTable(UserDict[str, Fault]):
    """Faults by id, in order of registration.

    The tables of this package are loaded at first use, because a run without failures needs none, and loading them
    takes a quarter of its start.
    """

    def __init__(self) -> None:
        self._known: dict[str, Fault] = {}
        self._tables: list[Callable[[], object]] = []

    def await_tables(self, load: Callable[[], object]) -> None:
        """Call `load`, which registers more faults, at first use."""
        self._tables.append(load)

    @property
    def data(self) -> dict[str, Fault]:  # type: ignore[override]
        while self._tables:
            self._tables.pop(0)()
        return self._known


FAULTS = FaultTable()

# By name, because this package imports no operators.
FAULTS.await_tables(partial(import_module, "...operators.fault_tables", __name__))

VARIANTS = FaultTable()
"""Faults of the table with another number, such as a block size, and rare faults. Cases need not catch them; they are
tried on results that no fault of the table explains."""

VARIANTS.await_tables(lambda: FAULTS.data)  # the same tables register them


def fault(
    id: str,
    clause: str,
    words: str,
    change: Callable[..., Any] | None = None,
    *,
    numbers: Iterable[Any] = (),
    proved: bool = True,
    made: Callable[[Any], Wrong] = Changing,
    **fields: Any,
) -> Callable[[F], F]:
    """Register a change of a computation as a fault. Without the change, the result is a decorator of a function.

    clause
        Clause without the operator; each of the operators must have it.
    words
        Description, as a report prints it.
    numbers
        Values of the change's last parameter, for faults that differ in a number. It replaces ``{}`` in the id and
        ``{0}`` in the words. If several explain a failure, the first is chosen: list the weakest change first.
    proved
        Whether cases must catch it: it is then in FAULTS, otherwise in VARIANTS, like all but the first of `numbers`.
    made
        Function from the change to a function :data:`Wrong`.
    fields
        Fields of :class:`Fault`. The default of `operators` is ONNX's recurrent ones.

    Raise FaultError for an id that is taken or that begins with an operator but is used for others, for an unknown
    operator, version, type, kind or clause, and for an empty description.
    """
    fields = {"operators": tuple(CELLS), **fields}
    if fields.get("versions") is not None:
        fields["versions"] = frozenset(fields["versions"])

    def register(change: F) -> F:
        code = getattr(change, "__code__", None)
        place = f"{code.co_filename}:{code.co_firstlineno}: " if code is not None else ""
        several = tuple(numbers)
        for number in several:
            table = FAULTS if proved and number == several[0] else VARIANTS
            chosen = id.format(str(number).replace(".", "-"))
            wrong = made(_numbered(change, number))
            _enter(Fault(chosen, clause, words.format(number), wrong, varies=True, **fields), place, table)
        if not several:
            _enter(Fault(id, clause, words, made(change), **fields), place, FAULTS if proved else VARIANTS)
        return change

    return register if change is None else register(change)


def fault_of_run(id: str, clause: str, words: str, wrong: Wrong | None = None, **fields: Any) -> Callable[[F], F]:
    """Register a fault like :func:`fault`, as a function :data:`Wrong`."""
    return fault(id, clause, words, wrong, made=lambda wrong: wrong, **fields)


def _numbered(change: Callable[..., Any], number: Any) -> Callable[..., Any]:
    return lambda *arguments: change(*arguments, number)


def _enter(fault: Fault, place: str, table: FaultTable) -> None:
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
    owner = next((name for name in operator_names() if fault.id.startswith(f"{prefix_of(name)}.")), None)
    if owner is not None and fault.operators != (owner,):
        raise FaultError(f"{place}: an id that begins so is about {owner} alone")
    existing = {v for op_type in fault.operators for v in versions_of(op_type)}
    if unknown := set(fault.versions or ()) - existing:
        raise FaultError(f"{place}: there is no version {', '.join(map(str, sorted(unknown)))}")
    if unknown_types := [name for name in fault.types if name not in FORMATS]:
        raise FaultError(f"{place}: there is no type {', '.join(unknown_types)}; one of {', '.join(FORMATS)}")
    if not fault.summary:
        raise FaultError(f"{place}: words must say the fault")
    for name, value, known_values in (("layer", fault.layer, LAYERS), ("kind", fault.kind, KINDS)):
        if value not in known_values:
            raise FaultError(f"{place}: there is no {name} {value!r}; one of {', '.join(known_values)}")
    table[fault.id] = fault


def made_together(faults: Iterable[Fault]) -> tuple[Fault, ...] | None:
    """Order faults for joint application, the innermost first. Return None if they cannot be combined."""
    ordered = tuple(sorted(faults, key=lambda fault: LAYERS.index(fault.layer)))
    layers = [fault.layer for fault in ordered]
    inner = layers.count("arithmetic")
    if inner > 1 or layers.count("form") > 1 or (inner and "operands" in layers):
        return None
    return ordered


def faults_of(op_type: str, since_version: int, type_name: str | None = None) -> Iterator[Fault]:
    """Yield the faults that apply to an operator version and, if a type is given, can show in it."""
    return (d for d in FAULTS.values() if d.applies(op_type, since_version, type_name))


def variants_of(op_type: str, since_version: int, type_name: str | None = None) -> Iterator[Fault]:
    """Yield the faults with a number that apply to an operator version and, if a type is given, can show in it.

    Those of FAULTS come last.
    """
    candidates = (*VARIANTS.values(), *(d for d in FAULTS.values() if d.varies))
    return (d for d in candidates if d.applies(op_type, since_version, type_name))
