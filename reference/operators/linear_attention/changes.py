"""Changes of a LinearAttention node that faults are made of, and functions that register these faults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...documents.operators import document_of
from ...faults.fault import Changing, fault
from ..described import Described, with_equations
from . import Changed, attention_of
from .recurrence import Advance, Attention, Operands, Step, Written, corrects, decays, outer, read

Array = NDArray[Any]
TYPES = ("float32", "float16", "bfloat16")

Change = Callable[[Attention], Attention]


def changed(c: Described, change: Change) -> Described:
    """Return the computation with a changed node; the same computation where the change has no effect."""
    node = attention_of(c)
    if change(node) is node:
        return c
    return with_equations(c, Changed((*getattr(c.equations, "changes", ()), change)))


def _made_by(make: Callable[[Attention, Any], Attention]) -> Callable[[Any], Changing]:
    """Return a function from the last part of a row to the fault."""
    return lambda part: Changing(lambda c: changed(c, lambda node: make(node, part)))


def applied(node: Attention, change: Change) -> Attention:
    """Return the changed node, for rows that end in its change."""
    return change(node)


def attention_faults(
    make: Callable[[Attention, Any], Attention],
    rows: Iterable[tuple[str, str, str, Any]],
    operators: tuple[str, ...] = ("LinearAttention",),
    types: tuple[str, ...] = TYPES,
) -> None:
    """Register faults of this operator. Their ids begin with its name.

    make
        Function from a node and the last part of a row to the faulty node.
    rows
        Id, topic of the clause, description, and the change.
    """
    prefix = document_of(operators[0]).prefix
    for id, clause, words, part in rows:
        fault(f"{prefix}.{id}", clause, words, part, made=_made_by(make), operators=operators, types=types)


def attention_family(
    id: str, numbers: tuple[int, ...], clause: str, words: str, change: Callable[[Attention, int], Attention]
) -> None:
    """Register faults that differ only in a number."""
    fields: Any = {"operators": ("LinearAttention",), "types": TYPES, "numbers": numbers}
    fault(f"linearattention.{id}", clause, words, change, made=_made_by(applied), **fields)


def with_operands(c: Attention, **changes: Any) -> Attention:
    """Return the node with some unpacked operands replaced, each by a function of all operands."""
    return c.prepared(lambda o: replace(o, **{name: change(o) for name, change in changes.items()}))


def with_those(c: Attention, changes: Mapping[str, Callable[[Operands], Any]]) -> Attention:
    """Return the node with the operands replaced that a row names."""
    return with_operands(c, **changes)


def with_exponents(c: Attention, change: Callable[[Array], Array]) -> Attention:
    """Return the node with changed exponents of its decay, (B, T, H, d_k)."""
    if not decays(c.update_rule):
        return c
    changed = with_operands(c, exponent=lambda o: change(o.exponent))
    return with_operands(changed, decay=lambda o: np.exp(o.exponent))


def with_factors(c: Attention, change: Callable[[Array], Array]) -> Attention:
    """Return the node whose decay factors are another function of the exponents."""
    return with_operands(c, decay=lambda o: change(o.exponent)) if decays(c.update_rule) else c


def with_rates(c: Attention, change: Callable[[Array], Array]) -> Attention:
    """Return the node with changed values of beta, (B, T, H)."""
    return with_operands(c, beta=lambda o: change(o.beta)) if corrects(c.update_rule) else c


def shifted(array: Array, by: int) -> Array:
    """Return an array (B, T, ...) moved by one step: later (1) or earlier (-1). The edge is repeated."""
    steps = array.shape[1]
    return array[:, np.clip(np.arange(steps) - by, 0, max(steps - 1, 0))]


def interleaved(array: Array) -> Array:
    """Return heads (B, T, H, d) unpacked as if the packed axis were (d, H)."""
    batch, steps, heads, width = array.shape
    return array.reshape(batch, steps, width, heads).swapaxes(2, 3)


def unit_rows(rows: Array) -> Array:
    """Return rows divided by their norm."""
    lengths: Array = np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.asarray(rows / np.maximum(lengths, 1e-6))


def by_rule(c: Attention, rule: str, other: str) -> Attention:
    """Return the node computed by rule `other` where its rule is `rule`."""
    return replace(c, update_rule=other) if c.update_rule == rule else c


def with_step(c: Attention, change: Advance, applies: bool = True) -> Attention:
    """Return the node with other equations of a step, where `applies`."""
    return replace(c, advance=change) if applies else c


def finished(step: Step, decayed: Array, written: Array) -> Written:
    """Return the results of a step that writes `written` and then reads, as documented."""
    state = decayed + outer(step.key, written)
    return Written(state, read(state, step), written)


def rate(step: Step) -> Any:
    return 1.0 if step.beta is None else step.beta[..., None]


def scanned(c: Attention, change: Callable[[Array, Array, Operands], tuple[Array, Array]]) -> Attention:
    """Return the node with its results changed before they are packed."""
    before = c.scan

    def scan(o: Operands, step: Advance) -> tuple[Array, Array]:
        return change(*before(o, step), o)

    return replace(c, scan=scan)


def some_steps(o: Operands, chosen: slice) -> Operands:
    """Return the operands of some steps."""
    taken = {name: getattr(o, name)[:, chosen] for name in ("query", "key", "value", "exponent", "decay")}
    return replace(o, beta=None if o.beta is None else o.beta[:, chosen], **taken)
