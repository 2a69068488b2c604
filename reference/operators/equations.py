"""Faults of a cell that read like its document: a wrong equation, or another order of gates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ..faults.alterations import reordered, with_equations, with_tensors
from ..faults.fault import Alteration, fault
from ..faults.summary import summary_of
from ..recurrent.computation import Computation

Equations = TypeVar("Equations", bound=Callable[..., Any])


def equations(
    id: str, put: Callable[[Computation, Any], Computation] = with_equations, **given: Any
) -> Callable[[Equations], Equations]:
    """Register a fault by its equations alone, a function that stands in the place of the right ones.

    put
        From a computation and the function to the computation with it.
    given
        As :func:`..faults.fault.fault` takes it.
    """

    def decorate(own: Equations) -> Equations:
        def changed(c: Computation) -> Computation:
            return put(c, own)

        changed.__doc__ = summary_of(own)
        fault(id, **given)(changed)
        return own

    return decorate


def gate_orders(op_type: str, orders: Mapping[str, str]) -> None:
    """Register faults that read the gate blocks of W, R and B in another order: by the order what each does."""
    for order, summary in orders.items():
        changed = _reading_gates(order)
        changed.__doc__ = summary
        fault(f"{op_type.lower()}.gates.{order}", clause="gates.order", operators=(op_type,))(changed)


def _reading_gates(order: str) -> Alteration:
    def changed(c: Computation) -> Computation:
        return with_tensors(c, "WRB", lambda tensor: reordered(c, tensor, order, c.configuration.cell.gates))

    return changed
