"""Scopes: faults that are made in one place only, so that fault tables hold parts and a search combines them.

Kernels have one code path for each direction and one line for each tensor, and mostly only one of them is wrong:
``gru.gates.rzh@B`` reads only the gate blocks of B in another order. The alteration of a fault is visible from outside,
in its operands and outputs. So each fault has every scope without being written for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache, partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from ..documents.operators import OperatorVersion, document_of, operator_names, operator_version, versions_of
from ..documents.tensors import LENGTHS, Levels
from ..numbers.activations import ACTIVATIONS, Activation
from ..recurrent.cell import Gates, Number, Parameters, States, cell_of
from ..recurrent.computation import Computation
from .alterations import merged, revalued, unclipped, with_equations, with_functions, with_inputs
from .fault import FAULTS, VARIANTS, Compute, Fault, Outputs, Wrong

Array = NDArray[Any]


def _between(compute: Compute, passed: Callable[[Any], Any]) -> Compute:
    """Return a computation between a fault and `compute`, which passes on only a part of the alteration."""
    return replace(compute, below=lambda altered: compute(passed(altered)))


def in_input(name: str, wrong: Wrong, compute: Compute, c: Any) -> Outputs:
    """Return the outputs with a fault's effect on one input only."""
    return wrong(_between(compute, lambda altered: c.with_input(name, altered)), c)


def in_direction(direction: str, wrong: Wrong, compute: Compute, c: Any) -> Outputs:
    """Return the outputs with a fault in one direction only."""
    chosen = [d for d, name in enumerate(c.directions) if name == direction]
    if len(chosen) == len(c.directions):
        return wrong(compute, c)
    right = compute(c)
    return merged(c, right, wrong(compute, c), chosen) if chosen else right


def in_output(output: str, wrong: Wrong, compute: Compute, c: Any) -> Outputs:
    """Return the outputs with a fault in one of them only."""
    outputs, faulty = compute(c), wrong(compute, c)
    return {**outputs, output: faulty[output]} if output in faulty else dict(outputs)


def in_bias_half(half: int, wrong: Wrong, compute: Compute, c: Computation) -> Outputs:
    """Return the outputs with a fault's effect on one half of B only: 0 for Wb, 1 for Rb."""
    own = c.inputs.get("B")

    def passed(altered: Computation) -> Computation:
        changed = None if own is None else altered.inputs.get("B", np.zeros_like(own))
        if own is None or changed is None or changed is own or changed.shape != own.shape:
            return c
        halves = np.split(own, 2, axis=1)
        halves[half] = np.split(changed, 2, axis=1)[half]
        return with_inputs(c, B=np.concatenate(halves, axis=1))

    return wrong(_between(compute, passed), c)


# The axis of units in each tensor; tensors with gate blocks repeat the units on it.
_UNITS = {"W": 1, "R": 1, "B": 1, "P": 1, "initial_h": 2, "initial_c": 2}


def in_unit_blocks(block: int, wrong: Wrong, compute: Compute, c: Computation) -> Outputs:
    """Return the outputs with a fault in the units after the last whole block; in all units where there is no whole
    block.

    A vectorized loop leaves these units to another loop. The restriction applies to tensors, functions and outputs.
    """
    H = c.configuration.H
    chosen = np.arange(H) >= H - H % block
    if not chosen.any():
        return compute(c)
    read = False

    def passed(altered: Computation) -> Computation:
        nonlocal read
        changed = {n: mixed for n, axis in _UNITS.items() if (mixed := _mixed(c, altered, n, axis, chosen)) is not None}
        result = with_inputs(c, **changed)
        if functions := _other_functions(c, altered):
            result = _in_functions(result, altered, chosen)
        if equations := _other_equations(c, altered):
            result = _in_equations(result, altered, chosen)
        read = read or bool(changed) or functions or equations
        return result

    faulty = wrong(_between(compute, passed), c)
    if read:
        return faulty  # each unit is computed from all of them
    right = compute(c)
    merges = (n for n, array in faulty.items() if n in right and array.shape == right[n].shape)
    return {**faulty, **{name: np.where(chosen, faulty[name], right[name]) for name in merges}}


def _mixed(c: Computation, altered: Computation, name: str, axis: int, chosen: Array) -> Array | None:
    """Return a tensor altered in the chosen units; None where it is not altered."""
    own, other = c.inputs.get(name), altered.inputs.get(name)
    if own is other or own is None:
        return None
    other = np.zeros_like(own) if other is None else other
    if own.shape != other.shape:
        return None
    shape = [1] * own.ndim
    shape[axis] = -1
    return np.asarray(np.where(np.tile(chosen, own.shape[axis] // len(chosen)).reshape(shape), other, own))


def _other_functions(c: Computation, altered: Computation) -> bool:
    one, other = c.configuration, altered.configuration
    return one.activations != other.activations or one.clips != other.clips


def _other_equations(c: Computation, altered: Computation) -> bool:
    one, other = c.configuration, altered.configuration
    chosen = one.cell.equations, one.coupled, one.linear_before_reset
    return chosen != (other.cell.equations, other.coupled, other.linear_before_reset)


def _in_equations(c: Computation, altered: Computation, chosen: Array) -> Computation:
    """Return the computation in which some units use altered equations; no equation mixes two units."""
    own, other = c.configuration.cell, altered.configuration

    def equations(p: Parameters, XW: Gates, HR: Gates, H: Number, *inner: Number) -> States:
        theirs = replace(p, coupled=other.coupled, linear_before_reset=other.linear_before_reset)
        both = [cell.equations(symbols, XW, HR, H, *inner) for cell, symbols in ((other.cell, theirs), (own, p))]
        return tuple(p.arithmetic.where(chosen, new, old) for new, old in zip(*both, strict=True))

    return with_equations(c, equations)


def _in_functions(c: Computation, altered: Computation, chosen: Array) -> Computation:
    """Return the computation in which some units use the altered activation functions and clips."""
    own, others = c.configuration, altered.configuration

    def change(function: Activation, position: int, d: int) -> Activation:
        other = others.activations[d][position]

        def value(x: Array, alpha: float, beta: float) -> Array:
            mine = function.kind.value(_bounded(x, own.clips[position]), alpha, beta)
            return np.where(chosen, other(_bounded(x, others.clips[position])), mine)

        return revalued(function, value)

    return unclipped(with_functions(c, change))


def _bounded(x: Array, clip: float | None) -> Array:
    return x if clip is None else np.clip(x, -clip, clip)


_MARK = "@"


class Scope(Struct, frozen=True):
    """The place where a fault is made.

    id
        The part after the mark in the id of a scoped fault.
    words
        The scope in a sentence: "in the reverse direction only".
    restrict
        Function from a fault, a computation below it and a computation to the outputs with the fault in this scope.
    operators
        Operators that have this scope.
    topics
        Topics of faults that can be made in this scope and nowhere else, or beginnings of topics up to a dot; empty for
        all.
    merges
        Whether each returned number is either the faulty or the correct one.
    wide
        Whether any fault can be made in this scope. Then `topics` select the faults that are tried without evidence.
    """

    id: str
    words: str
    restrict: Callable[[Wrong, Compute, Any], Outputs]
    operators: frozenset[str]
    topics: tuple[str, ...] = ()
    merges: bool = False
    wide: bool = False

    def takes(self, fault: Fault) -> bool:
        """Return whether a fault is tried in this scope without evidence for it."""
        return any(
            fault.topic == t or (t.endswith(".") and fault.topic.startswith(t)) for t in self.topics or [fault.topic]
        )

    def concerns(self, fault: Fault) -> bool:
        """Return whether an operator of a fault has this scope."""
        return not self.operators.isdisjoint(fault.operators)


def scopes() -> dict[str, Scope]:
    """Return all scopes of all registered operators, by id."""
    return _scopes(operator_names())


@cache
def _scopes(operators: tuple[str, ...]) -> dict[str, Scope]:
    """Return directions, then tensors of operators in the order of their documents, then scopes of cells."""
    versions = {op: [operator_version(op, v) for v in versions_of(op)] for op in operators}

    def having(names: Callable[[OperatorVersion], Iterable[str]], name: str) -> frozenset[str]:
        return frozenset(op for op in operators if any(name in names(version) for version in versions[op]))

    every = [version for op in operators for version in versions[op]]
    found = [
        Scope(
            d,
            f"in the {d} direction only",
            partial(in_direction, d),
            having(lambda v: v.attributes, "direction"),
            merges=True,
        )
        for d in _DIRECTIONS
    ]
    for name in dict.fromkeys(name for version in every for name in _inputs(version)):
        # Tensors with rows are read once for each row, hence "for".
        newest = [version for version in every if name in _inputs(version)][-1]
        words = f"{'for' if newest.tensors[name].rows else 'of'} {name} only"
        found.append(Scope(name, words, partial(in_input, name), having(_inputs, name)))
    several = {op: len({name for version in versions[op] for name in version.outputs}) > 1 for op in operators}
    for name in dict.fromkeys(name for op in operators if several[op] for v in versions[op] for name in v.outputs):
        those = frozenset(op for op in having(lambda v: v.outputs, name) if several[op])
        found.append(Scope(name, f"in {name} only", partial(in_output, name), those, merges=True))
    cells = frozenset(op for op in operators if cell_of(document_of(op).op_type, document_of(op).domain) is not None)
    for half, (name, words) in enumerate({"Wb": "of Wb, the first half of B, only", "Rb": "of Rb only"}.items()):
        found.append(Scope(name, words, partial(in_bias_half, half), cells, _OF_BIASES))
    for block in (4, 8, 16):
        words = f"in those units only that are left over of hidden_size after whole blocks of {block}"
        restrict = partial(in_unit_blocks, block)
        found.append(Scope(f"units-past-{block}s", words, restrict, cells, _OF_UNITS, wide=True))
    return {scope.id: scope for scope in found}


_DIRECTIONS = ("forward", "reverse")
_OF_BIASES = ("bias", "gates.order", "directions.weights")
_OF_UNITS = ("bias", "clip", "equations", "peepholes", "initial-states", "functions.")


@cache
def _inputs(version: OperatorVersion) -> tuple[str, ...]:
    """Return the inputs that hold numbers, without lengths, scales and zero points."""
    codecs = [form.codec for form in version.tensors.values()]
    auxiliary = {name for codec in codecs if isinstance(codec, Levels) for name in (codec.scale, codec.zero_point)}
    numbers = (name for name, form in version.tensors.items() if form.kind != LENGTHS and name in version.inputs)
    return tuple(name for name in numbers if name not in auxiliary)


def merging() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of scopes that merge faulty with correct outputs, and the ids of the other scopes."""
    by_merging = ([s.id for s in scopes().values() if s.merges is merges] for merges in (True, False))
    merges, others = map(tuple, by_merging)
    return merges, others


def _scoped(fault: Fault, scope: Scope) -> Fault:
    """Return the fault restricted to a scope."""
    operators = tuple(op for op in fault.operators if op in scope.operators)
    summary = f"{fault.summary.rstrip('.')}{',' if _MARK in fault.id else ':'} {scope.words}."
    wrong = partial(scope.restrict, fault.wrong)
    return replace(fault, id=f"{fault.id}{_MARK}{scope.id}", summary=summary, operators=operators, wrong=wrong)


def base_id(id: str) -> str:
    """Return the id of the unscoped fault."""
    return id.partition(_MARK)[0]


@cache
def scoped_named(id: str) -> Fault | None:
    """Return the scoped fault of that id; None where there is none."""
    inner, mark, scope_id = id.rpartition(_MARK)
    fault, scope = fault_named(inner) if mark else None, scopes().get(scope_id)
    if fault is None or scope is None or not _goes(fault, scope):
        return None
    return _scoped(fault, scope)


def scoped_of(faults: Iterable[Fault], places: Collection[str] = (), *, seen: bool = False) -> Iterator[Fault]:
    """Yield every fault in every scope that it may have, or in the scopes of `places`, in the order of the table.

    seen
        Whether only these places were observed to be wrong, so that any fault may be made there.
    """
    for fault in faults:
        for place in places or scopes():
            scope = scopes().get(place)
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
    if fault.layer == "levels" or not scope.concerns(fault):
        return False
    if fault.accepts or fault.kind == "bias" or not fault.structural:
        return False
    rest, mark, inner = fault.id.rpartition(_MARK)
    inner = inner if mark else ""
    if inner and (inner in _DIRECTIONS or not (scope.id in _DIRECTIONS or (scope.wide and _MARK not in rest))):
        return False  # only a direction may be combined with another scope
    if fault.topic.startswith("session"):
        kept = any(scope.id in operator_version(op, versions_of(op)[-1]).inputs for op in fault.operators)
        return fault.topic == "session.stateless" and fault.layer != "form" and (kept or scope.id in _DIRECTIONS)
    return scope.wide or scope.takes(fault)


def fault_named(id: str) -> Fault | None:
    """Return the fault of that id, with or without a scope; None where there is none."""
    return FAULTS.get(id) or VARIANTS.get(id) or scoped_named(id)


_MEASURED = "functions and sums of a target are no longer measured; name cases or clauses instead"

_NO_SCOPE = "the scope behind @ is gone; name cases or clauses instead"

_RETIRED = {
    "functions.*": _MEASURED,
    "products.*": _MEASURED,
    "lengths.longest@rows-by-2": "write 'lengths.longest-of-2'",
    "lengths.longest@rows-by-4": "write 'lengths.longest-of-4'",
    "lengths.longest@rows-by-8": "write 'lengths.longest-of-8'",
    **{
        f"*@{scope}*": _NO_SCOPE
        for scope in ("besides", "gate-", "in-part", "rows-", "states", "units-in-", "units-past-", *ACTIVATIONS)
    },
}
"""Patterns of ids, with what to do instead."""


def retirement(id: str) -> str | None:
    """Return advice for the id of a retired fault; None for any other id."""
    return next((instead for pattern, instead in _RETIRED.items() if fnmatchcase(id, pattern)), None)
