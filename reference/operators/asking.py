"""Questions that everything else asks of a node: the same questions for every operator, put to the one that the node
names."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from ..documents.interpretations import USUAL, Interpretations
from ..faults.fault import Fault
from ..recurrent.expectation import Expectation
from ..recurrent.gates import Steps
from ..recurrent.node import Node
from .operator import Operator, Resolved, dtype_of, operator_of
from .quantized import quantized

Array = NDArray[Any]
Arrays = Mapping[str, Array]


def operator_for(node: Node) -> Operator:
    """The operator of a node; together with the DequantizeLinear and QuantizeLinear around it, where there are any."""
    operator = operator_of(node.op_type, node.domain)
    return quantized(operator) if node.codecs else operator


def resolve(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> Resolved:
    """A node with its inputs (formal name to array; absent ones missing or None), resolved.

    Raises IllegalNode, naming the clause, where the operator's document does not allow what is given.
    """
    return operator_for(node).resolve(node, inputs, interpretations)


def interpretations_touched(node: Node, inputs: Arrays) -> frozenset[str]:
    """All interpretations on which a node's results depend. Raises IllegalNode."""
    return operator_for(node).touched(node, inputs)


def readings(
    asked: Iterable[tuple[Node, Arrays]], touched: Iterable[str], usual: Interpretations = USUAL
) -> Iterator[Interpretations]:
    """Every combination of the named questions' options beside `usual`, which comes first, but for those that come to
    the same of all these nodes with their inputs as one before."""
    asked = [*asked]
    known: set[tuple[Hashable, ...]] = set()
    for interpretations in usual.alternatives(touched):
        meaning = tuple(operator_for(node).meaning(node, inputs, interpretations) for node, inputs in asked)
        if meaning not in known:
            known.add(meaning)
            yield interpretations


def expect(
    node: Node,
    inputs: Arrays,
    observed: Arrays,
    accuracy: str = "standard",
    interpretations: Interpretations | None = None,
) -> list[Expectation]:
    """Values that the outputs of `node` must have for these inputs.

    observed
        The target's outputs by name. Its Y, where there is one of the right shape, makes the judgement step-local.
    accuracy
        Name of an accuracy class.

    Raises IllegalNode where the document does not allow the node, ValueError for an unknown class.
    """
    return operator_for(node).expect(node, inputs, observed, accuracy, interpretations)


def evaluate(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> dict[str, Array]:
    """The outputs that the node asks for, by name, as float64 arrays in the node's layout. Raises IllegalNode.

    inputs
        Formal input name to array; None stands for one that is not there.
    interpretations
        Which meaning to follow where the document is open; the reference's own without it.
    """
    return operator_for(node).evaluate(node, inputs, interpretations)


def evaluate_in_order(node: Node, inputs: Arrays, interpretations: Interpretations | None = None) -> dict[str, Array]:
    """Outputs like :func:`evaluate`'s, the same down to the last digit on every machine, and slower: for what is
    written into files."""
    return operator_for(node).evaluate_in_order(node, inputs, interpretations)


def returned_in_order(node: Node, inputs: Arrays) -> dict[str, Array]:
    """:func:`evaluate_in_order`, each number rounded once to what the output's array holds."""
    resolved = resolve(node, inputs)
    numbers = evaluate_in_order(node, inputs)
    return {
        name: resolved.format.nearest(number)
        if dtype_of(resolved, name) == resolved.format.dtype
        else number.astype(dtype_of(resolved, name))
        for name, number in numbers.items()
    }


def steps_of(
    node: Node, inputs: Arrays, reported: Array | None = None, interpretations: Interpretations | None = None
) -> tuple[Steps, ...]:
    """Values inside the node at every step, direction by direction. Raises IllegalNode.

    reported
        The Y that a target reported, in the node's layout: then each step starts from it.
    """
    return operator_for(node).steps(node, inputs, reported, interpretations)


def run_fault(
    chosen: Fault,
    node: Node,
    inputs: Arrays,
    interpretations: Interpretations | None = None,
    *,
    fed: Arrays | None = None,
    memory: dict[str, Any] | None = None,
) -> dict[str, Array]:
    """The outputs that the node asks for, as an implementation with this fault computes them, of its own type. What it
    leaves out is missing.

    fed
        Those arrays that the caller hands over, which the fault may be to change: all inputs without it.
    memory
        The session's, the same dictionary for each of its runs.

    Raises IllegalNode.
    """
    faults = () if chosen.accepts else (chosen,)  # what takes forbidden models computes legal ones as it must
    return operator_for(node).answer(node, inputs, faults, interpretations, fed=fed, memory=memory)
