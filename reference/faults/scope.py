"""Scopes: a fault that is made in one place only. With them the tables hold parts, and a search their combinations.

Kernels have one code path for each direction and one line for each tensor, and mostly only one of them is wrong:
``gru.gates.rzh@B`` reads the gate blocks of B, and of nothing else, in another order. What a fault alters is seen
from outside, by what it computes from and what it returns, so each has every scope, and nobody writes them down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from ..recurrent.cell import CELLS
from ..recurrent.recurrence import Computation
from .alterations import configured, merged, with_inputs
from .fault import FAULTS, Compute, Fault, Outputs, Wrong

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
    input
        Name of the input that it is about; None for the others.
    """

    id: str
    words: str
    narrow: Callable[[Wrong], Wrong]
    input: str | None = None


@dataclass
class _Between(Compute):
    """A computation that stands between a fault and the one below, and hands on only some of what was altered."""

    below: Compute = field(default_factory=Compute)
    handed: Callable[[Computation], Computation] = lambda altered: altered

    def __call__(self, computation: Computation) -> Outputs:
        return self.below(self.handed(computation))


def _between(compute: Compute, handed: Callable[[Computation], Computation]) -> Compute:
    return _Between(
        compute.observed, compute.fed, compute.memory, attributes=compute.attributes, below=compute, handed=handed
    )


def _of_input(name: str) -> Callable[[Wrong], Wrong]:
    """Of all that is altered only that input is."""

    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            def handed(altered: Computation) -> Computation:
                changed, own = altered.inputs.get(name), c.inputs.get(name)
                if changed is not None and own is not None and changed.shape != own.shape:
                    return c  # it goes with other axes of all that there is, and not alone
                return with_inputs(c, **{name: changed})

            return wrong(_between(compute, handed), c)

        return only

    return narrow


def _besides(wrong: Wrong) -> Wrong:
    """What the fault does in place of clip's bounds is done as well as them."""

    def both(compute: Compute, c: Computation) -> Outputs:
        return wrong(_between(compute, lambda altered: configured(altered, clips=c.configuration.clips)), c)

    return both


def _of_direction(direction: str) -> Callable[[Wrong], Wrong]:
    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            directions = c.configuration.directions
            chosen = [d for d, name in enumerate(directions) if name == direction]
            if len(chosen) == len(directions):
                return wrong(compute, c)
            right = compute(c)
            return merged(c, right, wrong(compute, c), chosen) if chosen else right

        return only

    return narrow


def _of_output(output: str) -> Callable[[Wrong], Wrong]:
    def narrow(wrong: Wrong) -> Wrong:
        def only(compute: Compute, c: Computation) -> Outputs:
            outputs = dict(compute(c))
            faulty = wrong(compute, c)
            if output in faulty:
                outputs[output] = faulty[output]
            return outputs

        return only

    return narrow


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

SCOPES: dict[str, Scope] = {
    **{d: Scope(d, f"in the {d} direction only", _of_direction(d)) for d in ("forward", "reverse")},
    **{name: Scope(name, words, _of_input(name), name) for name, words in _INPUTS.items()},
    **{name: Scope(name, words, _of_output(name)) for name, words in _OUTPUTS.items()},
    "besides": Scope("besides", "as well as clip's own bounds", _besides),
}
"""By id."""

_DROPS_CLIP = frozenset({"clip"})  # the topic of those faults that put something in the place of clip's bounds


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
    cell = CELLS[op]
    states = {f"{kind}_{name}" for name in cell.inner for kind in ("initial", "Y")}
    return frozenset(states | ({"P"} if cell.peepholes else set()))


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
    if not set(fault.operators) <= set(CELLS):
        return False
    if fault.accepts or fault.drifts or not fault.structural or fault.topic.startswith("session"):
        return False
    return scope.id != "besides" or fault.topic in _DROPS_CLIP


def fault_named(id: str) -> Fault | None:
    """The fault of that id, made everywhere or in one place only; None where there is none."""
    return FAULTS.get(id) or scoped_named(id)
