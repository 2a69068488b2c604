"""Faults of a cell that are given by a wrong equation or by another order of gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..faults.alterations import reordered, with_equations, with_tensors
from ..faults.fault import Change, F, fault
from ..recurrent.computation import Computation

Put = Callable[[Computation, Any], Computation]
"""Function from a computation and equations to the computation with these equations."""


def equation_fault(
    id: str,
    clause: str,
    words: str,
    equations: Callable[..., Any] | None = None,
    *,
    put: Put = with_equations,
    **fields: Any,
) -> Callable[[F], F]:
    """Register a fault by its equations; :func:`..faults.fault.fault` registers a change."""

    def register(equations: F) -> F:
        fault(id, clause, words, lambda c: put(c, equations), **fields)
        return equations

    if equations is not None:
        register(equations)
    return register


def gate_orders(op_type: str, orders: Mapping[str, str]) -> None:
    """Register faults that read the gate blocks of W, R and B in another order; `orders` has a description for each
    order."""
    for order, words in orders.items():
        fault(f"{op_type.lower()}.gates.{order}", "gates.order", words, _reading_gates(order), operators=(op_type,))


def _reading_gates(order: str) -> Change:
    return lambda c: with_tensors(c, "WRB", lambda tensor: reordered(c, tensor, order, c.configuration.cell.gates))
