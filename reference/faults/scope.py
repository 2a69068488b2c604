"""Scopes: faults that are made in one place only, so that fault tables hold parts and a search combines them.

Kernels have one code path for each direction and one line for each tensor, and mostly only one of them is wrong:
``gru.gates.rzh@B`` reads only the gate blocks of B in another order. The alteration of a fault is visible from outside,
in its operands and outputs. So each fault has every scope without being written for it.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache

from msgspec import Struct

from ..documents.operators import document_of, operator_names, operator_version, versions_of
from ..documents.tensors import LENGTHS, Levels, TensorForm
from ..recurrent.cell import cell_of
from .fault import FAULTS, VARIANTS, Fault
from .narrowing import (
    Narrowing,
    of_bias_half,
    of_direction,
    of_input,
    of_output,
    of_unit_blocks,
)

__all__ = ["Scope", "base_id", "fault_named", "merging", "scoped_named", "scoped_of", "scopes"]

_MARK = "@"


class Scope(Struct, frozen=True):
    """The place where a fault is made.

    id
        The part after the mark in the id of a scoped fault.
    words
        The scope in a sentence: "in the reverse direction only".
    narrow
        Function from the fault made everywhere to the fault made in this scope.
    takes
        Whether a fault can be made in this scope and nowhere else.
    among
        Whether an operator has this scope.
    merges
        Whether each returned number is either the faulty or the correct one.
    wide
        Whether any fault can be made in this scope. Then `takes` selects the faults that are tried without evidence.
    """

    id: str
    words: str
    narrow: Narrowing
    takes: Callable[[Fault], bool] = lambda fault: True
    among: Callable[[str], bool] = lambda op: True
    merges: bool = False
    wide: bool = False


def _about(*topics: str) -> Callable[[Fault], bool]:
    return lambda fault: fault.topic in topics


def _of_cell(op: str) -> bool:
    document = document_of(op)
    return cell_of(document.op_type, document.domain) is not None


def _among_forms(chosen: Callable[[str], dict[str, TensorForm]], name: str) -> Callable[[str], bool]:
    return lambda op: name in chosen(op)


@cache
def _forms(op: str) -> dict[str, TensorForm]:
    """Return the tensors of an operator's document, over all versions."""
    return {n: form for v in versions_of(op) for n, form in operator_version(op, v).tensors.items()}


@cache
def _inputs(op: str) -> dict[str, TensorForm]:
    """Return the inputs that hold numbers, without lengths, scales and zero points."""
    names = {name for version in versions_of(op) for name in operator_version(op, version).inputs}
    codecs = [form.codec for form in _forms(op).values()]
    auxiliary = {name for codec in codecs if isinstance(codec, Levels) for name in (codec.scale, codec.zero_point)}
    return {n: form for n, form in _forms(op).items() if n in names - auxiliary and form.kind != LENGTHS}


@cache
def _outputs(op: str) -> dict[str, TensorForm]:
    """Return the outputs; an empty dictionary if there is only one."""
    names = {name for version in versions_of(op) for name in operator_version(op, version).outputs}
    return {n: form for n, form in _forms(op).items() if n in names} if len(names) > 1 else {}


@cache
def _directed(op: str) -> bool:
    return any("direction" in operator_version(op, version).attributes for version in versions_of(op))


def _of_units(fault: Fault) -> bool:
    return fault.topic in ("bias", "clip", "equations", "peepholes", "initial-states") or _of_functions(fault)


def _of_functions(fault: Fault) -> bool:
    return fault.topic.startswith("functions.")


def _units_past(block: int) -> Scope:
    words = f"in those units only that are left over of hidden_size after whole blocks of {block}"
    return Scope(f"units-past-{block}s", words, of_unit_blocks(block), _of_units, _of_cell, wide=True)


_DIRECTIONS = {
    d: Scope(d, f"in the {d} direction only", of_direction(d), among=_directed, merges=True)
    for d in ("forward", "reverse")
}
_OF_CELLS: dict[str, Scope] = {
    **{
        name: Scope(name, words, of_bias_half(half), _about("bias", "gates.order", "directions.weights"), _of_cell)
        for half, (name, words) in enumerate({"Wb": "of Wb, the first half of B, only", "Rb": "of Rb only"}.items())
    },
    **{scope.id: scope for scope in map(_units_past, (4, 8, 16))},
}


def scopes() -> dict[str, Scope]:
    """Return all scopes of all registered operators, by id."""
    return _scopes(operator_names())


@cache
def _scopes(operators: tuple[str, ...]) -> dict[str, Scope]:
    """Return directions, then tensors of operators in the order of their documents, then scopes of cells."""
    inputs = {name: form for op in operators for name, form in _inputs(op).items()}
    # Tensors with rows are read once for each row, hence "for".
    words = {name: f"{'for' if form.rows else 'of'} {name} only" for name, form in inputs.items()}
    outputs = dict.fromkeys(name for op in operators for name in _outputs(op))
    of_inputs = {n: Scope(n, w, of_input(n), among=_among_forms(_inputs, n)) for n, w in words.items()}
    of_outputs = {
        n: Scope(n, f"in {n} only", of_output(n), among=_among_forms(_outputs, n), merges=True) for n in outputs
    }
    return {**_DIRECTIONS, **of_inputs, **of_outputs, **_OF_CELLS}


def merging() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of scopes that merge faulty with correct outputs, and the ids of the other scopes."""
    all_scopes = scopes()
    return tuple(id for id in all_scopes if all_scopes[id].merges), tuple(
        id for id in all_scopes if not all_scopes[id].merges
    )


def _scoped(fault: Fault, scope: Scope) -> Fault:
    """Return the fault restricted to a scope."""
    operators = tuple(filter(scope.among, fault.operators))
    summary = _worded(fault.id, fault.summary, scope)
    return replace(
        fault,
        id=f"{fault.id}{_MARK}{scope.id}",
        summary=summary,
        operators=operators,
        wrong=scope.narrow(fault.wrong),
    )


def _worded(id: str, summary: str, scope: Scope) -> str:
    text = summary.rstrip(".")
    return f"{text}, {scope.words}." if _MARK in id else f"{text}: {scope.words}."


def base_id(id: str) -> str:
    """Return the id of the unscoped fault."""
    return id.partition(_MARK)[0]


def _scope(id: str) -> Scope | None:
    return scopes().get(id)


@cache
def scoped_named(id: str) -> Fault | None:
    """Return the scoped fault of that id; None where there is none."""
    inner, mark, scope_id = id.rpartition(_MARK)
    fault, scope = fault_named(inner) if mark else None, _scope(scope_id)
    if fault is None or scope is None or not _goes(fault, scope):
        return None
    return _scoped(fault, scope)


def scoped_of(faults: Iterator[Fault], places: Collection[str] = (), *, seen: bool = False) -> Iterator[Fault]:
    """Yield every fault in every scope that it may have, or in the scopes of `places`, in the order of the table.

    seen
        Whether only these places were observed to be wrong, so that any fault may be made there.
    """
    for fault in faults:
        for place in places or scopes():
            scope = _scope(place)
            if scope is not None and not seen and not _tried(fault, scope):
                continue
            narrowed = scoped_named(f"{fault.id}{_MARK}{place}")
            if narrowed is not None:
                yield narrowed


def _tried(fault: Fault, scope: Scope) -> bool:
    """Return whether a fault is tried in a scope without evidence for the scope."""
    return scope.takes(fault) and (_MARK not in fault.id or scope.id in _DIRECTIONS)


def _goes(fault: Fault, scope: Scope) -> bool:
    """Return whether a scope makes sense for a fault.

    Faults of codecs or of roundings are made everywhere or nowhere. Session faults have the scope of an input or a
    direction.
    """
    if fault.layer == "levels" or not any(map(scope.among, fault.operators)):
        return False
    if fault.accepts or fault.kind == "bias" or not fault.structural:
        return False
    rest, mark, inner = fault.id.rpartition(_MARK)
    inner = inner if mark else ""
    if inner and (inner in _DIRECTIONS or not (scope.id in _DIRECTIONS or (scope.wide and _MARK not in rest))):
        return False  # only a direction may be combined with another scope
    if fault.topic.startswith("session"):
        kept = any(scope.id in _inputs(op) for op in fault.operators)
        return fault.topic == "session.stateless" and fault.layer != "form" and (kept or scope.id in _DIRECTIONS)
    return scope.wide or scope.takes(fault)


def fault_named(id: str) -> Fault | None:
    """Return the fault of that id, with or without a scope; None where there is none."""
    return FAULTS.get(id) or VARIANTS.get(id) or scoped_named(id)


def _of_that_id(id: str) -> Fault:
    fault = fault_named(id)
    if fault is None:
        raise LookupError(f"no fault has the id {id!r} in this process")
    return fault


# Another process finds the same fault by its id.
copyreg.pickle(Fault, lambda fault: (_of_that_id, (fault.id,)))
