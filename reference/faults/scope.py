"""Scopes: a fault that is made in one place only. With them the tables hold parts, and a search their combinations.

Kernels have one code path for each direction and one line for each tensor, and mostly only one of them is wrong:
``gru.gates.rzh@B`` reads the gate blocks of B, and of nothing else, in another order. What a fault alters is seen
from outside, by what it computes from and what it returns, so each has every scope, and nobody writes them down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache

from ..documents.operators import document_of
from ..recurrent.cell import Cell, cell_of
from .fault import FAULTS, Fault
from .narrowing import (
    Narrowing,
    besides,
    of_bias_half,
    of_direction,
    of_input,
    of_output,
    of_row_blocks,
    of_unit_tail,
)

__all__ = ["SCOPES", "Scope", "fault_named", "scoped", "scoped_named", "scoped_of"]

_MARK = "@"


@dataclass(frozen=True)
class Scope:
    """Where a fault is made.

    id
        What stands behind the mark in the id of a scoped fault.
    words
        The same in a sentence: "in the reverse direction only".
    narrow
        From the fault as it is made everywhere to the fault as it is made there.
    takes
        Whether a fault can be made there and nowhere else.
    """

    id: str
    words: str
    narrow: Narrowing
    takes: Callable[[Fault], bool] = lambda fault: True


_INPUTS = {
    "X": "for X only",
    "W": "of W only",
    "R": "of R only",
    "B": "of B only",
    "P": "of P only",
    "initial_h": "for initial_h only",
    "initial_c": "for initial_c only",
}
_OUTPUTS = {"Y": "in Y only", "Y_h": "in Y_h only", "Y_c": "in Y_c only"}


def _about(*topics: str) -> Callable[[Fault], bool]:
    return lambda fault: fault.topic in topics


_UNITS = _about("bias", "equations", "peepholes", "initial-states")
# What rows take from each other; that a row is run too long or too short does not depend on its neighbours.
_AMONG_ROWS = frozenset({f"lengths.{word}" for word in ("first-row", "longest", "shortest", "sorted")})

SCOPES: dict[str, Scope] = {
    **{d: Scope(d, f"in the {d} direction only", of_direction(d)) for d in ("forward", "reverse")},
    **{name: Scope(name, words, of_input(name)) for name, words in _INPUTS.items()},
    **{name: Scope(name, words, of_output(name)) for name, words in _OUTPUTS.items()},
    # Faults of that topic put something in the place of clip's bounds.
    "besides": Scope("besides", "as well as clip's own bounds", besides, _about("clip")),
    **{
        name: Scope(name, words, of_bias_half(half), _about("bias", "gates.order", "directions.weights"))
        for half, (name, words) in enumerate({"Wb": "of Wb, the first half of B, only", "Rb": "of Rb only"}.items())
    },
    **{
        f"units-past-{block}s": Scope(
            f"units-past-{block}s",
            f"in those units only that are left over of hidden_size after whole blocks of {block}",
            of_unit_tail(block),
            _UNITS,
        )
        for block in (4, 8, 16)
    },
    **{
        f"rows-by-{block}": Scope(
            f"rows-by-{block}",
            f"among {block} rows that stand together",
            of_row_blocks(block),
            lambda fault: fault.id in _AMONG_ROWS,
        )
        for block in (2, 4, 8)
    },
}
"""By id."""


def scoped(fault: Fault, scope: Scope) -> Fault:
    """The fault, made there only."""
    operators = fault.operators
    if scope.id in ("P", "initial_c", "Y_c"):
        operators = tuple(op for op in operators if scope.id in _names(op))
    summary = _worded(fault.summary, scope)
    return replace(
        fault,
        id=f"{fault.id}{_MARK}{scope.id}",
        summary=summary,
        operators=operators,
        wrong=scope.narrow(fault.wrong),
    )


def _worded(summary: str, scope: Scope) -> str:
    text = summary.rstrip(".")
    if scope.id == "besides":
        return f"{text.partition(' instead of')[0]} as well as what clip bounds."
    return f"{text}: {scope.words}."


def _names(op: str) -> frozenset[str]:
    """Inputs and outputs that not every operator has, as far as this one has them."""
    cell = _cell(op)
    if cell is None:
        return frozenset()
    states = {f"{kind}_{name}" for name in cell.inner for kind in ("initial", "Y")}
    return frozenset(states | ({"P"} if cell.peepholes else set()))


def _cell(op: str) -> Cell | None:
    document = document_of(op)
    return cell_of(document.op_type, document.domain)


@cache
def scoped_named(id: str) -> Fault | None:
    """The scoped fault of that id; None where there is none."""
    base, mark, place = id.partition(_MARK)
    fault, scope = FAULTS.get(base), SCOPES.get(place)
    if not mark or fault is None or scope is None or not _goes(fault, scope):
        return None
    return scoped(fault, scope)


def scoped_of(faults: Iterator[Fault]) -> Iterator[Fault]:
    """Every fault in every scope that it may have, in the order of the table."""
    for fault in faults:
        for place, scope in SCOPES.items():
            if _goes(fault, scope):
                narrowed = scoped_named(f"{fault.id}{_MARK}{place}")
                if narrowed is not None and narrowed.operators:
                    yield narrowed


def _goes(fault: Fault, scope: Scope) -> bool:
    """Whether a scope says something of a fault of recurrent cells: what is about the session, or about nothing but
    roundings, is made everywhere or nowhere."""
    if not all(map(_cell, fault.operators)):
        return False
    if fault.accepts or fault.drifts or not fault.structural or fault.topic.startswith("session"):
        return False
    return scope.takes(fault)


def fault_named(id: str) -> Fault | None:
    """The fault of that id, made everywhere or in one place only; None where there is none."""
    return FAULTS.get(id) or scoped_named(id)
