"""Invalid models: valid ones with one violation, which a runtime must refuse."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from ...reference import IllegalNode, Node, operator_version, resolve
from ..axes.violation import Draft, Violation
from .data import inputs_of
from .spec import CaseSpec, RecurrentSpec

Array = NDArray[Any]


@cache
def all_violations(kind: Any = CaseSpec) -> Mapping[str, Violation]:
    """Return violations by id: all violations of the axes of a class of cases, and of axes that its operators lack."""
    forbidden = (violation for axis in (*kind.axes, *kind.lacking) for violation in axis.forbidden)
    return MappingProxyType({violation.id: violation for violation in forbidden})


def violations_of(op: str, version: int, kind: Any = CaseSpec) -> list[Violation]:
    """Return the violations that an operator version can have."""
    operator = operator_version(op, version)
    return [violation for violation in all_violations(kind).values() if violation.applies(operator)]


def violation_of(spec: RecurrentSpec) -> Violation | None:
    """Return the violation of a case; None for a valid one. Raise KeyError for an unknown one."""
    kind: Any = type(spec)
    return all_violations(kind)[spec.illegal] if spec.illegal else None


@cache
def inherited_violations(op: str, version: int, kind: Any) -> tuple[Violation, ...]:
    """Return violations of the document of an operator with its own cases, by the clause of their topic."""
    return tuple(violation for violation in violations_of(op, version, kind) if _breaks(op, version, violation, kind))


def _breaks(op: str, version: int, violation: Violation, kind: type[CaseSpec]) -> bool:
    try:
        node, inputs = break_case(_case(op, version, violation, kind))
        resolve(Node(op, version, node.attributes, node.outputs, node.domain), inputs)
    except IllegalNode as error:
        return error.clause == violation.clause(op)
    except (ValueError, KeyError, IndexError, TypeError):
        pass
    return violation.open


def illegal_cases(op: str, version: int, kind: Any = CaseSpec) -> Iterator[CaseSpec]:
    """Yield an invalid model for each violation of an operator version; `kind` is the class of its cases."""
    there = violations_of(op, version) if kind is CaseSpec else inherited_violations(op, version, kind)
    return (_case(op, version, violation, kind) for violation in there)


def _case(op: str, version: int, violation: Violation, kind: type[CaseSpec]) -> CaseSpec:
    operator = operator_version(op, version)
    plain: dict[str, Any] = {"weights": "initializer", "outputs": operator.outputs, "T": 4, "N": 3, "I": 2, "H": 5}
    if "output_sequence" in operator.attributes:
        plain["output_sequence"] = 1
    return kind(op, version, illegal=violation.id, **{**plain, **violation.base})


def break_case(spec: CaseSpec) -> tuple[Node, Mapping[str, Array]]:
    """Return the node and inputs of a case with its violation.

    The node is unchecked. Inputs are by formal name, in the operator's order; inputs that the operator does not have
    come last. A legal case is returned unchanged.
    """
    violation, node, inputs = violation_of(spec), spec.node, inputs_of(spec)
    if violation is None:
        return node, inputs
    ordered = {name: inputs[name] for name in node.operator.inputs if name in inputs}
    return commit(violation, node, ordered, spec.H)


def commit(
    violation: Violation, node: Node, inputs: Mapping[str, Array], hidden_size: int = 0
) -> tuple[Node, Mapping[str, Array]]:
    """Return a node and its inputs with a violation. Raise KeyError or IndexError where it cannot be made."""
    draft = Draft(node.operator, hidden_size, dict(node.attributes), dict(inputs), list(node.outputs))
    violation.change(draft)
    for array in draft.inputs.values():
        array.setflags(write=False)
    broken = copy.copy(node)  # bypasses the checks of the constructor
    object.__setattr__(broken, "attributes", MappingProxyType(draft.attributes))
    object.__setattr__(broken, "outputs", tuple(draft.outputs))
    return broken, MappingProxyType(draft.inputs)
